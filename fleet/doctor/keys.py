"""Keys that programs here would find in the environment, by name; never a value, a length or a part of one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fleet.doctor.finding import Finding, fine, note

__all__ = ["look_at_keys"]

#: Read by agent CLIs or model libraries.
_KNOWN = frozenset(
    """ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN CODEX_API_KEY COPILOT_GITHUB_TOKEN
    COPILOT_PROVIDER_API_KEY GEMINI_API_KEY GH_TOKEN GITHUB_TOKEN GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY
    OPENAI_API_KEY""".split()  # noqa: SIM905 - reads better than a dozen literals
)
_SHAPE = re.compile(r"[A-Z][A-Z0-9_]{0,60}_API_KEY")


def look_at_keys(environ: Mapping[str, str]) -> list[Finding]:
    """One finding for those that are set, one for those that are set to nothing."""
    names = sorted(name for name in environ if name in _KNOWN or _SHAPE.fullmatch(name))
    present = [name for name in names if environ[name].strip()]
    empty = [name for name in names if not environ[name].strip()]
    findings = []
    if present:
        text = f"set: {', '.join(present)}; members get none of them unless their env names it"
        findings.append(fine("keys", text))
    if empty:
        findings.append(note("keys", f"set to nothing: {', '.join(empty)}", f"unset {' '.join(empty)}"))
    return findings or [
        note("keys", "no model provider's key is in the environment; agent CLIs may have logins of their own")
    ]
