"""Launches: who starts where, with which words; equal input, equal bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.load import load_blueprint
from fleet.errors import InvalidFile
from fleet.roles import plan, tmux
from fleet.roles.launch import FanOut, from_blueprint, from_manifest
from fleet.roles.manifest import is_manifest, load_manifest
from fleet.roles.native import NATIVE, Text, argument_vector, native
from fleet.yaml import parse

MINIMAL = "task: t\nroom: r\nroles: {critic: {provider: anthropic, model: opus}}\n"


def of_manifest(folder: Path, text: str, *, binary: str | None = None, layout: str | None = None) -> FanOut:
    path = folder / "x.roles.yaml"
    path.write_text(text)
    return from_manifest(load_manifest(path), binary=binary, layout=layout)


def of_blueprint(folder: Path, text: str, *, binary: str | None = None, layout: str | None = None) -> FanOut:
    path = folder / "x.yaml"
    path.write_text(text)
    return from_blueprint(load_blueprint(path), binary=binary, layout=layout)


def words(argv: tuple[str | Text, ...]) -> list[str]:
    return [word.text if isinstance(word, Text) else word for word in argv]


def test_a_minimal_manifest(tmp_path: Path) -> None:
    (launch,) = of_manifest(tmp_path, MINIMAL, binary="agent").launches
    assert (launch.name, launch.room, launch.cwd, launch.worktree) == ("critic", "r", tmp_path, "active")
    argv = words(launch.argv)
    assert argv[:7] == ["agent", "--name", "critic", "--provider", "anthropic", "--model", "opus"]
    assert argv[7] == "--append-system-prompt"
    assert argv[8] == launch.footer
    assert all(part in launch.footer for part in ("critic", "#r", "2000", "600"))
    assert len(launch.footer.splitlines()) == 4


def test_a_role_with_everything(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("the brief\n")
    text = """\
task: t
room: r
budgets: {digest: 1234, perMessage: 77}
roles:
  critic: {provider: xai, model: grok, room: other, cwd: ../x, worktree: new, brief: b.md}
"""
    (launch,) = of_manifest(tmp_path, text).launches
    assert (launch.room, launch.worktree, launch.runtime) == ("other", "new", "opencode")
    assert launch.cwd == tmp_path.parent / "x"
    assert (launch.brief, launch.brief_path) == ("the brief\n", tmp_path / "b.md")
    argv = words(launch.argv)
    assert argv[:4] == ["opencode", "-m", "xai/grok", "--prompt"]
    assert "the brief" in argv[4]
    assert all(part in launch.footer for part in ("#other", "1234", "77"))


@pytest.mark.parametrize(
    ("content", "said"), [(b"x" * 100_001, "has 100001 bytes"), (b"a\x00b", "is a binary file")]
)
def test_briefs_that_no_command_line_carries(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "b.md").write_bytes(content)
    with pytest.raises(InvalidFile, match=said):
        of_manifest(tmp_path, MINIMAL.replace("opus}", "opus, brief: b.md}"))


TEAMS = """\
name: n
description: d
task: do it
agents:
  helper: {command: [python3, h.py], prompt: You help., env: {A: "1", B: "2"}, args: [x]}
teams:
  one:
    mode: deliberate
    topic: why
    members:
      - {agent: helper, count: 2, brief: now, env: {B: "3"}}
      - {agent: talker, model: google/gemini, cwd: sub}
  two:
    mode: dispatch
    layout: tiled
    members: [{agent: helper, name: solo, runtime: pi, model: x/y, args: [z]}, {agent: talker}]
