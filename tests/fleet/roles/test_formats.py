"""The five formats: equal input, equal bytes; what their scripts start gets every word as it was meant."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.blueprint.load import load_blueprint
from fleet.roles import listing, orca, plan, sh, tmux
from fleet.roles.launch import FanOut, from_blueprint, from_manifest
from fleet.roles.manifest import Budgets, LoadedManifest, Manifest, Role, load_manifest
from fleet.roles.seats import folder_files
from fleet.yaml import parse

FORMATS: dict[str, Callable[[FanOut], str]] = {
    "plan": plan.render,
    "json": listing.render,
    "sh": sh.render,
    "tmux": lambda fan_out: tmux.render(fan_out, session="s"),
    "orca": orca.render,
}

#: Text as a manifest may hold it, once it is trimmed: no NUL; anything else that UTF-8 carries.
WORDS = (
    st.text(
        alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40
    )
    .map(str.strip)
    .filter(bool)
)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
ROLES = st.builds(
    Role,
    provider=st.one_of(st.sampled_from(["anthropic", "openai", "google", "xai"]), WORDS),
    model=WORDS,
    room=st.none() | NAMES,
    cwd=st.none() | WORDS.filter(lambda word: "/" not in word),
    worktree=WORDS,
    brief=st.none(),
)
MANIFESTS = st.builds(
    Manifest,
    task=NAMES,
    room=NAMES,
    roles=st.dictionaries(NAMES, ROLES, min_size=1, max_size=4),
    budgets=st.builds(Budgets, st.integers(1, 10**9), st.integers(1, 10**9)),
)

#: Stands for any program: notes its words and where it is, and ends.
AGENT = """\
#!/bin/sh
out="$RECORDS/${FLEET_SEAT:-seat}"
for word in "${0##*/}" "$@"; do printf '%s\\0' "$word"; done >"$out.argv"
pwd >"$out.cwd"
printf '%s' "${SPECIAL-}" >"$out.special"
"""

#: In place of Orca: runs the command of each terminal as a shell of somebody's would, somewhere else.
ORCA = """\
#!/bin/sh
[ "$1 $2 $3 $5 $7" = 'terminal create --worktree --title --command' ] || exit 9
printf '%s\\n' "$4|$6" >>"$RECORDS/terminals"
cd / && sh -c "$8" </dev/null
"""


def fan_out_of(manifest: Manifest, folder: Path, *, binary: str | None = None) -> FanOut:
    document = parse(b"{}", name="x")
    return from_manifest(
        LoadedManifest(folder / "x.yaml", manifest, folder, document), binary=binary, layout=None
    )


class Machine:
    """A PATH with programs that note what they are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "records", "tmp"):
            (folder / name).mkdir()
        for name in ("claude", "codex", "gemini", "opencode", "roundtable"):
            self.program(name, AGENT)
        self.program("orca", ORCA)
        self.env = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "RECORDS": str(folder / "records"),
            "TMPDIR": str(folder / "tmp"),
        }
        self.env.pop("FLEET_SEAT", None)

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh"],
            input=script,
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )

    def argv(self, seat: str) -> list[str]:
        return (self.folder / "records" / f"{seat}.argv").read_bytes().decode().split("\0")[:-1]

    def record(self, seat: str, name: str) -> str:
        return (self.folder / "records" / f"{seat}.{name}").read_text()

    def leftovers(self) -> list[Path]:
        return sorted((self.folder / "tmp").iterdir())


@pytest.fixture
def machine(short_path: Path) -> Machine:
    return Machine(short_path)


def of_text(folder: Path, text: str, *, binary: str | None = None) -> FanOut:
    path = folder / "x.roles.yaml"
    path.write_text(text)
    return from_manifest(load_manifest(path), binary=binary, layout=None)


@given(MANIFESTS, st.none() | WORDS)
def test_equal_input_gives_equal_bytes(manifest: Manifest, binary: str | None) -> None:
    folder = Path("/somewhere")
    for render in FORMATS.values():
        one = render(fan_out_of(manifest, folder, binary=binary))
        assert one.encode() == render(fan_out_of(manifest, folder, binary=binary)).encode()
        assert one.endswith("\n")


