"""Templates: what they can do, what they cannot reach, and that none of them takes long or gives much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.template import MAX_CHARS, Broken, render, variables


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("about {{ subject }}", "about queues"),
        ("{{ subject | upper }} {{ depth + 1 }}", "QUEUES 3"),
        ("{{ absent | default('none') }}", "none"),
        ("{% if depth > 1 %}deep{% else %}flat{% endif %}", "deep"),
        ("{% if absent is defined %}x{% endif %}", ""),
        ("{{ 'a' if is_long else 'b' }}", "a"),
        ("{% for n in range(3) %}{{ loop.index }}{{ ',' if not loop.last else '' }}{% endfor %}", "1,2,3"),
        ("{% for side in ['a', 'b'] %}{{ side }}{% endfor %}", "ab"),
        ("{{ subject ~ ' ' ~ depth }}", "queues 2"),
        ("{{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 2 }} {{ (2.567) | round(1) }}", "3.5 3 1 2.6"),
        ("{% raw %}{{ subject }}{% endraw %}", "{{ subject }}"),
        ("${#array[@]} {# stays #}", "${#array[@]} {# stays #}"),
        ("one\n{% if true %}\ntwo\n{% endif %}\nthree\n", "one\ntwo\nthree\n"),
    ],
)
def test_what_templates_do(source: str, text: str) -> None:
    assert render(source, {"subject": "queues", "depth": 2, "is_long": True}) == text


def test_a_value_is_never_template_source() -> None:
    assert render("{{ a }}", {"a": "{{ b }}{% for x in y %}"}) == "{{ b }}{% for x in y %}"


@pytest.mark.parametrize(
    ("source", "line", "variable"),
    [("{{ a }}", 1, "a"), ("x\n\ny {{ a + 1 }}", 3, "a"), ("{% for x in a %}{% endfor %}", 1, "a")],
)
def test_a_missing_value_is_told_with_its_name_and_line(source: str, line: int, variable: str) -> None:
    with pytest.raises(Broken) as caught:
        render(source, {})
    assert (caught.value.text, caught.value.line, caught.value.variable) == (
        f'"{variable}" has no value',
        line,
        variable,
    )


REFUSED = [
    "{{ a.__class__ }}",
    "{{ a.upper() }}",
    "{{ ''.join(['a']) }}",
    "{{ a | attr('x') }}",
    "{{ a[0] }}",
    "{{ a[:2] }}",
    "{{ {'a': 1} }}",
    "{{ 2 ** 9999999 }}",
    "{{ lipsum() }}",
    "{{ cycler('a') }}",
    "{{ range.__self__ }}",
    "{{ loop.cycle('a') }}",
    "{{ self }}",
    "{{ _work }}",
    "{{ a | _counted(1, 2) }}",
    "{{ a | center(1000000000) }}",
    "{{ a | map('upper') }}",
    "{{ a is sameas b }}",
    "{% set x = 1 %}",
    "{% set x %}y{% endset %}",
    "{% macro m() %}{% endmacro %}",
    "{% call m() %}{% endcall %}",
    "{% filter upper %}{% endfilter %}",
    "{% with a = 1 %}{% endwith %}",
    "{% include '/etc/passwd' %}",
    "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{% block b %}{% endblock %}",
    "{% for x in [1] recursive %}{{ loop([2]) }}{% endfor %}",
    "{% autoescape true %}{% endautoescape %}",
]


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_refused_before_anything_runs(source: str) -> None:
    for call in (variables, lambda text: render(text, {"a": "x", "b": "y"})):
        with pytest.raises(Broken):
            call(source)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 100000000 }}",
        "{{ '%1000000000s' % 'x' }}",
        "{{ 9" + " * 999999999" * 50 + " }}",
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% for i in range(999) %}{% for j in range(999) %}{% endfor %}{% endfor %}",
        "{% for i in range(999) %}" + "{{ '' }}" * 500 + "{% endfor %}",
        "{{ range(1000000000) | join(',') }}",
        "{{ 1.5 in range(100000000000) }}",
        "{{ 'a'" + " | replace('a', 'aaaaaaaaaa')" * 12 + " }}",
        "{{ 1 | round(1000000000) }}",
        "{% for i in range(900) %}{{ big }}{% endfor %}",
        "{{ big + big }}",
        "{{ [big, big] | join }}",
        "{{ big ~ big }}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
        "{% for a in [1] %}" * 60 + "{% endfor %}" * 60,
        "{{ 1" + "0" * 5000 + " }}",
        "{{ 1 / 0 }}",
        "{{ 1 < 'a' }}",
        "{{ -big }}",
        "{% for x in 5 %}{% endfor %}",
        "x" * MAX_CHARS + "{{ 1 }}",
        "{{ unclosed",
        "{% if 1 %}",
        "{% endif %}",
        "{{ }}",
    ],
)
def test_nothing_takes_long_or_gives_much(source: str) -> None:
    with pytest.raises(Broken) as caught:
        render(source, {"big": "y" * (MAX_CHARS // 2 + 1)})
    assert "\n" not in caught.value.text
    assert len(caught.value.text) < 300


@pytest.mark.parametrize(
    "source", ["{{ 'x' * 3 }}", "{{ 3 * 'x' }}", "{{ '%s' % 3 }}", "{{ 'a' + 1 }}", "{{ [1] + [2] }}"]
)
def test_operators_never_make_texts_longer(source: str) -> None:
    with pytest.raises(Broken, match=r"^[*%+] takes numbers$"):
        render(source, {})
    assert render("{{ 'a' + 'b' }}", {}) == "ab"


def test_the_names_that_are_asked_for() -> None:
    source = (
        "{{ a }}{% if b is defined %}{% endif %}{% for i in range(n) %}{{ i }}{{ loop.index }}{% endfor %}"
    )
    assert variables(source) == {"a", "b", "n"}


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["", "{{ v }}", "{{ v ~ 1 }}"]))
def test_plain_text_stays_as_it_is(before: str, value: str, middle: str) -> None:
    plain = before.replace("{", "(")
    text = render(plain + middle, {"v": value})
    expected = {"": "", "{{ v }}": value, "{{ v ~ 1 }}": f"{value}1"}[middle]
    assert text == plain.replace("\r\n", "\n").replace("\r", "\n") + expected


WORDS = """{{ }} {% %} for in if endif endfor x y range ( ) [ ] , | ~ + - * / % 1 99 'a' join replace upper is
defined loop . index not and else"""
parts = st.sampled_from([*WORDS.split(), "\n"])


@given(st.lists(parts, max_size=14))
def test_whatever_is_written_gives_a_bounded_text_or_one_sentence(words: list[str]) -> None:
    try:
        text = render(" ".join(words), {"x": "value", "y": 3})
    except Broken as error:
        text = error.text
        assert error.line >= 1  # noqa: PT017 - nothing else may be raised; that is what is tested
        assert "\n" not in text
    assert len(text) <= MAX_CHARS
