"""Each agent CLI: whether it is here, which version, logged in or not as far as files and names tell, and its traps.

Logins are looked for where the CLI keeps them. "Unknown" is an answer: a keychain, or a file of another form than was
seen, is not guessed about. Facts were seen with the versions in `CLIS`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import anyio

from fleet.agents.choose import BUILT
from fleet.agents.present import where_is
from fleet.doctor.asking import Ask, version_in
from fleet.doctor.finding import Finding, broken, fine, note, warning

__all__ = ["CLIS", "Cli", "Login", "look_at_clis"]

#: Files of settings are a few pages; Claude Code's may hold a history.
_MAX_BYTES = 8 << 20


class Login(Enum):
    """Whether a CLI could work as somebody."""

    YES = "logged in"
    NO = "not logged in"
    UNKNOWN = "whether it is logged in cannot be told from here"


@dataclass(frozen=True, slots=True)
class Cli:
    """What is known of one CLI."""

    runtime: str
    package: str  #: on npm
    seen: tuple[int, int]  #: the version that was tried
    home_variable: str  #: moves its folder
    folder: str  #: its folder below the home folder
    login_files: tuple[str, ...]  #: one of them is there after a login
    login_keys: tuple[str, ...]  #: one of them set is as good as a login
    log_in: str  #: the command
    node: tuple[int, int] | None = None  #: the oldest Node.js it runs on; ``None`` if it brings its own


CLIS = (
    Cli(
        "claude",
        "@anthropic-ai/claude-code",
        (2, 1),
        "CLAUDE_CONFIG_DIR",
        ".claude",
        (".credentials.json",),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        "claude /login",
    ),
    Cli(
        "codex",
        "@openai/codex",
        (0, 171),
        "CODEX_HOME",
        ".codex",
        ("auth.json",),
        ("CODEX_API_KEY", "OPENAI_API_KEY"),
        "codex login",
    ),
    Cli(
        "gemini",
        "@google/gemini-cli",
        (0, 61),
        "GEMINI_CLI_HOME",
        ".gemini",
        ("oauth_creds.json",),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini, then /auth",
        node=(20, 0),
    ),
    Cli(
        "opencode",
        "opencode-ai",
        (1, 18),
        "",
        ".local/share/opencode",
        ("auth.json",),
        (),
        "opencode auth login",
    ),
    Cli(
        "pi",
        "@earendil-works/pi-coding-agent",
        (1, 6),
        "PI_CODING_AGENT_DIR",
        ".pi/agent",
        ("auth.json",),
        (),
        "pi, then /login",
        node=(22, 19),
    ),
    Cli(
        "copilot",
        "@github/copilot",
        (1, 0),
        "COPILOT_HOME",
        ".copilot",
        (),
        ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
        "copilot, then /login",
    ),
)


async def look_at_clis(
    ask: Ask, environ: Mapping[str, str], home: Path, folder: Path, *, default_runtime: str | None = None
) -> list[Finding]:
    """Every CLI, asked at the same time. ``home`` is the user's home folder, ``folder`` where agents would work.

    A missing one is no fault unless the user's settings name it (``default_runtime``).
    """
    by_cli: dict[str, list[Finding]] = {}
    node = await _node(ask, environ)

    async def look(cli: Cli) -> None:
        by_cli[cli.runtime] = await _look(cli, ask, environ, home, folder, node, default_runtime)

    async with anyio.create_task_group() as group:
        for cli in CLIS:
            group.start_soon(look, cli)
    findings = [finding for cli in CLIS for finding in by_cli[cli.runtime]]
    if any(cli.runtime not in BUILT for cli in CLIS):
        text = "roles and fleet up start these CLIs; fleet run cannot fill a seat with one yet"
        findings.insert(
            0, note("agents", text, "fleet run FILE --runtime rehearsal, or a `command` of your own")
        )
    return findings


async def _look(
    cli: Cli,
    ask: Ask,
    environ: Mapping[str, str],
    home: Path,
    folder: Path,
    node: tuple[int, ...] | None,
    default_runtime: str | None,
) -> list[Finding]:
    path = where_is(cli.runtime, environ)
    if path is None:
        install = f"npm install -g {cli.package}"
        if default_runtime == cli.runtime:
            return [
                broken(cli.runtime, "not here, though defaults.runtime in the settings names it", install)
            ]
        return [note(cli.runtime, "not here", install)]
    answer = await ask((path, "--version"))
    version = version_in(answer.text) if answer.is_good else None
    if version is None:
        why = answer.problem or f"exit {answer.code}"
        findings = [
            warning(cli.runtime, f"{path} does not say its version: {why}", f"{cli.runtime} --version")
        ]
    else:
        findings = [fine(cli.runtime, f"{'.'.join(map(str, version))} ({path})")]
        if version[:2] < cli.seen:
            seen = ".".join(map(str, cli.seen))
            text = f"older than {seen}, with which it was tried; flags may be missing"
            findings.append(warning(cli.runtime, text, f"npm install -g {cli.package}@latest"))
    if cli.node is not None and node is not None and node[:2] < cli.node:
        needed = ".".join(map(str, cli.node))
        text = f"needs Node.js {needed} or later, and node is {'.'.join(map(str, node))}"
        findings.append(warning(cli.runtime, text, "install a newer Node.js"))
    own = _own_folder(cli, environ, home)
    findings.append(_login(cli, environ, home, own))
    findings += _trust(cli, environ, own, home, folder)
    findings += _traps(cli)
    return findings


async def _node(ask: Ask, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    """The version of Node.js, asked only where a CLI that needs it is here."""
    if not any(cli.node is not None and where_is(cli.runtime, environ) for cli in CLIS):
        return None
    if where_is("node", environ) is None:
        return None
    answer = await ask(("node", "--version"))
    return version_in(answer.text) if answer.is_good else None


def _own_folder(cli: Cli, environ: Mapping[str, str], home: Path) -> Path:
    moved = environ.get(cli.home_variable, "") if cli.home_variable else ""
    if cli.runtime == "gemini" and moved:  # names the parent of its folder
        return Path(moved, ".gemini")
    if cli.runtime == "opencode":
        data = environ.get("XDG_DATA_HOME", "")
        return Path(data, "opencode") if data else home / cli.folder
    return Path(moved) if moved else home / cli.folder


def _login(cli: Cli, environ: Mapping[str, str], home: Path, own: Path) -> Finding:
    named = next((name for name in cli.login_keys if environ.get(name, "").strip()), None)
    if named is not None:
        return fine(cli.runtime, f"{Login.YES.value} by {named}")
    file = next((own / name for name in cli.login_files if _has_content(own / name)), None)
    if file is not None:
        return fine(cli.runtime, f"{Login.YES.value} ({file})")
    state = _without_a_file(cli, environ, home, own)
    if state is Login.YES:
        return fine(cli.runtime, state.value)
    if state is Login.UNKNOWN:
        return note(cli.runtime, state.value, cli.log_in)
    return warning(cli.runtime, state.value, cli.log_in)


def _without_a_file(cli: Cli, environ: Mapping[str, str], home: Path, own: Path) -> Login:
    """What else tells of a login."""
    match cli.runtime:
        case "claude":
            account = _json(_claude_settings(own, home, environ)).get("oauthAccount")
            # On macOS the secret itself is in the keychain, which is nobody's business to open.
            return (
                Login.YES if account and sys.platform == "darwin" else Login.UNKNOWN if account else Login.NO
            )
        case "copilot":
            config = _json(own / "config.json")
            is_known = any(
                config.get(key) for key in ("loggedInUsers", "logged_in_users", "lastLoggedInUser")
            )
            return Login.YES if is_known else Login.UNKNOWN
        case "gemini":
            security = _json(own / "settings.json").get("security")
            auth = security.get("auth") if isinstance(security, dict) else None
            return Login.UNKNOWN if auth else Login.NO
        case "opencode" | "pi":
            # Both take the key of any provider from the environment or their own settings.
            return Login.UNKNOWN
        case _:
            return Login.NO


def _trust(cli: Cli, environ: Mapping[str, str], own: Path, home: Path, folder: Path) -> list[Finding]:
    """Whether the first start in this folder stops at a question nobody sees."""
    mend = f"start {cli.runtime} once in {folder} and answer"
    match cli.runtime:
        case "claude":
            projects = _json(_claude_settings(own, home, environ)).get("projects")
            known = projects.get(str(folder)) if isinstance(projects, dict) else None
            is_trusted = isinstance(known, dict) and known.get("hasTrustDialogAccepted") is True
        case "codex":
            is_trusted = _is_in(own / "config.toml", f'[projects."{folder}"]')
        case "gemini":
            is_trusted = any(_is_below(folder, path) for path in _json(own / "trustedFolders.json"))
        case "copilot":
            listed = _json(own / "config.json").get("trustedFolders")
            is_trusted = isinstance(listed, list) and any(_is_below(folder, str(path)) for path in listed)
        case _:
            return []
    if is_trusted:
        return [fine(cli.runtime, "trusts this folder")]
    return [note(cli.runtime, "asks at its first start here whether it may trust this folder", mend)]


def _traps(cli: Cli) -> list[Finding]:
    """What surprises whoever starts it from a program."""
    match cli.runtime:
        case "claude" if os.geteuid() == 0:
            text = "refuses --dangerously-skip-permissions for root"
            return [note(cli.runtime, text, "run it as another user, or set IS_SANDBOX=1 in a container")]
        case "codex":
            return [
                note(
                    cli.runtime,
                    "codex exec reads an open stdin to its end before it begins",
                    "codex exec … < /dev/null",
                ),
                note(
                    cli.runtime,
                    "its screen starts a background server that outlives the pane; roles and fleet up switch that off",
                    "codex --disable daemon_auto_start",
                ),
            ]
        case "gemini":
            text = "starts itself a second time, and the first one ignores SIGTERM"
            return [note(cli.runtime, text, "export GEMINI_CLI_NO_RELAUNCH=true")]
        case "opencode":
            return [note(cli.runtime, "takes 4 to 10 s to draw its screen")]
        case "pi":
            return [note(cli.runtime, "has no permissions: every tool runs")]
        case _:
            return []


def _claude_settings(own: Path, home: Path, environ: Mapping[str, str]) -> Path:
    return own / ".claude.json" if environ.get("CLAUDE_CONFIG_DIR") else home / ".claude.json"


def _json(path: Path) -> dict[str, object]:
    """A file's object; ``{}`` for whatever cannot be read as one."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 2  # more than `{}`
    except OSError:
        return False


def _is_in(path: Path, words: str) -> bool:
    try:
        with path.open("rb") as file:
            return words.encode("utf-8", "surrogateescape") in file.read(_MAX_BYTES)
    except OSError:
        return False


def _is_below(folder: Path, path: str) -> bool:
    return bool(path) and folder.is_relative_to(path)
