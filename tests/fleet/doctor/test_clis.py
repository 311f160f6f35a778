"""Agent CLIs: here or not, which version, logged in or not as far as files tell, trust questions, and never a hang."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest

from fleet.doctor.asking import asker
from fleet.doctor.clis import CLIS, look_at_clis
from fleet.doctor.finding import Finding, Level


class Machine:
    """A home, a folder and a PATH with nothing of this machine's own."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder, self.bin = root / "user", root / "work", root / "bin"
        for folder in (self.home, self.folder, self.bin):
            folder.mkdir()
        self.environ = {"PATH": str(self.bin), "HOME": str(self.home)}
        self.default_runtime: str | None = None
        self.seconds = 20.0

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def file(self, name: str, content: object) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    async def look(self) -> dict[str, list[Finding]]:
        ask = asker(self.environ, self.folder, seconds=self.seconds)
        found = await look_at_clis(
            ask, self.environ, self.home, self.folder, default_runtime=self.default_runtime
        )
        return {
            name: [f for f in found if f.area == name] for name in ("agents", *(cli.runtime for cli in CLIS))
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def said(findings: list[Finding], word: str) -> Finding:
    (found,) = [finding for finding in findings if word in finding.text]
    return found


pytestmark = pytest.mark.anyio


async def test_nothing_is_here(machine: Machine) -> None:
    found = await machine.look()
    for cli in CLIS:
        assert found[cli.runtime] == [
            Finding(cli.runtime, Level.NOTE, "not here", f"npm install -g {cli.package}")
        ]


async def test_one_that_the_settings_name_is_needed(machine: Machine) -> None:
    machine.default_runtime = "codex"
    (finding,) = (await machine.look())["codex"]
    assert (finding.level, finding.mend) == (Level.BROKEN, "npm install -g @openai/codex")


async def test_versions(machine: Machine) -> None:
    machine.program("claude", "echo '2.1.332 (Claude Code)'")
    machine.program("codex", "echo 'codex-cli 0.98.1'")
    machine.program("copilot", "echo broken >&2; exit 3")
    machine.program("opencode", "echo no number")
    found = await machine.look()
    assert said(found["claude"], "2.1.332").level is Level.OK
    assert said(found["codex"], "older than 0.171").mend == "npm install -g @openai/codex@latest"
    assert "does not say its version: broken" in said(found["copilot"], "version").text
    assert said(found["opencode"], "does not say its version").level is Level.WARNING


async def test_one_that_hangs_is_waited_for_within_a_bound_and_leaves_nothing(machine: Machine) -> None:
    machine.program("claude", "/bin/sleep 300 & /bin/sleep 300")
    machine.program("pi", "while :; do echo x; done")
    machine.seconds = 0.5
    began = time.monotonic()
    found = await machine.look()
    assert time.monotonic() - began < 20
    assert "no answer within 0.5 s" in said(found["claude"], "version").text
    assert said(found["pi"], "does not say its version").level is Level.WARNING


async def test_node_is_asked_where_it_is_needed(machine: Machine) -> None:
    machine.program("pi", "echo 1.6.0")
    machine.program("gemini", "echo 0.61.0")
    machine.program("node", "echo v20.1.0")
    found = await machine.look()
    assert "needs Node.js 22.19 or later, and node is 20.1.0" in said(found["pi"], "Node.js").text
    assert not [finding for finding in found["gemini"] if "Node.js" in finding.text]


@pytest.mark.parametrize(
    ("cli", "files", "environ", "level", "text"),
    [
        ("claude", {".claude/.credentials.json": {"a": 1}}, {}, Level.OK, "logged in ("),
        ("claude", {}, {"ANTHROPIC_API_KEY": "canary"}, Level.OK, "logged in by ANTHROPIC_API_KEY"),
        ("claude", {}, {"ANTHROPIC_API_KEY": " "}, Level.WARNING, "not logged in"),
        ("claude", {".claude.json": "not json"}, {}, Level.WARNING, "not logged in"),
        ("codex", {".codex/auth.json": {"tokens": "canary"}}, {}, Level.OK, "logged in ("),
        ("codex", {".codex/auth.json": "{}"}, {}, Level.WARNING, "not logged in"),
        ("codex", {"moved/auth.json": {"a": "b"}}, {"CODEX_HOME": "HOME/moved"}, Level.OK, "logged in ("),
        ("gemini", {".gemini/oauth_creds.json": {"a": "b"}}, {}, Level.OK, "logged in ("),
        (
            "gemini",
            {".gemini/settings.json": {"security": {"auth": {"x": 1}}}},
            {},
            Level.NOTE,
            "cannot be told",
        ),
        ("gemini", {}, {}, Level.WARNING, "not logged in"),
        ("opencode", {".local/share/opencode/auth.json": {"x": {}}}, {}, Level.OK, "logged in ("),
        ("opencode", {}, {}, Level.NOTE, "cannot be told"),
        ("pi", {}, {}, Level.NOTE, "cannot be told"),
        ("copilot", {}, {"GH_TOKEN": "canary"}, Level.OK, "logged in by GH_TOKEN"),
        ("copilot", {".copilot/config.json": {"loggedInUsers": ["x"]}}, {}, Level.OK, "logged in"),
    ],
)
async def test_logins(
    machine: Machine, cli: str, files: dict[str, object], environ: dict[str, str], level: Level, text: str
) -> None:
    machine.program(cli, "echo 99.0.0")
    for name, content in files.items():
        machine.file(name, content)
    machine.environ |= {name: value.replace("HOME", str(machine.home)) for name, value in environ.items()}
    findings = (await machine.look())[cli]
    found = next(f for f in findings if "logged in" in f.text)
    assert (found.level, text in found.text) == (level, True)
    assert (found.mend is None) == (level is Level.OK)
    assert not [f for f in findings if "canary" in f.text]


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_trust_questions(machine: Machine, *, is_trusted: bool) -> None:
    here = str(machine.folder if is_trusted else machine.home)
    machine.file(".claude.json", {"projects": {here: {"hasTrustDialogAccepted": True}}})
    machine.file(".codex/config.toml", f'[projects."{here}"]\ntrust_level = "trusted"\n')
    machine.file(".gemini/trustedFolders.json", {here: "TRUST_FOLDER"})
    machine.file(".copilot/config.json", {"trustedFolders": [here]})
    for name in ("claude", "codex", "gemini", "copilot"):
        machine.program(name, "echo 99.0.0")
    found = await machine.look()
    for name in ("claude", "codex", "gemini", "copilot"):
        finding = next(f for f in found[name] if "trusts this" in f.text or "may trust" in f.text)
        assert finding.level is (Level.OK if is_trusted else Level.NOTE)
        assert (finding.mend is None) == is_trusted


async def test_traps_of_standard_input_are_told(machine: Machine) -> None:
    for cli in CLIS:
        machine.program(cli.runtime, "echo 99.0.0")
    found = await machine.look()
    assert said(found["codex"], "reads an open stdin").mend == "codex exec … < /dev/null"
    assert said(found["codex"], "outlives the pane").mend == "codex --disable daemon_auto_start"
    assert said(found["gemini"], "ignores SIGTERM").mend == "export GEMINI_CLI_NO_RELAUNCH=true"
