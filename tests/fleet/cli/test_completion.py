"""Completion, asked the way the shells ask it, and in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.cli.calling import Call

SHELLS = ("bash", "zsh", "fish")
PROGRAMS = {"fleet": "fleet.cli:main", "roles": "fleet.cli:roles", "roundtable": "roundtable.cli:main"}


def programs(folder: Path) -> Path:
    """A folder with the three commands of this interpreter."""
    folder.mkdir()
    for name, target in PROGRAMS.items():
        module, _, function = target.partition(":")
        path = folder / name
        path.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        path.chmod(0o755)
    return folder


def offered(program: str, line: str, place: Path) -> list[str]:
    """What bash would be told for the last word of ``line``."""
    module, _, function = PROGRAMS[program].partition(":")
    words = line.split(" ")
    environ = {
        **os.environ,
        f"_{program.upper()}_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    code = f"import sys; sys.argv = [{program!r}]; from {module} import {function}; {function}()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, cwd=place, capture_output=True, text=True
    )
    assert done.stderr == ""
    return [row.partition(",")[2] for row in done.stdout.splitlines() if row.startswith("plain,")]


@pytest.mark.parametrize(
    ("program", "line", "among"),
    [
        ("fleet", "fleet val", {"validate"}),
        ("fleet", "fleet ", {"run", "list", "doctor"}),
        ("fleet", "fleet run --de", {"--deadline"}),
        ("fleet", "fleet run des", {"design"}),
        ("fleet", "fleet run design --runtime reh", {"rehearsal"}),
        ("fleet", "fleet show ours", {"ours"}),
        ("fleet", "fleet trust crit", {"critic"}),
        ("fleet", "fleet completion z", {"zsh"}),
        ("roles", "roles --format ", {"plan", "tmux"}),
        ("roundtable", "roundtable po", {"post"}),
    ],
)
def test_what_is_offered(place: Path, program: str, line: str, among: set[str]) -> None:
    folder = place / ".fleet/blueprints"
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text("")
    (folder / "two lines\n.yaml").write_text("")
    # A manifest that lies here is not printed instead of an answer.
    (place / "roles.yaml").write_text("task: t\nroom: r\nroles: {a: {provider: p, model: m}}\n")
    assert among <= set(offered(program, line, place))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_names_every_program(call: Call, shell: str) -> None:
    said = call("completion", shell)
    assert (said.code, said.err) == (0, "")
    for program in PROGRAMS:
        assert f"_{program.upper()}_COMPLETE={shell}_complete" in said.out
    assert call("completion", "cmd").code == 2


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_takes_the_script(call: Call, place: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = place / "script"
    script.write_text(call("completion", shell).out)
    done = subprocess.run([program, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(("line", "completed"), [("fleet val", "validate"), ("fleet show desi", "design")])
def test_bash_completes(call: Call, place: Path, line: str, completed: str) -> None:
    script = place / "script"
    script.write_text(call("completion", "bash").out)
    words = line.split(" ")
    ask = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
        'compopt() { :; }; _fleet_completion fleet; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environ = {**os.environ, "PATH": f"{programs(place / 'bin')}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], cwd=place, env=environ, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([completed], "")