pipeline: [two, one]
"""


def test_a_blueprint(tmp_path: Path) -> None:
    fan_out = of_blueprint(tmp_path, TEAMS)
    assert [window.name for window in fan_out.windows] == [
        "two",
        "one-helper-1",
        "one-helper-2",
        "one-talker",
    ]
    by_name = {launch.name: launch for launch in fan_out.launches if launch.room == "fleet-n-one"}
    helper, talker = by_name["helper-2"], by_name["talker"]
    assert (helper.runtime, helper.argv, helper.cwd) == ("command", (), None)
    assert dict(helper.env) == {"A": "1", "B": "3"}
    assert helper.brief == "You help.\n\nnow"
    assert any("python3 h.py" in note for note in helper.notes)
    assert (talker.runtime, talker.cwd) == ("gemini", tmp_path / "sub")
    solo = fan_out.launches[0]
    assert (solo.name, solo.runtime, solo.room) == ("solo", "pi", "fleet-n-two")
    assert words(solo.argv)[:3] == ["pi", "--model", "x/y"]
    assert "x" in words(solo.argv)
    assert "z" in words(solo.argv)


def test_layout_of_the_command_line_wins(tmp_path: Path) -> None:
    assert [window.layout for window in of_blueprint(tmp_path, TEAMS, layout="tiled").windows] == [
        "tiled"
    ] * 2
    assert len(of_blueprint(tmp_path, TEAMS, layout="windows").windows) == 5
    (window,) = of_manifest(tmp_path, MINIMAL, layout="main-vertical").windows
    assert (window.name, window.layout) == ("t", "main-vertical")


def test_window_names_are_unique(tmp_path: Path) -> None:
    names = [window.name for window in of_blueprint(tmp_path, TEAMS, layout="windows").windows]
    assert len(set(names)) == len(names)


def test_every_runtime_with_a_screen_gets_brief_footer_and_prompt() -> None:
    for runtime in NATIVE:
        argv = native(runtime, "p", "m", "- a brief", "You are x.", "Begin.", ("--own",))
        assert argv[0] == runtime
        said = "\n".join(words(argv))
        assert all(part in said for part in ("- a brief", "You are x.", "Begin.", "--own"))
        # A text that begins with a dash would be taken for an option.
        assert not any(word.text.startswith("-") for word in argv if isinstance(word, Text))
        assert not any(word is None for word in argv)
        assert native(runtime, None, None, "", "f", "p")
    assert native("command", None, None, "", "f", "p") == ()


def test_the_references_vector() -> None:
    argv = words(argument_vector("x", "r", "p", "m", "text", Path("/b"), "f"))
    assert argv == [
        *("x", "--name", "r", "--provider", "p", "--model", "m"),
        *("--append-system-prompt", "/b", "--append-system-prompt", "f"),
    ]
    argv = words(argument_vector("x", "r", None, None, "text", None, "f"))
    assert argv == ["x", "--name", "r", "--append-system-prompt", "text", "--append-system-prompt", "f"]


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    for make in (lambda: of_manifest(tmp_path, MINIMAL), lambda: of_blueprint(tmp_path, TEAMS)):
        one, other = make(), make()
        assert tmux.render(one, session="s") == tmux.render(other, session="s")
        assert plan.render(one) == plan.render(other)


def test_the_plan_names_what_matters_and_hides_secrets(tmp_path: Path) -> None:
    text = plan.render(of_blueprint(tmp_path, TEAMS.replace('A: "1"', 'API_KEY: "sk-1", A: "1"')))
    assert "sk-1" not in text
    assert "API_KEY=***" in text
    for part in (
        "do it",
        "#fleet-n-one",
        "digest 2000",
        "helper-1",
        "gemini -m gemini -i",
        "tiled",
        "You are talker",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("name", "text", "is_one"),
    [
        ("x.yaml", "roles: {}", True),
        ("roles.yaml", "teams: {}", False),
        ("x.yaml", "roles: {}\nteams: {}", False),
        ("a/roles.yaml", "", True),
        ("a.roles.yaml", "- x", True),
        ("design.yaml", "", False),
    ],
)
def test_which_kind_of_file(name: str, text: str, is_one: bool) -> None:
    assert is_manifest(parse(text.encode(), name=name)) is is_one


@given(st.text(max_size=100))
def test_session_names_are_safe(name: str) -> None:
    safe = tmux.safe_session_name(name)
    assert len(safe) <= 64
    assert all(letter.isalnum() or letter in "_-" for letter in safe)


def test_no_invocation_comes_near_the_limit_of_tmux(tmp_path: Path) -> None:
    roles = "".join(f"  {'n' * 58}{number}: {{provider: a, model: b}}\n" for number in range(200))
    script = tmux.render(of_manifest(tmp_path, f"task: t\nroom: r\nroles:\n{roles}"), session="s" * 64)
    calls = [call for call in script.split("tmux -u ") if call.startswith(("new-session", "new-window"))]
    assert len(calls) > 1
    for call in calls:
        expanded = call.replace("$dir", "x" * 100).replace("$session", "s" * 64)
        assert len(expanded) < 16_000