@given(MANIFESTS)
@settings(max_examples=20)
def test_no_word_of_a_manifest_ends_a_comment_or_a_line(manifest: Manifest) -> None:
    fan_out = fan_out_of(manifest, Path("/somewhere"), binary="agent")
    for render in (FORMATS["sh"], FORMATS["orca"], FORMATS["tmux"]):
        done = subprocess.run(["sh", "-n"], input=render(fan_out).encode(), capture_output=True, timeout=20)
        assert (done.returncode, done.stderr) == (0, b"")


@given(role=ROLES, brief=st.none() | WORDS)
@settings(max_examples=30)
def test_every_word_arrives_through_every_script(
    tmp_path_factory: pytest.TempPathFactory, role: Role, brief: str | None
) -> None:
    machine = Machine(tmp_path_factory.mktemp("m"))
    (machine.folder / (role.cwd or ".")).mkdir(exist_ok=True)
    if brief is not None:
        (machine.folder / "b.md").write_bytes(brief.encode())
        role = role._replace(brief="b.md")
    fan_out = fan_out_of(Manifest("t", "r", {"seat": role}, Budgets()), machine.folder)
    (launch,) = fan_out.launches
    (machine.folder / "seats").write_bytes(folder_files(fan_out.launches)["seats"].encode())
    for script in (FORMATS["sh"](fan_out), FORMATS["orca"](fan_out), "sh ./seats 1"):
        done = machine.run(script)
        assert (done.returncode, done.stderr) == (0, "")
        assert machine.argv("seat") == list(launch.words)
        (machine.folder / "records" / "seat.argv").unlink()


ODD = "it's a folder"
MANIFEST = f"""\
task: t
room: den
roles:
  critic: {{provider: anthropic, model: opus, cwd: "{ODD}", brief: long.md}}
  tester: {{provider: openai, model: gpt, worktree: "other one"}}
"""


