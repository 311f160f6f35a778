"""How an interactive agent CLI is started with its model, its brief, its first prompt and the tools of its room.

Pure. Long texts are `Text` values in the argv; whoever writes a script puts them into files. Flags and variables were
tried with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, OpenCode 1.18, pi 1.6 and Copilot CLI 1.0.

The room is attached as an MCP server of the CLI, by a flag or a variable: never by the user's own settings. Where
neither is possible (`ATTACHABLE` lacks the CLI) the role speaks with the shell commands that its footer names.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "ATTACHABLE",
    "MAX_BRIEF_BYTES",
    "MAX_WORD_BYTES",
    "NATIVE",
    "Native",
    "Seating",
    "Text",
    "argument_vector",
    "native",
]

#: Runtimes that have a screen of their own.
NATIVE = frozenset({"claude", "codex", "gemini", "opencode", "pi", "copilot"})
#: Those that take an MCP server without a change of the user's own files. pi reads its agent folder and the project's.
#: Gemini would read a file named by a variable, but only if root owns it and every folder above it.
ATTACHABLE = NATIVE - {"gemini", "pi"}

#: What `roundtable` may find in its environment; each counts as unset when it is not there.
_VARIABLES = (
    *("FLEET_HOME", "XDG_RUNTIME_DIR"),
    *("ROUNDTABLE_MEMORY_DIR", "ROUNDTABLE_MEMORY_WRITER_ROLE", "ROUNDTABLE_MEMORY_COMMAND"),
)
#: A brief travels in one argument of a command, with a footer and quotes.
MAX_BRIEF_BYTES = 100_000
#: Bytes of one argument, as Linux limits it: 32 pages of 4 KiB with the final NUL.
MAX_WORD_BYTES = 131_071


class Text(NamedTuple):
    """One argument that is a text of any length. It has no newline at its end, which ``$(cat …)`` would lose."""

    kind: str  #: what it is, for people and as the name of its file: ``system``, ``prompt``, ``footer``, ``brief``
    text: str


class Seating(NamedTuple):
    """Who sits where, and what it is told."""

    name: str  #: of the seat
    room: str
    brief: str  #: ``""`` for none
    footer: str
    prompt: str  #: the first words


class Native(NamedTuple):
    """What starts one CLI."""

    argv: tuple[str | Text, ...] = ()  #: program first; ``()`` for a runtime without a screen of its own
    env: Mapping[str, str] = MappingProxyType({})  #: variables it needs; none is a secret


def native(
    runtime: str, provider: str | None, model: str | None, seating: Seating, extra: tuple[str, ...] = ()
) -> Native:
    """Return how ``runtime`` is started; `Native` without an argv for one without a screen of its own.

    ``extra`` are the member's own arguments; they stand before the first prompt.
    """
    # The footer goes first: it never begins with a dash, which some of these CLIs take for an option.
    system = Text("system", f"{seating.footer}\n\n{seating.brief.strip()}".strip())
    first = Text("prompt", seating.prompt.strip())
    both = Text("prompt", f"{system.text}\n\n{first.text}")  # where no flag adds to the system prompt
    qualified = f"{provider}/{model}" if provider and model else model
    server = ["mcp", "--as", seating.name, "--room", seating.room]
    flags: tuple[str | Text, ...]
    match runtime:
        case "claude":
            # Its tools would be deferred, and so unseen, without `alwaysLoad`. Both flags take several values: another
            # option ends them. `--` ends the options, so that no prompt can be taken for one.
            config = {"type": "stdio", "command": "roundtable", "args": server, "alwaysLoad": True}
            mcp = ("--mcp-config", _json({"mcpServers": {"roundtable": config}}))
            allowed = ("--allowedTools", "mcp__roundtable")
            flags = (*_model("--model", model), *mcp, *allowed, "--append-system-prompt", system)
            return Native(("claude", *flags, *extra, "--", first))
        case "codex":
            # Its background server would outlive the pane. What is not `required` may come after the first prompt.
            flags = ("--disable", "daemon_auto_start", *_model("-m", model), "-c", _codex_server(server))
            told = Text("system", f"developer_instructions={_toml(system.text)}")
            if len(told.text.encode()) > MAX_WORD_BYTES:
                return Native(("codex", *flags, *extra, "--", both))
            return Native(("codex", *flags, "-c", told, *extra, "--", first))
        case "gemini":
            return Native(("gemini", *_model("-m", model), *extra, "-i", both))
        case "opencode":
            config = {"type": "local", "command": ["roundtable", *server], "enabled": True}
            env = {"OPENCODE_CONFIG_CONTENT": _json({"mcp": {"roundtable": config}})}
            return Native(("opencode", *_model("-m", qualified), *extra, "--prompt", both), env)
        case "pi":
            flags = (*_model("--model", qualified), "--append-system-prompt", system)
            return Native(("pi", *flags, *extra, first))
        case "copilot":
            config = {"type": "local", "command": "roundtable", "args": server, "tools": ["*"]}
            mcp = ("--additional-mcp-config", _json({"mcpServers": {"roundtable": config}}))
            flags = (*_model("--model", model), *mcp, "--allow-tool", "roundtable")
            return Native(("copilot", *flags, *extra, "-i", both))
        case _:
            return Native()


def argument_vector(
    binary: str,
    name: str,
    provider: str | None,
    model: str | None,
    brief: str,
    brief_path: Path | None,
    footer: str,
) -> tuple[str | Text, ...]:
    """Return the reference's argument vector for any program that takes it; the footer is its last pair."""
    argv: list[str | Text] = [binary, "--name", name]
    argv += _model("--provider", provider)
    argv += _model("--model", model)
    if brief_path is not None:
        argv += ["--append-system-prompt", str(brief_path)]
    elif brief:
        argv += ["--append-system-prompt", Text("brief", brief.strip())]
    return (*argv, "--append-system-prompt", Text("footer", footer))


def _model(flag: str, value: str | None) -> tuple[str, ...]:
    return (flag, value) if value else ()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _codex_server(words: list[str]) -> str:
    """One override of Codex's configuration; names of seats and rooms need no escapes."""
    settings = {
        "command": "roundtable",
        "args": words,
        # Codex hands nothing but the usual variables down.
        "env_vars": list(_VARIABLES),
        "required": True,
        "default_tools_approval_mode": "approve",
    }
    inside = ",".join(f"{name}={_json(value)}" for name, value in settings.items())
    return f"mcp_servers.roundtable={{{inside}}}"


def _toml(text: str) -> str:
    """A basic string: the escapes of JSON are also TOML's, which moreover wants DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
