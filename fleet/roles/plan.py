"""What would be started, as text for people. Pure; secrets of an environment are not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.roles.native import Text
from fleet.settings import is_secret
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
    lines = [
        launch.name,
        f"  runtime {printable(launch.runtime)} ({launch.reason})",
        f"  model   {printable(launch.model or 'default')}",
        f"  room    #{launch.room}",
        f"  cwd     {printable(str(launch.cwd)) if launch.cwd else 'where the script is started'}",
        f"  brief   {brief}",
    ]
    if launch.env:
        shown = (f"{name}={'***' if is_secret(name, value) else value}" for name, value in launch.env.items())
        lines.append(f"  env     {printable(' '.join(shown))}")
    lines.append(f"  command {_command(launch)}")
    first, *rest = launch.footer.splitlines()
    lines += [f"  footer  {first}", *(f"          {line}" for line in rest)]
    return lines


def _command(launch: Launch) -> str:
    if not launch.argv:
        return f"roundtable tail {launch.room}"
    words = (
        f"<{word.kind}: {len(word.text)} chars>" if isinstance(word, Text) else word for word in launch.argv
    )
    return printable(" ".join(words))


def _first_line(text: str) -> str:
    """The first line, at most 100 characters, with an ellipsis if something is missing."""
    line, _, rest = text.strip().partition("\n")
    return printable(line[:100]) + ("…" if rest or len(line) > 100 else "")
