"""What would be started, as one JSON object for programs. Pure; secrets of an environment are not shown.

``{task, room, budgets, launches}`` and the keys of a launch are the reference's; ours stand behind them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.roles.launch import FanOut, Launch, Window

__all__ = ["render"]


def render(fan_out: FanOut) -> str:
    """Return the object as text, indented, ending in a newline."""
    data = {
        "task": fan_out.task,
        "room": fan_out.room,
        "budgets": {"digest": fan_out.digest, "perMessage": fan_out.per_message},
        "launches": [_launch(launch, window) for window in fan_out.windows for launch in window.launches],
    }
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a path that is not UTF-8 on disk
        text = json.dumps(data, indent=2)
    return text + "\n"


def _launch(launch: Launch, window: Window) -> dict[str, object]:
    words = launch.words
    data: dict[str, object] = {
        "role": launch.name,
        "room": launch.room,
        "provider": launch.provider,
        "model": launch.model,
        "briefPath": str(launch.brief_path) if launch.brief_path is not None else None,
        "cwd": str(launch.cwd) if launch.cwd is not None else None,
        "cwdExplicit": launch.is_cwd_explicit,
        "worktree": launch.worktree,
        "command": words[0] if words else None,
        "args": list(words[1:]),
        "footer": launch.footer,
        "runtime": launch.runtime,
        "reason": launch.reason,
        "tools": launch.is_attached,
        "env": {"FLEET_SEAT": launch.name, **launch.settings, **_starred(launch)},
        "notes": list(launch.notes),
        "window": window.name,
        "layout": window.layout,
    }
    if launch.brief_path is None:
        del data["briefPath"]
    return data


def _starred(launch: Launch) -> dict[str, str]:
    """The member's own variables without their secrets."""
    if not launch.env:
        return {}
    from fleet.settings import is_secret  # what it imports takes longer than everything else here

    return {name: "***" if is_secret(name, value) else value for name, value in launch.env.items()}
