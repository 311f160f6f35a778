"""One run while it lasts: its folder and journal, its teams with their members, and what its conductor has read.

Everything that works in a run (a team that deliberates, one that dispatches, a step of a chain) is handed this value
and writes its record through it. Not here: in which order teams work, and what ends a run (``fleet/conductor.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from fleet.agents.base import Opening
from fleet.agents.fill import make_agent
from fleet.deadline import Deadline
from fleet.plan import Plan, SeatPlan, TeamPlan
from fleet.runs.artifacts import Artifact, IndexRow, artifact_name, write_index
from fleet.runs.events import DecisionMade, Event, MemberEnded, NoticeGiven, ReturnRead, TeamEnded
from fleet.runs.folder import RunFolder
from fleet.runs.journal import Journal, timestamp
from fleet.runs.member import Member
from fleet.runs.notice import attendance, notice_line
from fleet.runs.outcome import MemberState, RunState, TeamCount
from fleet.runs.results import Conducted, Decision, RunResult
from fleet.runs.returns import SPLICE_CHARS, Output, ReturnedText, splice
from fleet.settings import Settings, without_secrets
from roundtable.harmless import indented

__all__ = ["Run", "TeamRun", "Watcher"]


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told while the run goes on; each is called in the run's own thread and must return at once."""

    on_folder: Callable[[RunFolder], None] = lambda _: None
    on_event: Callable[[Event], None] = lambda _: None
    on_line: Callable[[str, str], None] = lambda _seat, _line: (
        None
    )  #: (seat, line) of what a member is writing


@dataclass(slots=True)
class TeamRun:
    """One team of a run: its plan, its members in the plan's order, and what came of it so far."""

    plan: TeamPlan
    members: tuple[Member, ...]
    is_started: bool = False
    began: float = 0.0  #: from where its deadline counts, once it has started
    decision: Decision | None = None  #: once the team has concluded
    record: str | None = None  #: path of the file with its decision, relative to the run folder
    problem: str | None = None  #: why it counts for nothing, whatever its members did

    @property
    def count(self) -> TeamCount:
        """What the team's end is judged by."""
        if self.problem is not None:
            return TeamCount(0, max(self.plan.quorum, 1), 0)
        _, absent, _ = attendance(self.members)
        reached = sum(member.has_concluded for member in self.members)
        return TeamCount(reached, self.plan.quorum, len(absent))


