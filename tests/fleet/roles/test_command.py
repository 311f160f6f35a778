"""`roles`, `fleet validate` and `fleet schema` as people run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MINIMAL = "task: t\nroom: r\nroles: {critic: {provider: anthropic, model: opus}}\n"


def run(program: str, *words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    module = "fleet.cli.roles" if program == "roles" else "fleet.cli"
    code = f"from {module} import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "xml"], "'xml' is not one of 'plan', 'json', 'sh', 'tmux', 'orca'"),
        (["--format"], "requires an argument"),
        (["--frmat", "tmux"], "No such option"),
        (["a", "b"], "unexpected extra argument"),
        (["--layout", "diagonal"], "is not one of 'windows', 'tiled'"),
        (["missing.yaml"], "missing.yaml:1:1: file not found"),
        (["missing.roles.yaml"], "missing.roles.yaml:1:1: manifest not found"),
        (["nothing-of-that-name"], "known: "),
        ([], "no roles manifest here: looked for roles.yaml, fleet.roles.yaml, orphus.roles.yaml"),
        (["here.yaml", "--binary", " "], "--binary needs the name of a program"),
        (["here.yaml", "--format", "tmux", "--session-name", "..."], "has no letter or digit"),
    ],
)
def test_errors_leave_stdout_empty(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "here.yaml").write_text(MINIMAL)
    done = run("roles", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_which_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "blueprints").mkdir()
    found = []
    for name in (
        *("blueprints/roles.yaml", "my.roles.yaml", "orphus.roles.yaml", "fleet.roles.yaml", "roles.yaml"),
    ):
        (tmp_path / name).write_text(
            MINIMAL.replace("task: t", f"task: {name.replace('/', '_').split('.')[0]}")
        )
        done = run("roles", cwd=tmp_path)
        found.append(done.stdout.split()[1])
    assert found == ["blueprints_roles", "my", "orphus", "fleet", "roles"]


def test_two_manifests_are_not_guessed_between(tmp_path: Path) -> None:
    for name in ("a.roles.yaml", "b.roles.yaml"):
        (tmp_path / name).write_text(MINIMAL)
    done = run("roles", cwd=tmp_path)
    assert done.returncode == 2
    assert "several manifests here: a.roles.yaml, b.roles.yaml" in done.stderr


def test_the_same_bytes_with_and_without_the_program(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    (tmp_path / "bin" / "roundtable").symlink_to("claude")
    (tmp_path / "bare").mkdir()
    without = run("roles", "--format", "tmux", cwd=tmp_path, PATH=f"{tmp_path}/bare")
    having = run("roles", "--format", "tmux", cwd=tmp_path, PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert without.stdout == having.stdout
    assert without.stdout.startswith("#!/bin/sh\n")
    assert without.stderr.splitlines() == [
        "warning: critic: claude is not on PATH; its pane will say so and stay",
        "warning: roundtable is not on PATH; without it no role can speak in its room",
    ]
    assert having.stderr == ""


def test_a_changed_session_name_is_told_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    done = run("roles", "--format", "tmux", "--session-name", "a.b", cwd=tmp_path)
    assert "the session is called a_b" in done.stderr
    assert "session='a_b'\n" in done.stdout


def test_a_locale_without_utf8(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Grüße")
    (tmp_path / "roles.yaml").write_text(MINIMAL.replace("opus}", "opus, brief: b.md}"))
    done = run("roles", "--format", "tmux", cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "Grüße" in done.stdout


def test_fleet_roles_is_the_same_command(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    one, other = run("roles", cwd=tmp_path), run("fleet", "roles", cwd=tmp_path)
    assert one.stdout == other.stdout != ""


def test_a_bundled_blueprint_by_name(tmp_path: Path) -> None:
    done = run("roles", "design", cwd=tmp_path)
    assert done.returncode == 0
    assert "builder" in done.stdout


@pytest.mark.parametrize("form", ["plan", "json", "sh", "tmux", "orca"])
def test_two_calls_print_the_same_bytes(tmp_path: Path, form: str) -> None:
    (tmp_path / "b.md").write_text("a brief\n" * 600)
    (tmp_path / "roles.yaml").write_text(
        MINIMAL.replace("opus}", "opus, brief: b.md}, b: {provider: x, model: y}")
    )
    one = run("roles", "--format", form, cwd=tmp_path, PYTHONHASHSEED="1")
    other = run("fleet", "roles", "--format", form, cwd=tmp_path, PYTHONHASHSEED="2", LC_ALL="C", TZ="UTC-9")
    assert (one.returncode, one.stdout) == (0, other.stdout)
    assert "critic" in one.stdout


def test_what_a_start_must_not_pay_for(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    heavy = {"anyio", "msgspec", "jinja2", "rich", "libtmux", "pydantic"}

    def loaded(call: str, *words: str) -> set[str]:
        code = (
            f"import atexit, sys; from fleet.cli import {call}; "
            f"atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {call}()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0
        return set(done.stderr.split())

    for form in ("plan", "json", "sh", "tmux", "orca"):
        assert not loaded("roles", "--format", form) & (heavy | {"click", "shutil", "difflib"})
    assert not loaded("main", "roles", "--format", "tmux") & heavy
    assert not loaded("roles", "--help") & (heavy | {"yaml", "click"})
    assert not loaded("main", "--help") & (heavy | {"yaml", "click"})


def test_validate(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text(MINIMAL)
    (tmp_path / "bad.yaml").write_text("name: n\nteams: {t: {mode: chat, members: [{agent: a, count: 0}]}}\n")
    done = run("fleet", "validate", "roles.yaml", "bad.yaml", "gone.yaml", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "roles.yaml: valid\n"
    lines = done.stderr.splitlines()
    assert [line.split(" — ")[0] for line in lines] == [
        "bad.yaml:1:1: description",
        "bad.yaml:2:13: teams.t.mode",
        "bad.yaml:2:46: teams.t.members[0].count",
        "gone.yaml:1:1: file not found",
        f"{tmp_path}:1:1: file is not a regular file",
    ]


def test_validate_strict_and_json(tmp_path: Path) -> None:
    team = "{t: {mode: dispatch, rounds: 2, members: [{agent: a}]}}"
    (tmp_path / "w.yaml").write_text(f"name: n\ndescription: d\nteams: {team}\n")
    done = run("fleet", "validate", "w.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "w.yaml: valid, 1 warning\n")
    assert "w.yaml:3:29: teams.t.rounds — rounds has no effect" in done.stderr
    assert run("fleet", "validate", "--strict", "w.yaml", cwd=tmp_path).returncode == 2
    done = run("fleet", "validate", "--json", "w.yaml", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert (report["valid"], report["errors"]) == (True, [])
    assert report["warnings"][0]["key"] == "teams.t.rounds"
    assert report["warnings"][0]["line"] == 3


def test_validate_knows_the_runtimes(tmp_path: Path) -> None:
    team = "{t: {mode: deliberate, members: [{agent: a, runtime: cluade}, {agent: b, runtime: codex}]}}"
    (tmp_path / "w.yaml").write_text(
        f"name: n\ndescription: d\nteams: {team}\nagents: {{a: {{runtime: x}}}}\n"
    )
    done = run("fleet", "validate", "w.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "w.yaml: valid, 2 warnings\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith(
        'w.yaml:3:52: teams.t.members[0].runtime — "cluade" is not a runtime; known: claude,'
    )
    assert 'did you mean "claude"?' in lines[0]
    assert lines[1].startswith('w.yaml:4:14: agents.a.runtime — "x" is not a runtime')


def test_validate_does_not_mind_what_is_not_built() -> None:
    published = ROOT / "tests" / "fleet" / "blueprint" / "published" / "coding.fleet.yaml"
    assert run("fleet", "validate", "--strict", str(published), cwd=ROOT).returncode == 0


def test_schemas(tmp_path: Path) -> None:
    for words, title in ((["schema"], "Fleet blueprint"), (["schema", "roles"], "Roles manifest")):
        assert json.loads(run("fleet", *words, cwd=tmp_path).stdout)["title"] == title
    assert json.loads(run("roles", "--schema", cwd=tmp_path).stdout)["title"] == "Roles manifest"
    assert run("fleet", "schema", "nope", cwd=tmp_path).returncode == 2
