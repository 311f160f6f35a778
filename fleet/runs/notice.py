"""The completion notice: one line, exactly one per run, that says who finished and who did not.

Pure. At most ``NOTICE_CHARS`` characters: names beyond it are counted, and the journal has them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.runs.member import Member
from fleet.runs.outcome import MemberState

__all__ = ["NOTICE_CHARS", "attendance", "notice_line"]

#: What may enter the conductor's context unasked.
NOTICE_CHARS = 300

#: What a group takes when none of its names fits: `` No FINAL: +50.``
_COUNT_CHARS = 16

_FAILED = {MemberState.FAILED, MemberState.TIMED_OUT}

#: Neither absent nor failed: not asked, or stopped because of another one.
_NOT_ABSENT = _FAILED | {MemberState.FINAL, MemberState.SKIPPED}


def attendance(members: Sequence[Member]) -> tuple[int, list[Member], list[Member]]:
    """How many ended by themselves, well or badly; who was absent when time ran out; who failed.

    Who has concluded and waits for work that follows from it has finished as well.
    """
    ended = {MemberState.FINAL, MemberState.FAILED}
    finished = sum(member.state in ended or member.is_set_aside for member in members)
    failed = [member for member in members if member.state in _FAILED]
    absent = [member for member in members if member.state not in _NOT_ABSENT and not member.is_set_aside]
    return finished, absent, failed


def notice_line(
    members: Sequence[Member], *, run: str | None = None, limit: int | None = NOTICE_CHARS
) -> str:
    """``3 of 5 finished. Absent: bob (still talking after 10m). Failed: dan (exit 1).``, led by the run's id.

    Members that finished without a FINAL line are named too; the decision has nothing of them.
    """
    finished, absent, failed = attendance(members)
    silent = [
        member
        for member in members
        if member.is_set_aside or (member.state is MemberState.FINAL and member.is_to_conclude)
        if member.final is None
    ]
    head = f"{finished} of {len(members)} finished."
    line = f"{run}: {head}" if run else head
    groups = {
        "Absent": [f"{member.seat} ({member.reason})" if member.reason else member.seat for member in absent],
        "Failed": [f"{member.seat} ({member.reason})" if member.reason else member.seat for member in failed],
        "Skipped": [m.seat for m in members if m.state is MemberState.SKIPPED],
        "No FINAL": [member.seat for member in silent],
    }
    shown = {title: names for title, names in groups.items() if names}
    for left, (title, names) in zip(range(len(shown) - 1, -1, -1), shown.items(), strict=True):
        # Every group after this one keeps room for at least a count.
        room = None if limit is None else limit - len(line) - left * _COUNT_CHARS
        line += _names(title, names, room)
    return line


def _names(title: str, parts: Sequence[str], room: int | None) -> str:
    for shown in range(len(parts), -1, -1):
        more = len(parts) - shown
        text = f" {title}: " + ", ".join([*parts[:shown]] + ([f"+{more}"] if more else [])) + "."
        if room is None or len(text) <= room:
            return text
    return f" {title}: +{len(parts)}."
