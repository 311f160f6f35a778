"""Calls one command of ``fleet`` inside the test's process, at the same border as the real program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import pytest

from fleet.cli.parser import group
from roundtable.commandline import invoke

__all__ = ["Call", "Said", "caller"]


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Said]


def caller(capsys: pytest.CaptureFixture[str], command: click.Command = group) -> Call:
    """What runs ``fleet WORDS`` in the current folder and environment."""

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = invoke(command, words, program="fleet")
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call
