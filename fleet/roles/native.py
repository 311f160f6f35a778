"""The argv that starts an interactive agent CLI with its model, its brief and its first prompt.

Pure. Long texts are `Text` values in the argv; whoever writes a script puts them into files. Flags were tried with
Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, OpenCode 1.18, pi 1.6 and Copilot CLI 1.0.

Not here: MCP servers. The room is reached with the `roundtable` shell commands that the footer names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NATIVE", "Text", "argument_vector", "native"]

#: Runtimes that have a screen of their own.
NATIVE = frozenset({"claude", "codex", "gemini", "opencode", "pi", "copilot"})


@dataclass(frozen=True, slots=True)
class Text:
    """One argument that is a text of any length."""

    kind: str  #: what it is, for people and as the name of its file: ``system``, ``prompt``, ``footer``, ``brief``
    text: str


def native(
    runtime: str,
    provider: str | None,
    model: str | None,
    brief: str,
    footer: str,
    prompt: str,
    extra: tuple[str, ...] = (),
) -> tuple[str | Text, ...]:
    """Return the argv of ``runtime``, program first; ``()`` for a runtime without a screen of its own.

    ``extra`` are the member's own arguments; they stand before the first prompt.
    """
    # The footer goes first: it never begins with a dash, which some of these CLIs take for an option.
    system = Text("system", f"{footer}\n\n{brief.strip()}".strip())
    first = Text("prompt", prompt)
    both = Text("prompt", f"{system.text}\n\n{prompt}")  # where no flag adds to the system prompt
    qualified = f"{provider}/{model}" if provider and model else model
    match runtime:
        case "claude":
            # `--` ends options, so that no prompt can be taken for one.
            flags = _model("--model", model)
            return ("claude", *flags, "--append-system-prompt", system, *extra, "--", first)
        case "codex":
            # Its background server would outlive the pane.
            return ("codex", "--disable", "daemon_auto_start", *_model("-m", model), *extra, "--", both)
        case "gemini":
            return ("gemini", *_model("-m", model), *extra, "-i", both)
        case "opencode":
            return ("opencode", *_model("-m", qualified), *extra, "--prompt", both)
        case "pi":
            return ("pi", *_model("--model", qualified), "--append-system-prompt", system, *extra, first)
        case "copilot":
            return ("copilot", *_model("--model", model), *extra, "-i", both)
        case _:
            return ()


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
        argv += ["--append-system-prompt", Text("brief", brief)]
    return (*argv, "--append-system-prompt", Text("footer", footer))


def _model(flag: str, value: str | None) -> tuple[str, ...]:
    return (flag, value) if value else ()
