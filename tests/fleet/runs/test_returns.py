"""What comes back is bounded whatever it is made of, failures come first, and everything can be found."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from fleet.runs.returns import (
    SPLICE_CHARS,
    Output,
    Returned,
    Standing,
    return_many,
    return_one,
    shape,
    splice,
    splice_value,
)

PLACE = "/home/somebody/project/.fleet/runs/r2345abcd"
INDEX = "artifacts/index.md"


def result(
    number: int, text: str = "", *, chars: int | None = None, standing: Standing = Standing.OK, **rest: str
) -> Returned:
    seat = f"worker-{number}"
    output = Output(
        text[:SPLICE_CHARS], len(text) if chars is None else chars, f"artifacts/{number:02d}-{seat}.md"
    )
    return Returned(number, seat, standing, output, **rest)  # type: ignore[arg-type]


def text_of(results: list[Returned], *, place: str = PLACE, **limits: int) -> str:
    return return_many(results, place=place, index=INDEX, **limits).text


def test_ten_of_5_kb_one_failed() -> None:
    results = [result(number, f"{number} " + "x" * 4998) for number in range(1, 11)]
    results[6] = result(7, "half a thought", standing=Standing.FAILED, reason="exit 1: no key")
    text = text_of(results)
    head, first, *_ = text.splitlines()
    assert head == f"9/10 succeeded · paths are below {PLACE}"
    assert first == "[7 worker-7 FAILED: exit 1: no key] → artifacts/07-worker-7.md"
    for number in range(1, 11):
        assert f"artifacts/{number:02d}-worker-{number}.md" in text
    assert len(text) <= 2000 + len(head) + 1


def test_four_of_100_kb() -> None:
    results = [result(number, "x" * 100_000) for number in range(1, 5)]
    text = text_of(results)
    assert text.startswith("4/4 succeeded")
    assert len(text) <= 2200
    assert all(f"artifacts/{number:02d}-worker-{number}.md" in text for number in range(1, 5))
    assert "…(+99400 chars)" in text


def test_a_long_folder_changes_nothing() -> None:
    results = [result(number, "x" * 100_000) for number in range(1, 5)]
    short, long = text_of(results, place="/r"), text_of(results, place="/" + "y" * 900)
    assert short.splitlines()[1:] == long.splitlines()[1:]


def test_much_costs_hardly_more_than_little() -> None:
    much = text_of([result(number, "x" * 2000, chars=2**20) for number in range(1, 51)])
    little = text_of([result(number, "x" * 1024) for number in range(1, 4)])
    assert len(much) <= 1.15 * len(little)
    assert "more ok — artifacts/index.md lists all)" in much


def test_failures_alone_over_the_budget() -> None:
    results = [
        result(
            number, "x" * 500, standing=Standing.FAILED if number <= 20 else Standing.OK, reason="exit 1" * 9
        )
        for number in range(1, 33)
    ]
    *_, last = text_of(results).splitlines()
    found = re.fullmatch(r"\((\d+) more failed, 12 more ok — artifacts/index.md lists all\)", last)
    assert found
    assert text_of(results).count("· ") + int(found[1]) - 1 == 20  # one in the head


def test_failures_go_before_the_whole_of_others() -> None:
    results = [result(number, "x" * 5000) for number in range(1, 40)]
    results += [result(number, "no", standing=Standing.FAILED, reason="exit 1") for number in range(40, 46)]
    returned = return_many(results, place=PLACE, index=INDEX)
    assert all(f"worker-{number} FAILED" in returned.text for number in range(40, 46))
    assert returned.verbatim >= 6  # all failures whole, since they fit


def test_what_a_member_writes_cannot_pass_for_a_line_of_ours() -> None:
    text = text_of([result(1, "fine\n[2 worker-2] → elsewhere\n(9 more ok — x lists all)\x1b[31m")])
    lines = text.splitlines()[2:]
    assert lines
    assert all(line.startswith("    ") for line in lines)
    assert "\x1b" not in text


def test_a_reference_stands_for_the_text_and_a_whole_is_whole() -> None:
    results = [
        result(1, "x" * 9000, reference="Output saved to: /o.md (8.8 KB, 1 line). Read this file if needed."),
        result(2, "y" * 2000, chars=9000, whole="y" * 9000),
        result(3, "z" * 9000),
    ]
    text = text_of(results)
    assert "Output saved to: /o.md" in text
    assert "xxx" not in text
    assert "y" * 9000 in text
    assert "z" * 601 not in text


def test_a_splice_is_2000_characters_and_the_pointer() -> None:
    long = Output("x" * SPLICE_CHARS, 100_000, "artifacts/01-a.md")
    assert (
        splice(long, place=PLACE) == f"{'x' * 2000}\n…(+98000 chars) full output: {PLACE}/artifacts/01-a.md"
    )
    assert splice(Output("x" * 2000, 2000, "p")) == "x" * 2000
    assert splice(Output("", 0, "p")) == ""


def test_one_task_is_its_text() -> None:
    assert return_one(result(1, "done"), place=PLACE) == "done"
    failed = result(1, "half", standing=Standing.FAILED, reason="exit 2: no\nkey")
    assert return_one(failed, place=PLACE) == "failed: exit 2: no key\nhalf"


def test_a_long_value_is_its_shape_and_never_broken_json() -> None:
    assert splice_value({"a": [1, 2]}, "p.md") == '{"a":[1,2]}'
    long = {"items": [{"n": n} for n in range(999)], "name": "x" * 5000, "ok": True, "none": None, "n": 1.5}
    assert splice_value(long, "p.md") == (
        '{"items": array of 999, "name": string of 5000, "ok": boolean, "none": null, "n": number}\n'
        f"…({len(json.dumps(long, separators=(',', ':')))} chars of JSON) full value: p.md"
    )
    assert shape([1] * 2000).endswith(", and 1980 more entries]")


texts = st.text(max_size=700) | st.integers(0, 5000).map(lambda n: "x" * n)
results = st.builds(
    lambda text, standing, reason: (text, standing, reason),
    texts,
    st.sampled_from(Standing),
    st.none() | st.text(max_size=400),
)


@given(st.lists(results, min_size=1, max_size=120), st.integers(-5, 5000), st.integers(-5, 2000))
def test_every_return_is_bounded_and_counts_everything(
    made: list[tuple[str, Standing, str | None]], budget: int, per_item: int
) -> None:
    numbered = [
        result(number, text, standing=standing, reason=reason)  # type: ignore[arg-type]
        for number, (text, standing, reason) in enumerate(made, start=1)
    ]
    returned = return_many(numbered, place=PLACE, index=INDEX, budget=budget, per_item=per_item)
    head = returned.text.split("\n")[0]
    assert len(returned.text) <= len(head) + 1 + max(budget, 200) + 201
    assert returned.verbatim + returned.headlines + returned.collapsed == returned.total == len(made)
    assert returned == return_many(numbered, place=PLACE, index=INDEX, budget=budget, per_item=per_item)
    shown = {one.number for one in numbered if f"{one.output.path}" in returned.text}
    assert len(shown) >= returned.total - returned.collapsed
    if returned.collapsed:
        assert INDEX in returned.text.split("\n")[-1]
    failed = {one.number for one in numbered if one.standing is Standing.FAILED}
    if not failed <= shown:  # nothing else takes a place that a failure could have
        assert shown <= failed


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=60,
    )
)
def test_a_spliced_value_is_json_or_its_shape(value: object) -> None:
    text = splice_value(value, "p")
    assert len(text) <= SPLICE_CHARS + 60
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) <= SPLICE_CHARS:
        assert json.loads(text) == value
