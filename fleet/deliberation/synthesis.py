"""From every member's FINAL line to the decision of record, extractively: nothing is written that nobody said.

Pure. A conclusion that more than half of the roster reached is the outcome, and every other one is dissent; without
such a majority the outcome is ``split`` and all positions stand. Absent and failed members are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.runs.answer import Final
from fleet.runs.results import Decision, Position

__all__ = ["decide"]


def decide(
    finals: Sequence[tuple[str, Final | None]],
    *,
    absent: Sequence[str],
    quorum: int,
    head: Sequence[str],
    attendance: str,
    digest: str,
    artifact_of: dict[str, str],
) -> Decision:
    """The decision from ``(seat, final)`` of the whole roster, in seat order.

    ``quorum`` is how many had to conclude; ``head`` lines open the text; ``attendance`` is the notice's sentence;
    ``digest`` is what the decision rests on; ``artifact_of`` tells where the rest of a FINAL line lies that was cut.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    words: dict[tuple[str, str], str] = {}
    for seat, final in finals:
        if final is not None:
            groups.setdefault(final.key, []).append(seat)
            words.setdefault(final.key, _shown(final, artifact_of.get(seat, "")))
    # Most supported first; of equals the one whose first seat comes first.
    ordered = sorted(groups, key=lambda key: -len(groups[key]))
    positions = tuple(Position(final=words[key], seats=tuple(groups[key])) for key in ordered)
    has_majority = bool(positions) and 2 * len(positions[0].seats) > len(finals)
    outcome = positions[0].final if has_majority else "split" if positions else "none"
    dissent = positions[1:] if has_majority else ()
    text = "\n".join(
        [
            *head,
            "",
            attendance,
            "",
            *_outcome_lines(outcome, positions, dissent, has_majority, len(finals)),
            *_quorum_lines(sum(final is not None for _, final in finals), quorum),
            "",
            "What it rests on:",
            "",
            digest,
        ]
    )
    return Decision(
        outcome=outcome,
        agreed=positions[0].seats if has_majority else (),
        positions=positions,
        dissent=dissent,
        open_questions=(),
        absent=tuple(absent),
        text=text + "\n",
    )


def _outcome_lines(
    outcome: str, positions: Sequence[Position], dissent: Sequence[Position], has_majority: bool, total: int
) -> list[str]:
    if has_majority:
        won = positions[0].seats
        lines = [f"Outcome: {outcome}", f"Agreed by {len(won)} of {total}: {', '.join(won)}."]
        lines += ["Dissent:" if dissent else "Dissent: none."]
        return lines + [_position_line(position) for position in dissent]
    if positions:
        return [
            "Outcome: split; no conclusion has more than half.",
            "Positions:",
            *map(_position_line, positions),
        ]
    return ["Outcome: none; nobody reached a FINAL line."]


def _quorum_lines(reached: int, quorum: int) -> list[str]:
    return (
        [f"Quorum missed: {reached} reached a FINAL line, {quorum} were needed."] if reached < quorum else []
    )


def _position_line(position: Position) -> str:
    return f"- {position.final} ({', '.join(position.seats)})"


def _shown(final: Final, path: str) -> str:
    more = final.chars - len(final.text)
    return f"{final.text} …(+{more} chars: {path})" if more > 0 else final.text