@dataclass(slots=True)
class Run:
    """A run from the making of its folder to its last record. Times are seconds, points on the monotonic clock."""

    plan: Plan
    settings: Settings
    folder: RunFolder
    watcher: Watcher
    journal: Journal
    started_at: str = field(default_factory=timestamp)
    began: float = field(default_factory=anyio.current_time)
    teams: list[TeamRun] = field(default_factory=list)  #: in the order they work
    pings: int = 0
    notices: int = 0
    digests: int = 0
    returns: int = 0
    chars_read: int = 0
    work: anyio.CancelScope | None = (
        None  #: of what the current team does; cancelled when the budget is spent
    )
    budget_spent: str | None = None  #: what of the budget was used up, in words
    inherited: Mapping[str, str] = field(init=False, repr=False)  #: of the caller's environment, for members
    closing: str | None = None  #: what stands for all decisions at the end, where they are only steps
    _seats: int = 0

    def __post_init__(self) -> None:
        self.inherited = without_secrets(self.settings.environ)

    @classmethod
    def begin(cls, plan: Plan, settings: Settings, folder: RunFolder, watcher: Watcher) -> Run:
        """A run in an open folder, with the teams of its plan; nothing is written but an empty journal.

        Raises:
            StorageFailed: the journal cannot be made.
        """
        journal = Journal(folder.path / "events.jsonl", (watcher.on_event,))
        run = cls(plan, settings, folder, watcher, journal)
        # All of them before anything that may fail: whoever tells how the run ended counts the whole roster.
        for team in plan.teams:
            run.add_team(team)
        return run

    @property
    def deadline(self) -> Deadline:
        """When the whole run is over: at its deadline, or when the minutes of its budget are spent."""
        budget = self.plan.budget
        minutes = None if budget is None or budget.minutes is None else budget.minutes * 60
        return Deadline.after(self.plan.deadline_seconds, now=self.began).earlier(
            Deadline.after(minutes, now=self.began)
        )

    def note_usage(self) -> None:
        """Look whether what the members have cost, as far as it is known, is over the budget; then end the work."""
        budget = self.plan.budget
        if budget is None or self.budget_spent is not None:
            return
        used = [member.usage for member in self.members]
        tokens = sum((usage.tokens_in or 0) + (usage.tokens_out or 0) for usage in used)
        usd = sum(usage.cost_usd or 0.0 for usage in used)
        if budget.tokens is not None and tokens >= budget.tokens:
            self.budget_spent = f"{tokens} of {budget.tokens} tokens"
        elif budget.usd is not None and usd >= budget.usd:
            self.budget_spent = f"${usd:.2f} of ${budget.usd:.2f}"
        if self.budget_spent is not None and self.work is not None:
            self.work.cancel()

    def note_time(self) -> None:
        """Look whether the minutes of the budget have run out."""
        budget = self.plan.budget
        if budget is None or budget.minutes is None or self.budget_spent is not None:
            return
        if anyio.current_time() >= self.began + budget.minutes * 60:
            self.budget_spent = f"{budget.minutes:g} minutes"

    def decision_head(self, team: TeamRun) -> list[str]:
        """The lines every decision of record begins with."""
        of_team = f" · team {team.plan.name}" if len(self.teams) > 1 else ""
        lines = [
            f"Decision of record · {self.plan.fleet}{of_team} · run {self.plan.run}",
            f"Task: {indented(self.plan.task)}",
        ]
        if self.plan.is_rehearsal:
            lines.append("Rehearsal: no model was used; the members argued by rule from their briefs.")
        return lines

    def decided_before(self, team: TeamRun) -> str:
        """What earlier teams decided, each cut like any splice; empty for the first one."""
        texts = []
        for earlier in self.teams[: self.teams.index(team)]:
            if earlier.decision and earlier.record:
                text = earlier.decision.text.partition("\nWhat it rests on:")[0].strip()
                whole = Output(text[:SPLICE_CHARS], len(text), earlier.record)
                texts.append(f"Team {earlier.plan.name}:\n{splice(whole, place=str(self.folder.path))}")
        return "\n\n".join(texts)

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return anyio.current_time() - self.began

    @property
    def members(self) -> list[Member]:
        """The whole roster so far."""
        return [member for team in self.teams for member in team.members]

    def add_team(self, plan: TeamPlan) -> TeamRun:
        """Make a team's members, so that whoever tells how the run ended counts them; nothing is started."""
        team = TeamRun(plan, tuple(self._make_member(seat, plan) for seat in plan.seats))
        self.teams.append(team)
        return team

    def reseat(self, team: TeamRun, seats: Sequence[SeatPlan]) -> None:
        """Give a team that has not begun other seats: those it was planned with stood for what was not known yet."""
        team.plan = replace(team.plan, seats=tuple(seats), quorum=len(seats))
        team.members = tuple(self._make_member(seat, team.plan) for seat in seats)

    def openings(self, team: TeamPlan) -> Sequence[Opening]:
        """What each seat of a team is started with, in the plan's order."""
        return [self.opening(team, seat) for seat in team.seats]

    def opening(self, team: TeamPlan, seat: SeatPlan) -> Opening:
        """What one seat is started with; a team whose members do not meet is told of no room."""
        told = {
            "FLEET_RUN": self.plan.run,
            "FLEET_RUN_DIR": str(self.folder.path),
            "FLEET_TEAM": team.name,
            "FLEET_HOME": str(self.settings.home.root),
            "FLEET_SEAT": seat.name,
            **({"FLEET_ROOM": team.room} if team.room else {}),
        }
        return Opening(seat.cwd, {**self.inherited, **told, **seat.env})

    def artifact_path(self, member: Member) -> str:
        """Where a member's full output lies, relative to the folder."""
        return self.folder.relative(member.artifact.path)

    def end_team(self, team: TeamRun) -> None:
        """Tell that every member of a team is over: to the journal, and in one line to the conductor.

        The line of the last team is the run's completion notice. A team that missed its quorum is the last one:
        what the next would build on is not there.
        """
        finished, absent, failed = attendance(team.members)
        line = notice_line(team.members, run=f"{self.plan.run} {team.plan.name}")
        self.journal.append(
            TeamEnded(
                team=team.plan.name,
                finished=finished,
                total=len(team.members),
                absent=tuple(member.seat for member in absent),
                failed=tuple(member.seat for member in failed),
                line=line,
            )
        )
        if not team.count.has_quorum:
            self._skip_after(team)
        if team is self.teams[-1] or not team.count.has_quorum:
            line = self.give_notice()
        self.chars_read += len(line)

    def give_notice(self) -> str:
        """The completion notice, once per run; the line it was given in."""
        line = notice_line(self.members, run=self.plan.run)
        finished, absent, failed = attendance(self.members)
        self.notices += 1
        self.journal.append(
            NoticeGiven(
                run=self.plan.run,
                finished=finished,
                total=len(self.members),
                absent=tuple(member.seat for member in absent),
                failed=tuple(member.seat for member in failed),
                line=line,
            )
        )
        return line

    def conclude(self, team: TeamRun, decision: Decision) -> None:
        """Write a team's decision of record: its own file where there are several teams, and ``decision.md``."""
        self.write_decision(team, decision)
        self.journal.append(
            DecisionMade(
                team=team.plan.name,
                outcome=decision.outcome,
                dissent=tuple(seat for position in decision.dissent for seat in position.seats),
                absent=decision.absent,
            )
        )

    def write_decision(self, team: TeamRun, decision: Decision) -> None:
        """Write the files of a decision; the journal is not told."""
        team.record = "decision.md"
        if len(self.teams) > 1:
            team.record = f"decisions/{self.teams.index(team) + 1:02d}-{team.plan.name}.md"
            self.folder.write(team.record, decision.text)
        team.decision = decision
        self.folder.write("decision.md", self.decision_text())

    def read_text(self, team: TeamRun, text: str) -> None:
        """Tell that the conductor read the one text that a team of one task gave."""
        self.read_return(team, ReturnedText(text, total=1, verbatim=1, headlines=0, collapsed=0))

    def read_return(self, team: TeamRun, returned: ReturnedText) -> None:
        """Tell that the conductor read what a dispatched team gave, and keep what it read."""
        self.returns += 1
        self.chars_read += len(returned.text)
        head = (
            f"{team.plan.name} · {returned.total} tasks · {returned.verbatim} verbatim, "
            f"{returned.headlines} headlines, {returned.collapsed} collapsed · {len(returned.text)} chars"
        )
        self.folder.append("digest.txt", f"{head}\n{returned.text}\n")
        self.journal.append(
            ReturnRead(
                team=team.plan.name,
                total=returned.total,
                verbatim=returned.verbatim,
                headlines=returned.headlines,
                collapsed=returned.collapsed,
                chars=len(returned.text),
            )
        )

    def close(self, text: str) -> None:
        """Let ``text`` stand for what the teams decided, each of which keeps its own file."""
        self.closing = text
        self.folder.write("decision.md", text)

    def decision_text(self) -> str:
        """What is decided so far, team after team."""
        if self.closing is not None:
            return self.closing
        return "\n".join(team.decision.text for team in self.teams if team.decision)

    def end_member(self, team: TeamRun, member: Member, state: MemberState, reason: str | None) -> None:
        """Put a member into its last state and tell the journal; the first state stands."""
        if not member.is_over:
            member.end(state, reason)
        self.journal.append(
            MemberEnded(team=team.plan.name, seat=member.seat, state=member.state, reason=member.reason)
        )

    def conducted(self) -> Conducted:
        """What reached the conductor so far."""
        return Conducted(
            chars_read=self.chars_read,
            pings=self.pings,
            notices=self.notices,
            digests=self.digests,
            returns=self.returns,
        )

    def write_artifact_index(self) -> None:
        """Write ``artifacts/index.md`` as things stand; every path in it leads somewhere."""
        for member in self.members:
            if not member.artifact.size_bytes:
                member.artifact.open()
                member.artifact.close()
        write_index(
            self.folder,
            [
                IndexRow(team.plan.name, m.seat, m.standing, m.artifact.size_bytes, self.artifact_path(m))
                for team in self.teams
                for m in team.members
            ],
        )

    def write_state(self, state: RunState, result: RunResult | None = None) -> None:
        """Replace ``run.json``."""
        self.folder.write_json(
            "run.json",
            {
                "run": self.plan.run,
                "fleet": self.plan.fleet,
                "task": self.plan.task,
                "state": state.value,
                "pid": os.getpid(),
                "started": self.started_at,
                "rehearsal": self.plan.is_rehearsal,
                "folder": str(self.folder.path),
                "blueprint": str(self.plan.blueprint),
                **({"ended": result.ended, "exit_code": result.exit_code} if result else {}),
            },
        )

    def _skip_after(self, ended: TeamRun) -> None:
        for team in self.teams[self.teams.index(ended) + 1 :]:
            for member in team.members:
                reason = f"team {ended.plan.name} missed its quorum"
                self.end_member(team, member, MemberState.SKIPPED, reason)

    def _make_member(self, seat: SeatPlan, team: TeamPlan) -> Member:
        self._seats += 1
        path = self.folder.path / "artifacts" / artifact_name(self._seats, seat.name)
        return Member(
            seat=seat.name,
            agent_name=seat.agent,
            runtime=seat.runtime,
            agent=make_agent(seat.runtime, command=seat.command, prompts=self.folder.path),
            artifact=Artifact(path),
            is_to_conclude=team.mode != "dispatch",
        )
