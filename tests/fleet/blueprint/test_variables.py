"""`vars` and `--var`: which texts they fill, which values they take, and what is told when one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.load import Loaded, load_blueprint
from fleet.blueprint.variables import with_variables
from fleet.errors import InvalidFile, UsageProblem

TEXT = """\
name: n
description: about {{ subject }}
task: Decide on {{ subject }}.
vars: {subject: queues, depth: 2, ratio: 0.5, is_long: false}
teams:
  t:
    mode: deliberate
    topic: "{{ subject | upper }}"
    members:
      - {agent: a, brief: "Go {{ depth }} deep, {{ ratio }}, {{ is_long }}."}
      - {agent: b, briefPath: brief.md}
"""


def load(folder: Path, text: str = TEXT) -> Loaded:
    (folder / "brief.md").write_text("{{ subject }} stays")
    path = folder / "x.yaml"
    path.write_text(text)
    return load_blueprint(path)


def texts(loaded: Loaded, *given: str) -> list[str | None]:
    blueprint = with_variables(loaded, given)[0].blueprint
    team = blueprint.teams["t"]
    return [blueprint.task, team.topic, team.members[0].brief]


def problems(loaded: Loaded, *given: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        with_variables(loaded, given)
    return [f"{p.line}:{p.column} {p.key} — {p.text}" for p in caught.value.problems]


def test_defaults_and_what_goes_before_them(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert texts(loaded) == ["Decide on queues.", "QUEUES", "Go 2 deep, 0.5, False."]
    given = ("subject=a=b {{ depth }}", "depth=3", "ratio=2", "is_long=TRUE")
    assert texts(loaded, *given) == ["Decide on a=b {{ depth }}.", "A=B {{ DEPTH }}", "Go 3 deep, 2.0, True."]


def test_only_the_blueprints_own_texts_are_templates(tmp_path: Path) -> None:
    blueprint = with_variables(load(tmp_path))[0].blueprint
    assert blueprint.description == "about {{ subject }}"
    assert blueprint.teams["t"].members[1].brief_path == "brief.md"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("subject", "'subject' is not NAME=VALUE"),
        ("=x", "'=x' is not NAME=VALUE"),
        ("a-b=x", "'a-b=x' is not NAME=VALUE"),
        ("subjct=x", 'no text of this blueprint asks for "subjct", did you mean "subject"?'),
        ("depth=deep", "depth takes a whole number, got 'deep'"),
        ("ratio=x", "ratio takes a number"),
        ("is_long=yes", "is_long takes true or false, got 'yes'"),
    ],
)
def test_words_that_cannot_be(tmp_path: Path, word: str, said: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        with_variables(load(tmp_path), (word,))
    assert said in str(caught.value)


def test_every_missing_value_is_told_at_its_place(tmp_path: Path) -> None:
    text = TEXT.replace("subject: queues, ", "").replace("{{ depth }}", "{{ dept }}")
    near = ', did you mean "depth"?'
    assert problems(load(tmp_path, text)) == [
        '3:1 task — "subject" has no value; give it one with --var subject=… or under vars',
        '8:5 teams.t.topic — "subject" has no value; give it one with --var subject=… or under vars',
        f'10:20 teams.t.members[0].brief — "dept" has no value; give it one with --var dept=… or under vars{near}',
    ]


def test_a_task_from_elsewhere_needs_no_values(tmp_path: Path) -> None:
    loaded = load(tmp_path, TEXT.replace("subject: queues, ", "").replace('"{{ subject | upper }}"', "x"))
    filled, _ = with_variables(loaded, is_task_needed=False)
    assert filled.blueprint.task == "Decide on {{ subject }}."


def test_to_look_at_it_no_value_is_needed(tmp_path: Path) -> None:
    loaded = load(tmp_path, TEXT.replace("subject: queues, ", ""))
    filled, lacking = with_variables(loaded, is_lenient=True)
    assert [problem.key for problem in lacking] == ["task", "teams.t.topic"]
    assert filled.blueprint.task == "Decide on {{ subject }}."
    assert filled.blueprint.teams["t"].members[0].brief == "Go 2 deep, 0.5, False."


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "task — nothing is left of it once it is filled in"),
        ("a\nb", 'topic — is no line of 1 to 200 characters once it is filled in, but "A\\nB"'),
        ("x" * 201, "topic — is no line of 1 to 200 characters"),
        ("x" * 100_001, "it gives more than 100000 characters"),
    ],
)
def test_what_comes_out_has_to_fit_its_place(tmp_path: Path, value: str, said: str) -> None:
    loaded = load(tmp_path, TEXT.replace("Decide on {{ subject }}.", "'{{ subject }}'"))
    assert any(said in line for line in problems(loaded, f"subject={value}"))


def test_broken_templates_are_told_with_everything_else_that_is_wrong(tmp_path: Path) -> None:
    text = (
        TEXT.replace("mode: deliberate", "mode: chat")
        .replace("{{ depth }}", "{{ depth")
        .replace("task: Decide on {{ subject }}.", "task: |\n  one\n  {% include 'x' %}")
    )
    with pytest.raises(InvalidFile) as caught:
        load(tmp_path, text)
    assert [f"{p.line} {p.key} — {p.text}"[:90] for p in caught.value.problems] == [
        "3 task — include is not available in a blueprint's texts (line 2 of the text)",
        '9 teams.t.mode — "chat" is not a mode; allowed: dispatch, deliberate, deliberate-then-disp',
        "12 teams.t.members[0].brief — expected token 'end of print statement', got 'deep'",
    ]


names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
values = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(str.strip)


@given(st.dictionaries(names, values, min_size=1, max_size=4))
def test_every_value_arrives_as_it_was_given(given: dict[str, str]) -> None:
    import tempfile

    task = " | ".join(f"{{{{ {name} }}}}" for name in given)
    with tempfile.TemporaryDirectory() as folder:
        text = f"name: n\ndescription: d\ntask: '{task}'\nteams: {{t: {{mode: deliberate, members: [{{agent: a}}]}}}}\n"
        loaded = load(Path(folder), text)
    words: Sequence[str] = [f"{name}={value}" for name, value in given.items()]
    assert with_variables(loaded, words)[0].blueprint.task == " | ".join(given.values()).strip()
