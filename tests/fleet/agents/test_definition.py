"""Agent files: the kinds people publish are read as they are, and what limits an agent is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agents.definition import AgentFile, read_agent
from fleet.errors import InvalidFile

PUBLISHED = Path(__file__).with_name("published")


def read(path: Path) -> AgentFile:
    file = read_agent(path, shown=path.name)
    assert file is not None
    return file


def written(folder: Path, text: str, name: str = "a.md") -> AgentFile:
    path = folder / name
    path.write_text(text)
    return read(path)


def broken(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        written(folder, text)
    return str(caught.value).split("\n")


def test_a_plain_subagent_of_claude_code() -> None:
    file = read(PUBLISHED / "claude/code-reviewer.md")
    agent = file.definition
    assert (file.name, agent.model) == ("code-reviewer", "anthropic/sonnet")
    assert agent.tools == ("Read", "Grep", "Glob", "Bash")
    assert agent.prompt is not None
    assert agent.prompt.startswith("You are a senior engineer")
    assert agent.prompt.endswith("suggestions.")
    assert (file.warnings, file.notes, file.unused) == ((), (), ())


def test_settings_that_are_no_yaml_are_read_key_by_key() -> None:
    file = read(PUBLISHED / "claude/test-writer.md")
    assert file.name == "test-writer"
    assert (file.definition.description or "").endswith("start it.</commentary></example>")
    assert (file.definition.model, file.definition.color) == (None, "green")
    (note,) = file.notes
    assert str(note).startswith("test-writer.md:3:")
    assert "read key by key instead" in note.text
    assert file.warnings == ()


def test_a_subagent_with_everything() -> None:
    file = read(PUBLISHED / "claude/release-manager.md")
    agent = file.definition
    assert (file.name, agent.model, agent.effort) == ("release-manager", "anthropic/opus[1m]", "high")
    assert agent.tools == ("Read", "Edit", "Bash", "mcp__github__create_release")
    assert agent.disallowed_tools == ("WebSearch", "WebFetch")
    assert (agent.skills, agent.max_turns, agent.isolation) == (("changelog",), 30, "worktree")
    assert agent.mcp_servers == ("github",)
    assert file.unused == ("emoji", "vibe", "version")
    assert [problem.text for problem in file.notes] == ["blueprints call it release-manager"]
    assert file.warnings == ()


def test_an_agent_of_opencode() -> None:
    file = read(PUBLISHED / "opencode/docs-writer.md")
    agent = file.definition
    assert (file.name, agent.mode, agent.model) == (
        "docs-writer",
        "subagent",
        "anthropic/claude-sonnet-4-20250514",
    )
    assert agent.tools == ("write", "edit", "-bash")
    assert (agent.temperature, agent.top_p, agent.steps, agent.color) == (0.1, 0.9, 20, "#38A3EE")
    assert agent.permission["bash"] == {"*": "ask", "git diff": "allow"}
    assert (file.warnings, file.unused) == ((), ("reasoningEffort",))


def test_an_agent_of_opencode_in_its_newer_form() -> None:
    file = read(PUBLISHED / "opencode/team/reviewer.md")
    agent = file.definition
    assert (file.name, agent.model, agent.effort) == ("reviewer", "openai/gpt-5", "high")
    assert len(agent.permissions or ()) == 2
    assert agent.color is None
    assert ["color — " in str(problem) for problem in file.warnings] == [True]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("tools: 5", "a.md:2:1: tools — expected a list, got 5"),
        ("approvals: maybe", 'a.md:2:1: approvals — "maybe" is not allowed here; allowed: deny, '),
        ("permissionMode: 3", "a.md:2:1: permissionMode — expected a non-empty string, got 3"),
        ("command: python3 x.py", 'a.md:2:1: command — expected a list, got "python3 x.py"'),
        ("runtime: command", "a.md:2:1: runtime — the command runtime needs `command`"),
        ("env: {A: 1}", "a.md:2:7: env.A — expected text, got 1"),
        ("tools: a\ntools: b", "a.md:3:1: tools — duplicate key; it stands already in line 2"),
        ("- a list", "a.md:2:1: (document) — expected settings, one key per line"),
    ],
)
def test_what_decides_what_an_agent_may_do_is_never_left_out(
    tmp_path: Path, settings: str, line: str
) -> None:
    (found,) = broken(tmp_path, f"---\n{settings}\n---\nprompt")
    assert line in found


def test_what_decides_nothing_is_left_out_and_told(tmp_path: Path) -> None:
    file = written(tmp_path, "---\nmaxTurns: many\nmodell: x\ntemperature:\nmode: odd\n---\nprompt")
    assert [str(problem) for problem in file.warnings] == [
        'a.md:3:1: modell — unknown key, did you mean "model"?',
        "a.md:4:1: temperature — nothing stands behind this key",
        'a.md:2:1: maxTurns — expected a positive integer, got "many"; left out',
        'a.md:5:1: mode — "odd" is not a mode; allowed: primary, subagent, all; left out',
    ]
    assert (file.definition.max_turns, file.definition.mode, file.definition.model) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("name: critic", "critic"),
        ("name: Code Reviewer", "code-reviewer"),
        ("name: critic\npackage: acme.tools", "acme.tools.critic"),
        ("description: d", "the-file"),
        ("name: '///'", "the-file"),
        ("name: " + "x" * 80, "x" * 60),
    ],
)
def test_what_an_agent_is_called(tmp_path: Path, name: str, called: str) -> None:
    assert written(tmp_path, f"---\n{name}\n---\n", "the-file.md").name == called


@pytest.mark.parametrize(
    ("model", "read_as"),
    [
        ("inherit", None),
        ("haiku", "anthropic/haiku"),
        ("claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("gpt-5", "gpt-5"),
        ("openrouter/anthropic/claude-3", "openrouter/anthropic/claude-3"),
    ],
)
def test_models(tmp_path: Path, model: str, read_as: str | None) -> None:
    assert written(tmp_path, f"---\nmodel: {model}\n---\n").definition.model == read_as


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "critic.py").write_text("")
    file = written(tmp_path, "---\ncommand: [./run, ./critic.py, ./gone.py, x/y]\ncwd: work\n---\n")
    assert file.definition.command == (f"{tmp_path}/run", f"{tmp_path}/critic.py", "./gone.py", "x/y")
    assert file.definition.cwd == f"{tmp_path}/work"


def test_lists_may_stand_on_one_line(tmp_path: Path) -> None:
    file = written(tmp_path, "---\nskills: tdd, review\nfallbackModels: a/b\n---\n")
    assert (file.definition.skills, file.definition.fallback_models) == (("tdd", "review"), ("a/b",))


def test_markdown_without_settings_is_no_agent(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Agents\n\n---\n\nLook here.\n")
    assert read_agent(path, shown="README.md") is None


def test_line_ends_and_marks_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nname: critic\r\n---\r\n\r\nOne.\r\nTwo.\r\n")
    file = read(path)
    assert (file.name, file.definition.prompt) == ("critic", "One.\nTwo.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"---\nname: a\n", "the settings begin with --- in line 1 and never end"),
        (b"---\nname: \xff\n---\n", "not UTF-8 text"),
        (b"---\nname: a\x00\n---\n", "a binary file"),
        (b"---\n" + b"x" * (1 << 20) + b"\n---\n", "over 1048576 bytes"),
        (b"---\n\x1b[2J\n---\n", "control character U+001B"),
    ],
)
def test_what_is_no_agent_file_is_told_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        read(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=200),
    st.text("ab:-#\n '\"[]{}&*,", max_size=80),
)
def test_whatever_stands_there_is_an_agent_or_a_problem(settings: str, more: str) -> None:
    from fleet.agents.front_matter import parse_markdown

    for text in (f"---\n{settings}\n---\nbody", f"---\nname: x\n{more}\n---\nbody", settings):
        try:
            markdown = parse_markdown(text.encode(), name="x")
        except InvalidFile as error:
            said = [str(problem) for problem in error.problems]
        else:
            said = [] if markdown.note is None else [str(markdown.note)]
        assert all(map(str.isprintable, said))
