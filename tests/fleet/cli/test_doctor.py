"""`fleet doctor` as a whole: what it prints, when it fails, and that no secret and no hang comes through it."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from tests.fleet.cli.calling import Call

CANARY = "canary-5f2c"


@pytest.fixture
def machine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of programs that answer; everything secret in the environment has one value."""
    folder = place / "bin"
    folder.mkdir()
    for name, answer in {"git": "git version 2.39.5", "tmux": "tmux 3.3a", "claude": "2.1.332"}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\ncase "$1" in -V|--version) echo "{answer}";; *) exit 1;; esac\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))
    for name in (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "MY_PASSWORD",
        "DATABASE_URL",
        "X_API_KEY",
    ):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TMUX_TMPDIR", str(place))
    monkeypatch.delenv("TMUX", raising=False)
    return folder


def test_a_good_machine(call: Call, machine: Path) -> None:
    said = call("doctor")
    assert (said.code, said.err) == (0, "")
    for line in (
        "  ok       git version 2.39.5",
        "  ok       tmux 3.3a",
        f"  ok       2.1.332 ({machine}/claude)",
        "  ok       logged in by ANTHROPIC_API_KEY",
        "  note     not here",
        "           mend: npm install -g @openai/codex",
    ):
        assert line in said.out.splitlines()
    assert "set: ANTHROPIC_API_KEY, GH_TOKEN, OPENAI_API_KEY, X_API_KEY; members get none" in said.out


def test_no_secret_is_shown(call: Call, machine: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"token: {CANARY}\n")
    (machine / "codex").write_text('#!/bin/sh\necho "$OPENAI_API_KEY" >&2; exit 0\n')
    (machine / "codex").chmod(0o755)
    for words in (("doctor",), ("doctor", "--json")):
        said = call(*words)
        assert CANARY not in said.out + said.err


def test_as_data(call: Call, machine: Path) -> None:
    said = call("doctor", "--json")
    assert said.code == 0
    assert said.data["ok"] is True
    for finding in said.data["findings"]:
        assert set(finding) == {"area", "level", "text", "mend"}
        assert finding["level"] in ("ok", "note", "warning", "broken")
        # What asks for something to be done says what.
        assert finding["level"] in ("ok", "note") or finding["mend"]
    areas = list(dict.fromkeys(finding["area"] for finding in said.data["findings"]))
    assert areas == [
        *("python", "locale", "home", "socket", "git", "tmux", "agents"),
        *("claude", "codex", "gemini", "opencode", "pi", "copilot", "keys"),
    ]


def test_what_is_broken_is_named_and_fails(call: Call, machine: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    said = call("doctor")
    assert said.code == 1
    assert said.err.startswith("broken, and every run needs it: home")
    assert call("doctor", "--json").data["ok"] is False


def test_a_missing_tmux_or_cli_is_no_failure(call: Call, machine: Path) -> None:
    for name in ("tmux", "git", "claude"):
        (machine / name).unlink()
    assert call("doctor").code == 0


def test_a_cli_that_the_settings_name_has_to_be_here(call: Call, machine: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.yaml").write_text("defaults: {runtime: codex}\n")
    said = call("doctor")
    assert (said.code, said.err) == (1, "broken, and every run needs it: codex\n")


def test_nothing_hangs(call: Call, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fleet.cli import doctor

    monkeypatch.setattr(doctor, "_SECONDS", 2.0)
    for name in ("tmux", "codex"):
        (machine / name).write_text("#!/bin/sh\nexec sleep 300\n")
        (machine / name).chmod(0o755)
    (machine / "sleep").symlink_to("/bin/sleep")
    began = time.monotonic()
    said = call("doctor")
    assert time.monotonic() - began < 25
    assert "not looked at within 2 s" in said.out


def test_nothing_is_made(call: Call, machine: Path, place: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    call("doctor")
    assert sorted(tmp_path.rglob("*")) == before
