"""What every command does with a blueprint before its own work: find it, read it and all that it points to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.blueprint.find import Found, look_up
from fleet.blueprint.load import Loaded, load_blueprint
from fleet.blueprint.places import Places

if TYPE_CHECKING:
    from fleet.settings import Settings

__all__ = ["Opened", "open_blueprint", "places_of", "settings_here"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A blueprint that is ready to become a plan."""

    found: Found
    loaded: Loaded
    warnings: tuple[str, ...]


def open_blueprint(word: str, settings: Settings) -> Opened:
    """Open the blueprint at a path or of a name.

    Raises:
        UsageProblem: there is none.
        InvalidFile: with every problem at once.
    """
    found = look_up(word, places_of(settings))
    loaded = load_blueprint(found.path)
    return Opened(found, loaded, tuple(map(str, loaded.warnings)))


def settings_here() -> Settings:
    """The settings of this call.

    Raises:
        InvalidFile: the user's settings file is not what it should be.
    """
    from fleet.settings import resolve

    return resolve(os.environ, folder=Path.cwd())


def places_of(settings: Settings) -> Places:
    """Where this call looks for what has a name."""
    return Places.around(settings.folder, home=settings.home.root)
