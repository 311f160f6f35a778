"""tmux: versions, options of a real server and of files, sockets that were left behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.doctor.asking import Answer, asker
from fleet.doctor.finding import Level
from fleet.doctor.tmux import configured, look_at_tmux, option_findings, options_in

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
pytestmark = pytest.mark.anyio


def answers(version: str) -> object:
    async def ask(argv: tuple[str, ...]) -> Answer:
        return Answer(0, version, "") if argv[1:] == ("-V",) else Answer(1, "", "no server running")

    return ask


@pytest.mark.parametrize(
    ("version", "level", "text"),
    [
        ("tmux 3.3a\n", Level.OK, "tmux 3.3a"),
        ("tmux next-3.6\n", Level.OK, "tmux next-3.6"),
        ("tmux master\n", Level.OK, "tmux master"),
        ("tmux 3.1c\n", Level.WARNING, "tmux 3.1c is older than 3.2"),
        ("tmux 3.7\n", Level.OK, "tmux 3.7"),
    ],
)
async def test_versions(tmp_path: Path, version: str, level: Level, text: str) -> None:
    environ = {"TMUX_TMPDIR": str(tmp_path)}
    findings = await look_at_tmux(answers(version), environ, tmp_path)  # type: ignore[arg-type]
    assert (findings[0].level, text in findings[0].text) == (level, True)
    assert any("garbles bracketed pastes" in f.text for f in findings) == ("3.7" in version)


async def test_a_missing_tmux_is_no_fault_of_runs(tmp_path: Path) -> None:
    ask = asker({"PATH": str(tmp_path)}, tmp_path)
    (finding,) = await look_at_tmux(ask, {"TMUX_TMPDIR": str(tmp_path)}, tmp_path)
    assert finding.level is Level.WARNING
    assert "fleet run does not" in finding.text
    assert finding.mend is not None


@pytest.fixture
def server(short_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a real server of its own, with options that surprise."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(short_path),
        "TMUX_TMPDIR": str(short_path),
        "LC_ALL": "C.UTF-8",
    }
    (short_path / ".tmux.conf").write_text(
        "set -g prefix C-a\nset -g destroy-unattached off\nset -g renumber-windows on\n"
    )
    subprocess.run(["tmux", "new-session", "-d", "sleep 600"], env=environ, check=True)
    for words in (["set", "-g", "base-index", "1"], ["setw", "-g", "pane-base-index", "1"]):
        subprocess.run(["tmux", *words], env=environ, check=True)
    yield environ
    subprocess.run(["tmux", "kill-server"], env=environ, check=False, capture_output=True)


def panes(environ: dict[str, str]) -> bytes:
    return subprocess.run(["tmux", "list-panes", "-a"], env=environ, capture_output=True, check=True).stdout


def sockets(folder: Path) -> list[Path]:
    return list(folder.glob("tmux-*/*"))


@needs_tmux
async def test_a_running_server_is_asked_and_left_as_it_is(server: dict[str, str], short_path: Path) -> None:
    before = panes(server)
    findings = await look_at_tmux(asker(server, short_path), server, short_path)
    texts = "\n".join(f.text for f in findings)
    for said in (
        "the prefix is C-a: detach with C-a d (of the running server)",
        "base-index is 1",
        "pane-base-index is 1",
        "renumber-windows is on",
        "not inside tmux",
    ):
        assert said in texts
    assert "destroy-unattached" not in texts
    assert panes(server) == before


@needs_tmux
async def test_no_server_is_started_to_find_out(short_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(short_path), "TMUX_TMPDIR": str(short_path)}
    (short_path / ".tmux.conf").write_text("set -g destroy-unattached on\n")
    findings = await look_at_tmux(asker(environ, short_path), environ, short_path)
    (found,) = [f for f in findings if "destroy-unattached" in f.text]
    assert (found.level, found.mend) == (Level.WARNING, "tmux set -g destroy-unattached off")
    assert f"in {short_path / '.tmux.conf'}" in found.text
    assert sockets(short_path) == []


async def test_inside_tmux_and_in_the_ghost_of_one(short_path: Path) -> None:
    path = short_path / "s"
    environ = {"TMUX": f"{path},1,0", "TMUX_TMPDIR": str(short_path)}
    ask = answers("tmux 3.3a")
    gone = await look_at_tmux(ask, environ, short_path)  # type: ignore[arg-type]
    (found,) = [f for f in gone if "a server that is gone" in f.text]
    assert (found.level, found.mend) == (Level.WARNING, "unset TMUX TMUX_PANE")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        there = await look_at_tmux(ask, environ, short_path)  # type: ignore[arg-type]
    assert any("instead of nesting" in f.text for f in there)
    assert any("TMUX stands over TMUX_TMPDIR" in f.text for f in there)


async def test_sockets_of_servers_that_are_gone(short_path: Path) -> None:
    folder = short_path / f"tmux-{os.geteuid()}"
    folder.mkdir()
    for name in ("dead one", "alive"):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / name))
    (folder / "alive").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "alive"))
        listening.listen()
        environ = {"TMUX_TMPDIR": str(short_path)}
        findings = await look_at_tmux(answers("tmux 3.3a"), environ, short_path)  # type: ignore[arg-type]
    (found,) = [f for f in findings if "left behind" in f.text]
    assert found.text.endswith(": dead one")
    assert found.mend == f"rm '{folder}/dead one'"


async def test_files_and_listings_are_read_the_same() -> None:
    file = (
        "# set -g prefix C-z\nset -g prefix C-a\nset-option -g  base-index 1\nsetw -g pane-base-index 1\n"
        "bind r source-file x\nset -g status off\nset -g default-command 'reattach-to-user-namespace -l zsh'\n"
    )
    assert configured(file) == {
        "prefix": "C-a",
        "base-index": "1",
        "pane-base-index": "1",
        "default-command": "reattach-to-user-namespace -l zsh",
    }
    listing = 'base-index 1\ndefault-command ""\nprefix C-a\nstatus-format[0] "#[x]"\nvisual-bell off\n'
    assert options_in(listing)["base-index"] == "1"
    texts = [f.text for f in option_findings(options_in(listing), "x")]
    assert texts == [
        "base-index is 1; Fleet goes by ids, scripts of yours may not (x)",
        "the prefix is C-a: detach with C-a d (x)",
    ]
    assert option_findings({}, "x") == []
