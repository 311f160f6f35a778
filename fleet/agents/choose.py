"""Which runtime fills a seat, and why. Pure: what is installed is passed in.

Not here: whether that runtime is built, found or agreed to; the reason says whether somebody named it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BUILT", "CLIS", "PROVIDERS", "RUNTIMES", "Choice", "choose", "provider_of"]

#: Every name a blueprint may give as a runtime, and what it needs.
RUNTIMES = {
    "claude": "the Claude Code CLI",
    "codex": "the Codex CLI",
    "gemini": "the Gemini CLI",
    "opencode": "the OpenCode CLI",
    "pi": "the pi CLI",
    "copilot": "the GitHub Copilot CLI",
    "acp": "a program that speaks the Agent Client Protocol, given by `command`",
    "model": "the extra `agents` and a key or a base URL",
    "local": "the extra `local`",
    "command": "`command`, the argv of any program",
    "human": "a person at a terminal or browser",
    "rehearsal": "nothing",
}
#: The runtimes this version has.
BUILT = frozenset({"command", "rehearsal"})
#: Runtimes that are an agent CLI, with the program's name.
CLIS = {name: name for name in ("claude", "codex", "gemini", "opencode", "pi", "copilot")}
#: Which runtime is at home with a provider's models; every other provider goes to `_ELSEWHERE`.
PROVIDERS = {"anthropic": "claude", "openai": "codex", "google": "gemini"}
_ELSEWHERE = "opencode"


@dataclass(frozen=True, slots=True)
class Choice:
    """A runtime for one seat."""

    runtime: str
    reason: str  #: for people: ``runtime of the member``
    is_named: (
        bool  #: whether the command line, the blueprint or the settings named it; if not, nobody agreed to it
    )


def choose(
    *,
    override: str | None = None,
    member: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    default: str | None = None,
    found: str | None = None,
) -> Choice:
    """Return the first that applies: command line, member, agent, provider, settings, a CLI, rehearsal.

    ``model`` is ``provider/model``; a bare model name names no provider and decides nothing. ``found`` is the
    first CLI that is installed and logged in, or ``None``.
    """
    provider = provider_of(model)
    if override is not None:
        return Choice(override, "--runtime on the command line", is_named=True)
    if member is not None:
        return Choice(member, "runtime of the member", is_named=True)
    if agent is not None:
        return Choice(agent, "runtime of the agent", is_named=True)
    if provider is not None:
        return Choice(PROVIDERS.get(provider, _ELSEWHERE), f"provider {provider} of the model", is_named=True)
    if default is not None:
        return Choice(default, "defaults.runtime in the settings", is_named=True)
    if found is not None:
        return Choice(found, "the first CLI found", is_named=False)
    return Choice("rehearsal", "nothing else was named or found", is_named=False)


def provider_of(model: str | None) -> str | None:
    """The provider of ``provider/model`` in lower case; ``None`` for a bare model name."""
    provider, slash, rest = (model or "").partition("/")
    return provider.lower() if provider and slash and rest else None
