"""One turn of a rehearsal member: a prompt on stdin, an answer from its brief and what others said on stdout.

Standard library only, no clock, no chance: equal prompts give equal answers on every machine. It weighs each
position by the words it shares with the seat's own brief and by who supports it, so that seats with kindred
briefs come together and opposed ones dissent. It claims no insight: it exercises rounds, digests and FINAL lines.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys

#: Headings of the prompt that are read here.
_PERSONA, _BRIEF, _NEWS = "Who you are", "Your brief", "What the others posted since your last turn"

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_MESSAGE = re.compile(
    r"^(?:\[\d\d:\d\d\]|·) ([A-Za-z0-9][A-Za-z0-9._-]*)#\d+(?: \(reply to [^)]*\))?: ?(.*)$"
)
_POSITION = re.compile(r"^(?:POSITION|SUPPORT|FINAL): ([A-Za-z0-9][A-Za-z0-9._-]*)'s position: (.+)$")

#: What a seat's own position weighs against another's; one shared word weighs two, one supporter three.
_OWN_WEIGHT, _WORD_WEIGHT, _SUPPORT_WEIGHT = 7, 2, 3

_COMMON_WORDS = frozenset(
    """about after again against also argue because before being between both could does each even every from have
    into just like made make more most much must need only other over same should some such than that their them
    then there these they this those through under until very what when where which while will with would your
    """.split()  # noqa: SIM905 - a list of seventy literals would hide the words
)


def main() -> None:
    """Answer the prompt on stdin."""
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # a real file here
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    seat, phase = os.environ.get("FLEET_SEAT", "seat"), os.environ.get("FLEET_PHASE", "open")
    sys.stdout.write(answer(sys.stdin.read(), seat=seat, phase=phase))


def answer(prompt: str, *, seat: str, phase: str) -> str:
    """The seat's words in that phase (``open``, ``reply``, ``final`` or ``dispatch``), ending in one newline."""
    sections = _sections(prompt)
    brief = sections.get(_BRIEF) or sections.get(_PERSONA) or f"{seat} takes the task as it stands."
    positions = {seat: _first_sentence(brief)}
    supporters: dict[str, set[str]] = {}
    for author, line in _lines(sections.get(_NEWS, "")):
        _note(author, line, positions, supporters)

    if phase == "dispatch":
        return f"Rehearsed, nothing was done: {_gist(brief)}\n"
    if phase == "open":
        return f"POSITION: {seat}'s position: {positions[seat]}\nIt rests on my brief: {_gist(brief)}\n"

    ranked = sorted(positions, key=lambda owner: _rank(owner, seat, brief, positions, supporters))
    chosen = ranked[0]
    support = f"{chosen}'s position: {positions[chosen]}"
    if phase == "final":
        return f"{_weighing(chosen, seat, brief, positions, supporters)}\nFINAL: {support}\n"
    if len(positions) == 1:
        return "PASS\n"
    remarks = [_remark(owner, brief, positions) for owner in sorted(positions) if owner != seat]
    return "\n".join([f"SUPPORT: {support}", *remarks]) + "\n"


def _sections(prompt: str) -> dict[str, str]:
    parts = _HEADING.split(prompt)
    sections: dict[str, str] = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        # The first of a name counts, so that what a later section quotes is not taken for a heading.
        sections.setdefault(title.strip(), body.strip())
    return sections


def _lines(digest: str) -> list[tuple[str, str]]:
    """Every line of the digest's messages with its author; continuation lines stand four blanks in."""
    lines: list[tuple[str, str]] = []
    author = ""
    for line in digest.split("\n"):
        head = _MESSAGE.match(line)
        if head:
            author = head[1]
            lines.append((author, head[2]))
        elif author and line.startswith("    "):
            lines.append((author, line[4:]))
        else:
            author = ""
    return lines


def _note(author: str, line: str, positions: dict[str, str], supporters: dict[str, set[str]]) -> None:
    found = _POSITION.match(line)
    if found and not line.endswith(" …"):  # a line that the digest has cut is nobody's position
        positions.setdefault(found[1], found[2])
        for names in supporters.values():
            names.discard(author)
        supporters.setdefault(found[1], set()).add(author)


def _rank(
    owner: str, seat: str, brief: str, positions: dict[str, str], supporters: dict[str, set[str]]
) -> tuple[int, str]:
    weight = _SUPPORT_WEIGHT * len(supporters.get(owner, ()))
    weight += _OWN_WEIGHT if owner == seat else _WORD_WEIGHT * len(_shared(brief, positions[owner]))
    return -weight, hashlib.sha256(f"{seat}/{owner}/{positions[owner]}".encode()).hexdigest()


def _remark(owner: str, brief: str, positions: dict[str, str]) -> str:
    shared = _shared(brief, positions[owner])
    if shared:
        return f"{owner}: accepted where you speak of {', '.join(shared[:3])}, which is my brief too."
    return f"{owner}: rejected; nothing in it answers my brief."


def _weighing(
    chosen: str, seat: str, brief: str, positions: dict[str, str], supporters: dict[str, set[str]]
) -> str:
    if chosen == seat:
        return "Nothing that was said outweighs my brief."
    shared = ", ".join(_shared(brief, positions[chosen])[:3]) or "no word"
    names = ", ".join(sorted(supporters.get(chosen, {chosen})))
    return f"I go with {chosen}: it shares {shared} with my brief and has the support of {names}."


def _shared(brief: str, position: str) -> list[str]:
    words = _words(position)
    return [word for word in _words(brief) if word in words]


def _words(text: str) -> list[str]:
    found = (word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.casefold()))
    return [word for word in dict.fromkeys(found) if word not in _COMMON_WORDS]


def _first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    return re.split(r"(?<=[.!?])\s", flat, maxsplit=1)[0].rstrip(".!? ")[:160]


def _gist(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 300 else flat[:299] + "…"


if __name__ == "__main__":
    main()
