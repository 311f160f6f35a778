# ruff: noqa: PTH110, PTH118 - it starts fast, and so without pathlib
"""A program with a screen, as agents have them: takes what is pasted as one message and notes what came.

``python -I -S screens.py KIND [WORDS…]``. Every message is a line of JSON in ``$RECORDS/<seat>.jsonl``: its bytes as
text, and whether it came in brackets. KIND:

- ``composer``: shows what is pasted, and after Enter that it was sent
- ``folding``: shows ``[Pasted N bytes]`` instead
- ``counting``: shows ``(N)`` instead
- ``working``: as ``composer``, and draws a spinner as long as ``$RECORDS/<seat>.work`` is there
- ``asking``: shows a question, and says so when it is given anything else than Enter, which answers it and is noted as
  the message ``ANSWERED``
- ``deaf``: raw as well, and reads nothing
"""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import tty

START, END = b"\x1b[200~", b"\x1b[201~"


def main() -> None:
    """Be the program until it is ended."""
    kind = sys.argv[1]
    seat = os.environ["FLEET_SEAT"]
    records = os.environ["RECORDS"]
    path = os.path.join(records, f"{seat}.jsonl")
    busy = os.path.join(records, f"{seat}.work")
    tty.setraw(0, termios.TCSANOW)
    show("\x1b[?2004h")
    if kind == "asking":
        show("Do you want to delete everything?\r\n> 1. Yes\r\n  2. No\r\n")
    else:
        show(f"{seat} is ready\r\n> ")
    open(os.path.join(records, f"{seat}.ready"), "w").close()
    if kind == "deaf":
        select.select([], [], [], 1000)
    pending, turn = b"", 0
    while True:
        if kind == "working" and os.path.exists(busy):
            turn += 1
            show(f"\x1b7\x1b[1;60H{'|/-+'[turn % 4]}\x1b8")
        if not select.select([0], [], [], 0.1)[0]:
            continue
        data = os.read(0, 65536)
        if not data:
            return
        pending += data
        if kind == "asking":
            if b"\r" in pending:
                note(path, "ANSWERED", "")
                show("deleted\r\n")
            else:
                show("please answer\r\n")
            pending = b""
            continue
        while b"\r" in pending and (not pending.startswith(START) or END in pending):
            if pending.startswith(START):
                body, _, rest = pending[len(START) :].partition(END)
                extra, enter, rest = rest.partition(b"\r")
                if not enter:
                    break
            else:
                body, _, rest = b"", b"", pending
                extra, _, rest = rest.partition(b"\r")
            pending = rest
            note(path, body.decode(), extra.decode(errors="replace"))
            shown = as_shown(kind, body)
            show(f"\r\nsent: {shown[-200:]}\r\n> ")
        if pending.startswith(START) and END in pending:
            body = pending[len(START) : pending.index(END)]
            shown = as_shown(kind, body)
            show(shown)


def as_shown(kind: str, body: bytes) -> str:
    """What stands on the screen for a message."""
    instead = {"folding": f"[Pasted {len(body)} bytes]", "counting": f"({len(body)})"}
    return instead.get(kind) or body.decode().replace("\n", "\r\n")


def note(path: str, body: str, stray: str) -> None:
    """One message, and what came outside its brackets."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps({"text": body, "stray": stray}) + "\n")


def show(text: str) -> None:
    """Write it all."""
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
