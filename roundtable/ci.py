"""Text made safe for a CI log: no line of it is taken for a command to the runner.

Pure. GitHub's runner obeys lines that begin with ``::``, after any blanks, and ``##[`` wherever it stands
(https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
"""

from __future__ import annotations

import re

__all__ = ["for_ci_log"]

#: Two colons that begin a line, with the blanks before them. Blanks end at a line break, so that many empty lines are
#: looked at once and not once for each.
_COMMAND = re.compile(r"(^|[\n\r])([^\S\n\r]*):(?=:)")


def for_ci_log(text: str) -> str:
    """``text`` with ``: :`` for ``::`` at the beginning of a line, and ``## [`` for ``##[``."""
    return _COMMAND.sub(r"\1\2: ", text).replace("##[", "## [")
