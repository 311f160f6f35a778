"""Launches: who starts where, with which words; equal input, equal bytes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.blueprint.load import load_blueprint
from fleet.errors import InvalidFile
from fleet.roles import plan, tmux
from fleet.roles.launch import FanOut, from_blueprint, from_manifest
from fleet.roles.manifest import is_manifest, load_manifest
from fleet.roles.native import ATTACHABLE, NATIVE, Native, Seating, Text, argument_vector, native
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
    ("content", "said"),
    [
        (b"x" * 100_001, "too long: {}/b.md has 100001 bytes, at most 100000 are allowed here"),
        (b"a\x00b", "a binary file, not text: {}/b.md"),
        (b"caf\xe9", "not UTF-8 text: {}/b.md, byte 0xe9 at offset 3"),
    ],
)
def test_briefs_that_no_command_line_carries(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "b.md").write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        of_manifest(tmp_path, MINIMAL.replace("opus}", "opus, brief: b.md}"))
    (problem,) = caught.value.problems
    assert (problem.key, problem.text) == ("roles.critic.brief", said.format(tmp_path))


def test_all_briefs_of_a_blueprint_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes(b"x" * 100_001)
    text = """\
name: n
description: d
agents: {long: {prompt: %s}}
teams:
  t:
    mode: deliberate
    members:
      - {agent: a, briefPath: b.md, count: 2}
      - {agent: b}
      - {agent: c, briefPath: b.md}
      - {agent: long, runtime: pi}
"""
    with pytest.raises(InvalidFile) as caught:
        of_blueprint(tmp_path, text % ("y" * 200_000))
    assert [problem.key for problem in caught.value.problems] == [
        "teams.t.members[0].briefPath",
        "teams.t.members[2].briefPath",
        "teams.t.members[3]",
    ]
    assert "a command takes 131071" in caught.value.problems[2].text


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
        argv = native(
            runtime, "p", "m", Seating("x", "den", "- a brief", "You are x.", "Begin."), ("--own",)
        ).argv
        assert argv[0] == runtime
        said = "\n".join(words(argv))
        assert all(part in said for part in ("- a brief", "You are x.", "Begin.", "--own"))
        # A text that begins with a dash would be taken for an option.
        assert not any(word.text.startswith("-") for word in argv if isinstance(word, Text))
        assert not any(word is None for word in argv)
        assert native(runtime, None, None, Seating("x", "den", "", "f", "p")).argv
    assert native("command", None, None, Seating("x", "den", "", "f", "p")) == Native()


SERVER = ["mcp", "--as", "x.1", "--room", "den"]


def started(runtime: str, brief: str = "") -> Native:
    return native(runtime, "p", "m", Seating("x.1", "den", brief, "You are x.", "Begin."))


def test_the_room_is_attached_as_each_takes_it() -> None:
    claude = words(started("claude").argv)
    config = json.loads(claude[claude.index("--mcp-config") + 1])["mcpServers"]["roundtable"]
    assert config == {"type": "stdio", "command": "roundtable", "args": SERVER, "alwaysLoad": True}
    allowed = claude.index("--allowedTools")
    assert claude[allowed + 1] == "mcp__roundtable"
    assert claude[allowed + 2].startswith("--"), "it takes several values, and an option ends them"
    codex = words(started("codex").argv)
    (override,) = (word for word in codex if word.startswith("mcp_servers."))
    server = tomllib.loads(override)["mcp_servers"]["roundtable"]
    assert (server["command"], server["args"], server["required"]) == ("roundtable", SERVER, True)
    assert "FLEET_HOME" in server["env_vars"]
    copilot = words(started("copilot").argv)
    config = json.loads(copilot[copilot.index("--additional-mcp-config") + 1])["mcpServers"]["roundtable"]
    assert (config["type"], config["command"], config["args"]) == ("local", "roundtable", SERVER)
    opencode = started("opencode").env
    config = json.loads(opencode["OPENCODE_CONFIG_CONTENT"])["mcp"]["roundtable"]
    assert (config["type"], config["command"]) == ("local", ["roundtable", *SERVER])
    for runtime in NATIVE:
        said = " ".join([*words(started(runtime).argv), *started(runtime).env.values()])
        assert ("mcp" in said) is (runtime in ATTACHABLE)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_a_brief_survives_the_configuration_of_codex(brief: str) -> None:
    (told,) = (word for word in words(started("codex", brief).argv) if word.startswith("developer_"))
    assert tomllib.loads(told)["developer_instructions"] == f"You are x.\n\n{brief.strip()}".strip()


def test_a_brief_that_escapes_make_too_long_is_in_the_first_prompt() -> None:
    argv = words(started("codex", "\n".join("x" * 45_000)).argv)
    assert not any(word.startswith("developer_") for word in argv)
    assert argv[-1].endswith("\nx\n\nBegin.")


def test_who_has_no_tools_is_told_the_commands(tmp_path: Path) -> None:
    text = (
        "task: t\nroom: r\nroles:\n  a: {provider: google, model: m}\n  b: {provider: anthropic, model: m}\n"
    )
    without, having = of_manifest(tmp_path, text).launches
    assert (without.is_attached, having.is_attached) == (False, True)
    assert "roundtable_post" not in without.footer
    assert "roundtable_post" in having.footer
    for launch in (without, having):
        assert f"roundtable post r TEXT --as {launch.name} --create" in launch.footer
        assert len(launch.footer.splitlines()) == 4


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
