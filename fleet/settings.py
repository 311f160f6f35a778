"""What holds for one call of a command, resolved once: flags, then environment, then the user's file, then defaults.

Below the command line nothing asks the environment; it is handed down from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.errors import InvalidFile
from fleet.yaml import read
from roundtable.home import Home

__all__ = ["Settings", "is_secret", "resolve", "without_secrets"]

#: Parts of a variable's name that make its value a secret, whoever set it.
_SECRET_PARTS = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL")

#: Last words of such a name: ``GH_PAT``, ``NPM_AUTH``, ``SENTRY_DSN``; not ``SSH_AUTH_SOCK``, which members need.
_SECRET_ENDS = ("PAT", "AUTH", "DSN", "COOKIE", "PRIVATE")

#: A URL with a password in it.
_SECRET_VALUE = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Settings:
    """Frozen settings of one call."""

    home: Home
    folder: Path  #: where the command was started
    environ: Mapping[str, str] = field(repr=False)  #: the caller's environment
    default_runtime: str | None = None
    is_ci: bool = False


class _Defaults(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    runtime: str | None = None


class _ConfigFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    defaults: _Defaults = _Defaults()


def resolve(environ: Mapping[str, str], *, folder: Path) -> Settings:
    """Read ``config.yaml`` of the user's home, if there is one, under the environment.

    Raises:
        InvalidFile: the file is not what it should be.
    """
    home = Home.from_environment(environ)
    config = _read(home.root / "config.yaml")
    return Settings(
        home=home,
        folder=folder,
        environ=environ,
        default_runtime=config.defaults.runtime,
        is_ci=environ.get("CI", "").lower() not in {"", "0", "false"},
    )


def is_secret(name: str, value: str) -> bool:
    """Whether a variable's value is never shown and not handed to members unasked."""
    upper = name.upper()
    has_secret_name = any(part in upper for part in _SECRET_PARTS) or upper.split("_")[-1] in _SECRET_ENDS
    return has_secret_name or _SECRET_VALUE.search(value) is not None


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without what looks like a secret, and without another run's ``FLEET_*``."""
    return {
        name: value
        for name, value in environ.items()
        if not is_secret(name, value) and (name == "FLEET_HOME" or not name.startswith("FLEET_"))
    }


def _read(path: Path) -> _ConfigFile:
    if not path.is_file():
        return _ConfigFile()
    document = read(path, what="settings file")
    try:
        return _ConfigFile.model_validate(document.data or {})
    except ValidationError as error:
        raise InvalidFile(
            tuple(document.problem(found["loc"], found["msg"]) for found in error.errors(include_url=False))
        ) from error
