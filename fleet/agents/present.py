"""Which agent CLIs are on this machine; nothing is started to find out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from fleet.agents.choose import CLIS

__all__ = ["present_clis", "where_is"]


def present_clis(environ: Mapping[str, str]) -> dict[str, str]:
    """Runtime -> the path of its program, for those that are on ``PATH``."""
    found = {runtime: where_is(program, environ) for runtime, program in CLIS.items()}
    return {runtime: path for runtime, path in found.items() if path is not None}


def where_is(program: str, environ: Mapping[str, str]) -> str | None:
    """The path of a program by the ``PATH`` of ``environ``, or ``None``."""
    return shutil.which(program, path=environ.get("PATH", os.defpath))
