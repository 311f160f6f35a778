"""The journal: numbered, whole lines, told to its watchers in order; a failing disk is one clear error."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import jsonschema
import pytest

from fleet.errors import StorageFailed
from fleet.runs.events import Event, MemberEnded, Pinged, event_schema
from fleet.runs.journal import Journal
from fleet.runs.outcome import MemberState


def test_events_are_numbered_lines_that_fit_the_schema(tmp_path: Path) -> None:
    seen: list[Event] = []
    journal = Journal(tmp_path / "events.jsonl", (seen.append,))
    journal.append(Pinged(line="news\nwith a break"))
    journal.append(MemberEnded(team="t", seat="a", state=MemberState.FINAL, reason=None))
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(line["seq"], line["type"]) for line in lines] == [(1, "ping"), (2, "member.ended")]
    assert [event.seq for event in seen] == [1, 2]
    for line in lines:
        jsonschema.validate(line, event_schema())


def test_a_disk_that_fails_leaves_whole_lines_and_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal.append(Pinged(line="kept"))
    journal.close()
    with pytest.raises(StorageFailed, match=r"events\.jsonl"):
        journal.append(Pinged(line="lost"))
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="No such file"):
        Journal(tmp_path / "missing" / "events.jsonl")


@pytest.mark.anyio
async def test_who_settles_together_waits_for_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    written_at_sync: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        written_at_sync.append((tmp_path / "events.jsonl").read_bytes().count(b"\n"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    durable: list[int] = []

    async def settle(number: int) -> None:
        await journal.commit(MemberEnded(team="t", seat=f"s-{number}", state=MemberState.FINAL, reason=None))
        durable.append(max(written_at_sync))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(settle, number)
    journal.close()
    assert 1 <= len(written_at_sync) < 20
    assert written_at_sync[-1] == 20
    # Nobody went on before its own line was part of what was synced.
    assert all(count >= position + 1 for position, count in enumerate(durable))
