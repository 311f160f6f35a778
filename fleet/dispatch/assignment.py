"""One piece of work for one seat: what is asked, and where and in which form the answer goes.

Values only. What is asked is a text by now; where it comes from (a blueprint, a command line, a chain) is not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fleet.errors import UsageProblem
from fleet.plan import SeatPlan

__all__ = ["Assignment", "OutputMode", "refuse_shared_outputs"]


class OutputMode(StrEnum):
    """What of a task's output stands in the return."""

    DIGEST = "digest"  #: its beginning, within the bound
    INLINE = "inline"  #: all of it
    FILE_ONLY = "file-only"  #: one line that names the file


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one seat is asked to do.

    Raises:
        UsageProblem: the output is to be a file only, and no file is named.
    """

    seat: SeatPlan
    text: str
    output: Path | None = None  #: absolute; the member writes it, or its answer is written there
    output_mode: OutputMode = OutputMode.DIGEST
    reads: tuple[Path, ...] = ()  #: absolute; what it is told to read first
    schema: Mapping[str, Any] | bool | None = None  #: a JSON Schema its answer has to match
    decided: str = ""  #: what was decided before, bounded
    team: str | None = None  #: the team it is a member of, if it was declared in one
    mates: tuple[str, ...] = ()  #: the other seats of that team

    def __post_init__(self) -> None:
        if self.output_mode is OutputMode.FILE_ONLY and self.output is None:
            raise UsageProblem(
                f'{self.seat.name} sets outputMode: "file-only" but does not configure an output file',
                hint='set output to a path or use outputMode: "inline"',
            )


def refuse_shared_outputs(assignments: Sequence[Assignment]) -> None:
    """Refuse work of the same time that would write to one file.

    Raises:
        UsageProblem: two of them resolve to the same path.
    """
    taken: dict[Path, str] = {}
    for assignment in assignments:
        if assignment.output is None:
            continue
        path = assignment.output.resolve()
        if path in taken:
            raise UsageProblem(
                f"output of {taken[path]} and {assignment.seat.name} resolve to the same path: {path}",
                hint="give each its own file",
            )
        taken[path] = assignment.seat.name
