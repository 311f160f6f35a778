"""Who acts on a command line: ``--as``, else ``FLEET_SEAT``, else the login name."""

from __future__ import annotations

import getpass
import os
import re

from .errors import UsageProblem
from .names import is_member_name

__all__ = ["acting_name", "acting_role"]


def acting_name(given: str | None) -> str:
    """A name to act under; the login name is made fit to be one.

    Raises:
        UsageProblem: what was given is no member's name.
    """
    name = given if given is not None else os.environ.get("FLEET_SEAT")
    if name is None or (not name and given is None):
        name = re.sub(r"[^A-Za-z0-9._-]", "-", getpass.getuser()).lstrip("._-")[:64] or "user"
    return _checked(name)


def acting_role(given: str | None, *, writer: str) -> str | None:
    """The role, or ``None`` for somebody without one, who may be told how to name it.

    A login name is nobody's role but the writer's if it is that.

    Raises:
        UsageProblem: what was given is no member's name.
    """
    name = given if given is not None else os.environ.get("FLEET_SEAT") or None
    if name is None:
        login = getpass.getuser()
        return login if login == writer else None
    return _checked(name)


def _checked(name: str) -> str:
    if not is_member_name(name):
        raise UsageProblem(
            f"not a member's name: {name!r}",
            hint="use 1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit",
        )
    return name