def test_lines_to_copy(machine: Machine) -> None:
    (machine.folder / ODD).mkdir()
    (machine.folder / "long.md").write_text("x" * 20_000 + "\n\n\nend")
    fan_out = of_text(machine.folder, MANIFEST)
    done = machine.run(sh.render(fan_out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for launch in fan_out.launches:
        assert machine.argv(launch.name) == list(launch.words)
    assert machine.record("critic", "cwd") == f"{machine.folder / ODD}\n"
    assert machine.record("tester", "cwd") == f"{machine.folder}\n"
    assert machine.leftovers() == []


def test_a_role_whose_folder_is_gone_keeps_nobody_else_from_starting(machine: Machine) -> None:
    fan_out = of_text(machine.folder, MANIFEST.replace(", brief: long.md", ""))
    done = machine.run(sh.render(fan_out))
    assert ODD in done.stderr
    assert not (machine.folder / "records" / "critic.argv").exists()
    assert machine.argv("tester")


def test_the_references_lines(tmp_path: Path) -> None:
    """With ``--binary`` a line is what the reference's launcher prints: cd, program, arguments, each quoted."""
    fan_out = of_text(tmp_path, MANIFEST.replace(", brief: long.md", ""), binary="my agent")
    folder = f"'{tmp_path}/it'\\''s a folder'"
    start = f"cd {folder} && 'my agent' '--name' 'critic' '--provider' 'anthropic' '--model' 'opus' '--append-system-"
    assert f"\n{start}" in sh.render(fan_out)


def test_orca_changes_the_folder_only_where_the_manifest_says_one(machine: Machine) -> None:
    (machine.folder / ODD).mkdir()
    (machine.folder / "long.md").write_text("x" * 20_000)
    fan_out = of_text(machine.folder, MANIFEST)
    script = orca.render(fan_out)
    done = machine.run(script)
    assert (done.returncode, done.stderr) == (0, "")
    for launch in fan_out.launches:
        assert machine.argv(launch.name) == list(launch.words)
    assert machine.record("critic", "cwd") == f"{machine.folder / ODD}\n"
    assert machine.record("tester", "cwd") == "/\n"
    assert (machine.folder / "records" / "terminals").read_text() == "active|critic\nother one|tester\n"
    assert "cd " not in next(line for line in script.splitlines() if "tester" in line and "orca" in line)


def test_a_failed_orca_leaves_nothing(machine: Machine) -> None:
    (machine.folder / ODD).mkdir()
    (machine.folder / "long.md").write_text("x" * 20_000)
    machine.program("orca", "#!/bin/sh\necho 'no such worktree' >&2\nexit 3\n")
    done = machine.run(orca.render(of_text(machine.folder, MANIFEST)))
    assert (done.returncode, done.stderr) == (3, "no such worktree\n")
    assert machine.leftovers() == []


BLUEPRINT = """\
name: n
description: d
agents: {helper: {command: [python3, h.py]}}
teams:
  t:
    mode: deliberate
    layout: tiled
    members:
      - {agent: planner, model: anthropic/opus, env: {SPECIAL: "it's $x", API_KEY: sk-1}, args: [--verbose, ""]}
      - {agent: helper}
"""


def of_blueprint(folder: Path) -> FanOut:
    path = folder / "b.yaml"
    path.write_text(BLUEPRINT)
    return from_blueprint(load_blueprint(path), binary=None, layout=None)


@pytest.mark.parametrize("form", ["sh", "orca"])
def test_variables_of_a_member_reach_it_and_no_command_line(machine: Machine, form: str) -> None:
    script = FORMATS[form](of_blueprint(machine.folder))
    machine.program("orca", ORCA.replace("printf", 'printf \'%s\\n\' "$*" >>"$RECORDS/seen"; printf', 1))
    done = machine.run(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.record("planner", "special") == "it's $x"
    assert machine.argv("planner")[-4:-2] == ["--verbose", ""]
    seen = machine.folder / "records" / "seen"
    assert not seen.exists() or "sk-1" not in seen.read_text()


@pytest.mark.parametrize("form", ["plan", "json"])
def test_secrets_are_not_listed(tmp_path: Path, form: str) -> None:
    text = FORMATS[form](of_blueprint(tmp_path))
    assert "sk-1" not in text
    assert "***" in text


def test_the_object_for_programs(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("the brief")
    fan_out = of_text(tmp_path, MANIFEST, binary="agent")
    data = json.loads(listing.render(fan_out))
    assert list(data) == ["task", "room", "budgets", "launches"]
    assert (data["task"], data["room"], data["budgets"]) == ("t", "den", {"digest": 2000, "perMessage": 600})
    critic, tester = data["launches"]
    assert list(critic)[:11] == [
        *(
            "role",
            "room",
            "provider",
            "model",
            "briefPath",
            "cwd",
            "cwdExplicit",
            "worktree",
            "command",
            "args",
        ),
        "footer",
    ]
    assert (critic["cwd"], critic["cwdExplicit"]) == (str(tmp_path / ODD), True)
    assert (tester["cwd"], tester["cwdExplicit"]) == (str(tmp_path), False)
    assert critic["briefPath"] == str(tmp_path / "long.md")
    assert "briefPath" not in tester
    assert (critic["command"], tester["worktree"]) == ("agent", "other one")
    assert critic["args"][-2:] == ["--append-system-prompt", critic["footer"]]


def test_the_object_of_a_blueprint(tmp_path: Path) -> None:
    data = json.loads(listing.render(of_blueprint(tmp_path)))
    planner, helper = data["launches"]
    assert (planner["cwd"], planner["layout"], planner["window"]) == (None, "tiled", "t")
    assert (planner["provider"], planner["model"], planner["tools"]) == ("anthropic", "opus", True)
    assert planner["env"] == {"FLEET_SEAT": "planner", "SPECIAL": "it's $x", "API_KEY": "***"}
    assert (helper["command"], helper["args"], helper["runtime"]) == (None, [], "command")
    assert any("python3 h.py" in note for note in helper["notes"])


def test_a_path_that_is_no_text_on_disk_is_still_json(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    role = Role("anthropic", "m")
    text = listing.render(fan_out_of(Manifest("t", "r", {"a": role}, Budgets()), folder))
    assert json.loads(text.encode())["launches"][0]["cwd"] == str(folder)


def test_a_command_of_the_plan_can_be_copied(machine: Machine) -> None:
    (machine.folder / ODD).mkdir()
    (machine.folder / "long.md").write_text("a brief\nin 'two' lines")
    fan_out = of_text(machine.folder, MANIFEST)
    for launch in fan_out.launches:
        paragraph = plan.render(fan_out).split(f"\n\n{launch.name}\n")[1]
        command = (
            paragraph.split("\n  command ")[1].split("\n\ntester\n")[0].split("\n\nThis only prints.")[0]
        )
        assert machine.run(command).returncode == 0
        assert machine.argv("seat") == list(launch.words)


def test_a_text_without_end_is_only_named_in_the_plan(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("x" * 20_000)
    text = plan.render(of_text(tmp_path, MANIFEST))
    assert len(text) < 8_000
    assert "characters, in full with --format sh>'" in text
