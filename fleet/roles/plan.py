"""What would be started, as text for people. Pure; secrets of an environment are not shown.

A command is written as a shell reads it, so that it can be copied; only a text of more than 4 KiB is named instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.native import Text
from fleet.roles.sh import MAX_INLINE_BYTES
from fleet.roles.shell import readable
from fleet.yaml import printable

if TYPE_CHECKING:
    from fleet.roles.launch import FanOut, Launch

__all__ = ["render"]


def render(fan_out: FanOut) -> str:
    """Return the listing, one paragraph per role, ending in a newline."""
    rooms = " ".join(dict.fromkeys(f"#{launch.room}" for launch in fan_out.launches))
    roles = len(fan_out.launches)
    lines = [
        f"task      {_first_line(fan_out.task)}",
        f"room      {rooms}",
        f"budgets   digest {fan_out.digest}, per message {fan_out.per_message} characters",
        f"roles     {roles}",
    ]
    for window in fan_out.windows:
        for launch in window.launches:
            lines += ["", *_role(launch)]
            if window.layout:
                lines.append(f"  window  {window.name}, {window.layout}")
            lines += _command(launch)
    lines += [
        "",
        "This only prints. `roles --format tmux | sh` starts it in tmux.",
    ]
    return "\n".join(lines) + "\n"


def _role(launch: Launch) -> list[str]:
    if launch.brief_path is not None:
        brief = printable(str(launch.brief_path))
    else:
        brief = f"{_first_line(launch.brief)}" if launch.brief else "none"
    room = f"#{launch.room}"
    if launch.is_native and launch.argv:
        room += ", with its tools over MCP" if launch.is_attached else ", with the roundtable shell commands"
    first, *rest = launch.footer.splitlines()
    lines = [
        launch.name,
        f"  runtime {printable(launch.runtime)} ({launch.reason})",
        f"  model   {printable(launch.full_model or 'default')}",
        f"  room    {room}",
        f"  cwd     {printable(str(launch.cwd)) if launch.cwd else 'where the script is started'}",
        f"  brief   {brief}",
        *(f"  note    {printable(note)}" for note in launch.notes),
        f"  footer  {first}",
        *(f"          {line}" for line in rest),
    ]
    lines += [f"  env     {_variable(name, value)}" for name, value in launch.settings.items()]
    if launch.env:
        from fleet.settings import is_secret  # what it imports takes longer than everything else here

        for name, value in launch.env.items():
            lines.append(f"  env     {f'{name}=***' if is_secret(name, value) else _variable(name, value)}")
    return lines


def _command(launch: Launch) -> list[str]:
    """The command line; its texts may have lines of their own."""
    words = launch.argv or launch.following
    first, *rest = " ".join(map(_word, words)).split("\n")
    return [f"  command {printable(first)}", *map(printable, rest)]


def _word(word: str | Text) -> str:
    if isinstance(word, str):
        return readable(word)
    if len(word.text.encode()) > MAX_INLINE_BYTES:
        return readable(f"<{word.kind}: {len(word.text)} characters, in full with --format sh>")
    return readable(word.text)


def _variable(name: str, value: str) -> str:
    return f"{name}={printable(readable(value))}"


def _first_line(text: str) -> str:
    """The first line, at most 100 characters, with an ellipsis if something is missing."""
    line, _, rest = text.strip().partition("\n")
    return printable(line[:100]) + ("…" if rest or len(line) > 100 else "")
