"""A chain is the same in yaml, json and markdown, and after it was saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.places import Places
from fleet.chain.find import all_chains, find_chain
from fleet.chain.load import load_chain
from fleet.chain.markdown import to_markdown
from fleet.chain.schema import ChainFile
from fleet.chain.write import save_chain
from fleet.errors import InvalidFile, UsageProblem

MARKDOWN = """\
---
name: review
description: "Look: twice"
task: the diff
---
## scout
as: facts
output: facts.md
reads: a.md, b.md
outputMode: file-only

Look at {task}.
\\## Not a step
More.

## writer

Write {outputs.facts}
"""


def test_markdown_is_read(tmp_path: Path) -> None:
    path = tmp_path / "review.chain.md"
    path.write_text(MARKDOWN)
    chain = load_chain(path).file
    scout, writer = chain.chain
    assert (chain.description, scout.agent, scout.as_, scout.reads) == (
        "Look: twice",
        "scout",
        "facts",
        ("a.md", "b.md"),
    )
    assert scout.task == "Look at {task}.\n## Not a step\nMore."
    assert (writer.agent, writer.task) == ("writer", "Write {outputs.facts}")


@pytest.mark.parametrize("suffix", [".chain.yaml", ".chain.json", ".chain.md"])
def test_what_was_saved_is_the_same(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "review.chain.md"
    path.write_text(MARKDOWN)
    first = load_chain(path).file
    save_chain(first, tmp_path / f"other{suffix}")
    assert load_chain(tmp_path / f"other{suffix}").file == first
    with pytest.raises(UsageProblem, match="is there already"):
        save_chain(first, tmp_path / f"other{suffix}")


tasks = st.lists(
    st.sampled_from(
        ["## Heading", "\\## x", "##\tx", "text", "", "key: value", "---", "```", "# top", "### deep", "## "]
    ),
    min_size=1,
    max_size=8,
).map("\n".join)


@given(st.lists(tasks.filter(str.strip), min_size=1, max_size=4))
def test_any_task_survives_markdown(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    data = {"name": "n", "description": "d", "chain": [{"agent": "a", "task": text} for text in texts]}
    chain = ChainFile.model_validate(data)
    path = tmp_path_factory.mktemp("chain") / "c.chain.md"
    path.write_text(to_markdown(chain))
    assert load_chain(path).file == chain


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("## a\n\nx\n", "a chain begins with settings"),
        ("---\nname: n\ndescription: d\n---\nwords\n\n## a\n\nx\n", ":5:1: text before the first section"),
        ("---\nname: n\ndescription: d\n---\n## a\nfoo: x\n\nx\n", ":6:1: foo: not a key of a section"),
        (
            "---\nname: n\ndescription: d\n---\n## a\noutputSchema: {}\n\nx\n",
            "an inline schema has no place here",
        ),
        ("---\nname: n\ndescription: d\n---\n## a b\n\nx\n", "5:4: chain[0].agent"),
        ("---\nname: n\ndescription: d\n---\n", "expected at least one entry"),
    ],
)
def test_what_is_wrong_in_markdown_has_its_line(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "c.chain.md"
    path.write_text(text)
    with pytest.raises(InvalidFile) as caught:
        load_chain(path)
    assert told in str(caught.value)


def test_a_group_has_no_form_in_markdown(tmp_path: Path) -> None:
    data = {"name": "n", "description": "d", "chain": [{"parallel": [{"agent": "a", "task": "x"}]}]}
    with pytest.raises(UsageProblem, match="a group cannot be written as markdown"):
        to_markdown(ChainFile.model_validate(data))
    save_chain(ChainFile.model_validate(data), tmp_path / "c.chain.json")
    assert json.loads((tmp_path / "c.chain.json").read_text()) == data


def test_chains_have_names(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for folder, text in ((project / ".fleet" / "chains", "mine"), (home / "chains", "theirs")):
        folder.mkdir(parents=True)
        (folder / "review.chain.yaml").write_text(text)
    (home / "chains" / "other.chain.md").write_text("x")
    (home / "chains" / "other.chain.json").write_text("x")
    places = Places.around(project, home=home)
    assert find_chain("review", places).path.read_text() == "mine"
    assert find_chain("other", places).path.name == "other.chain.json"
    assert [(found.name, found.is_shadowed) for found in all_chains(places)] == [
        ("review", False), ("review", True), ("other", False), ("other", True),
    ]  # fmt: skip
    with pytest.raises(UsageProblem, match="no chain 'nope'"):
        find_chain("nope", places)
