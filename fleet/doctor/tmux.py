"""tmux: its version, the server that runs, and the options that surprise whoever starts agents in it.

A running server is asked; without one the configuration files are read, since starting one would run them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from fleet.doctor.asking import Ask
from fleet.doctor.finding import Finding, fine, note, warning
from fleet.doctor.home import is_served
from fleet.tmux import OLDEST, version_of

__all__ = ["configured", "look_at_tmux", "option_findings", "options_in"]

#: Of the three tables of options, those that are looked at, with what tmux has by default.
_DEFAULTS = {
    "base-index": "0",
    "default-command": "",
    "destroy-unattached": "off",
    "exit-unattached": "off",
    "pane-base-index": "0",
    "prefix": "C-b",
    "remain-on-exit": "off",
    "renumber-windows": "off",
}
_SET = re.compile(r"^\s*(?:set|set-option|setw|set-window-option)\s+(?:-\w+\s+)*([a-z-]+)\s+(.*?)\s*$")
_PAIR = re.compile(r"^([a-z-]+)(?:\[\d+\])?(?: (.*))?$")
#: Sockets looked at in one folder.
_MAX_SOCKETS = 50
#: A configuration file is a few pages.
_MAX_BYTES = 1 << 20


async def look_at_tmux(ask: Ask, environ: Mapping[str, str], home: Path) -> list[Finding]:
    """Everything about tmux; ``home`` is the user's home folder."""
    answer = await ask(("tmux", "-V"))
    oldest = ".".join(map(str, OLDEST))
    if not answer.is_good:
        needed = f"roles --format tmux and fleet up need tmux {oldest} or later; fleet run does not"
        mend = "apt-get install tmux   (macOS: brew install tmux)"
        return [
            warning(
                "tmux", f"tmux cannot be used: {answer.problem or answer.text.strip()[:80]}; {needed}", mend
            )
        ]
    version = answer.text.strip().splitlines()[0][:60] if answer.text.strip() else "tmux"
    if version_of(version) < OLDEST:
        return [
            warning(
                "tmux",
                f"{version} is older than {oldest}, which roles and fleet up need",
                "install a newer tmux",
            )
        ]
    findings = [fine("tmux", version)]
    if re.search(r"\b3\.7(?:$|\s|-)", version):
        text = "3.7 itself refuses session names with dots and garbles bracketed pastes"
        findings.append(warning("tmux", text, "install tmux 3.7a or later"))
    findings += _inside(environ)
    findings += _left_behind(environ)
    options = await _options(ask, environ, home)
    return [*findings, *option_findings(*options)]


def option_findings(options: Mapping[str, str], where: str) -> list[Finding]:
    """What is to be said of options that differ from tmux's own; ``where`` they were found."""
    findings: list[Finding] = []
    for name, usual in _DEFAULTS.items():
        value = options.get(name, usual).strip("'\"")
        if value == usual:
            continue
        match name:
            case "destroy-unattached":
                text = f"{name} {value}: a session ends as soon as nobody looks at it, with all agents in it"
                findings.append(warning("tmux", f"{text} ({where})", "tmux set -g destroy-unattached off"))
            case "exit-unattached":
                text = f"{name} {value}: the server ends when the last terminal leaves, with all agents in it"
                findings.append(warning("tmux", f"{text} ({where})", "tmux set -s exit-unattached off"))
            case "default-command":
                text = f"{name} is set: panes you open by hand run it; those of Fleet run their agent"
                findings.append(note("tmux", f"{text} ({where})"))
            case "prefix":
                findings.append(
                    note("tmux", f"the prefix is {value[:20]}: detach with {value[:20]} d ({where})")
                )
            case "remain-on-exit":
                findings.append(
                    note("tmux", f"{name} {value[:20]}: panes stay when their program ends ({where})")
                )
            case _:
                text = f"{name} is {value[:20]}; Fleet goes by ids, scripts of yours may not"
                findings.append(note("tmux", f"{text} ({where})"))
    return findings


def configured(text: str) -> dict[str, str]:
    """The options that a configuration file sets, the last of a name; what it runs or includes is not followed."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _SET.match(line)
        if match and match[1] in _DEFAULTS:
            found[match[1]] = match[2].strip("'\"")
    return found


def options_in(listing: str) -> dict[str, str]:
    """What ``tmux show-options`` prints."""
    pairs = (_PAIR.match(line) for line in listing.splitlines())
    return {pair[1]: (pair[2] or "").strip("'\"") for pair in pairs if pair}


async def _options(ask: Ask, environ: Mapping[str, str], home: Path) -> tuple[dict[str, str], str]:
    """The options, and where they were found: of the server if one runs, else of the files it would read."""
    shown = await ask(("tmux", "show-options", "-g"))
    if shown.is_good:
        options = options_in(shown.text)
        for table in ("-s", "-gw"):
            answer = await ask(("tmux", "show-options", table))
            options |= options_in(answer.text) if answer.is_good else {}
        return options, "of the running server"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    for path in (home / ".tmux.conf", config / "tmux" / "tmux.conf"):
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", errors="replace")
        except OSError:
            continue
        return configured(text), f"in {path}"
    return {}, "by default"


def _inside(environ: Mapping[str, str]) -> list[Finding]:
    """What ``$TMUX`` says, and whether it is true."""
    value = environ.get("TMUX", "")
    if not value:
        return [fine("tmux", "not inside tmux: fleet up attaches this terminal")]
    path = Path(value.split(",")[0])
    if is_served(path) is False:
        text = f"TMUX names a server that is gone ({path}); tmux commands here fail with it"
        return [warning("tmux", text, "unset TMUX TMUX_PANE")]
    found = [note("tmux", f"inside tmux ({path}): fleet up switches this terminal instead of nesting")]
    if environ.get("TMUX_TMPDIR"):
        found.append(note("tmux", "TMUX stands over TMUX_TMPDIR: commands here reach the server you are in"))
    return found


def _left_behind(environ: Mapping[str, str]) -> list[Finding]:
    """Sockets of tmux servers that are gone."""
    folder = Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.geteuid()}"  # noqa: S108 - where tmux has them
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_socket())[:_MAX_SOCKETS]
    except OSError:
        return []
    dead = [path for path in paths if is_served(path) is False]
    if not dead:
        return []
    names = ", ".join(path.name for path in dead[:5]) + (
        f" and {len(dead) - 5} more" if len(dead) > 5 else ""
    )
    mend = "rm " + " ".join(shlex.quote(str(path)) for path in dead)
    return [note("tmux", f"left behind by servers that are gone in {folder}: {names}", mend)]
