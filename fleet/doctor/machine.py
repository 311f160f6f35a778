"""The machine: interpreter, locale and git."""

from __future__ import annotations

import os.path
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from fleet.blueprint.places import Places
from fleet.doctor.asking import Ask, version_in
from fleet.doctor.finding import Finding, fine, note, warning

__all__ = ["look_at_git", "look_at_locale", "look_at_python"]

#: What ``git worktree add --no-track`` and its porcelain list need.
_OLDEST_GIT = (2, 31)


def look_at_python() -> list[Finding]:
    """The interpreter that runs this."""
    version = ".".join(map(str, sys.version_info[:3]))
    return [fine("python", f"Python {version} on {platform.system()} ({sys.executable})")]


def look_at_locale(environ: Mapping[str, str]) -> list[Finding]:
    """Whether programs will take text beyond ASCII for text."""
    name = next((key for key in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(key)), None)
    # A locale's name is shown: it is no secret, and it is what has to be mended.
    value = environ.get(name, "") if name else ""
    if value.lower().replace("-", "").endswith(("utf8", "utf8@euro")):
        return [fine("locale", f"{name}={value[:40]}")]
    told = f"{name}={value[:40]!r} is no UTF-8 locale" if name else "none of LC_ALL, LC_CTYPE and LANG is set"
    consequence = "tmux shows every letter beyond ASCII as _, and some programs refuse such text"
    best = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    return [warning("locale", f"{told}: {consequence}", f"export LC_ALL={best}")]


async def look_at_git(ask: Ask, places: Places) -> list[Finding]:
    """Whether git is here and where its repository begins."""
    answer = await ask(("git", "--version"))
    if answer.code is None:
        mend = "apt-get install git   (macOS: xcode-select --install)"
        return [warning("git", f"git cannot be used: {answer.problem}; worktrees and reviews need it", mend)]
    version = version_in(answer.text)
    findings = [fine("git", answer.text.strip().splitlines()[0][:80] if answer.text.strip() else "git")]
    if version is not None and version < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        findings = [warning("git", f"{findings[0].text} is older than {oldest}", "install a newer git")]
    root = places.levels[-1]
    if _is_repository(root):
        findings.append(fine("git", f"repository: {root}"))
    else:
        findings.append(
            note("git", "this folder is in no repository; agents cannot have worktrees here", "git init")
        )
    return findings


def _is_repository(folder: Path) -> bool:
    return os.path.exists(folder / ".git")  # noqa: PTH110 - unlike Path.exists it never raises
