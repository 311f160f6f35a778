"""A program asked one thing, within a bound of time and output; nothing of it is left behind."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from fleet.blueprint.starred import starred
from fleet.deadline import Deadline
from fleet.errors import ChildNotStarted
from fleet.process import Cause, ChildSpec, run_child
from fleet.settings import without_secrets

__all__ = ["ASK_SECONDS", "Answer", "Ask", "asker", "version_in"]

#: A program that has not said its version by then is not well; a cold start of the slowest agent CLI takes 4 s.
ASK_SECONDS = 10.0
#: Most that is read of an answer.
_MAX_BYTES = 256 * 1024
#: Told to every program that is asked, so that it neither updates itself nor reports that it was.
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_AUTO_UPDATE": "false",
    "COPILOT_OFFLINE": "true",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "PI_OFFLINE": "1",
    "PI_TELEMETRY": "0",
}
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; a program that could not be asked has no code and a reason."""

    code: int | None
    text: str  #: standard output
    problem: str  #: why there is no code, or the end of standard error; one line

    @property
    def is_good(self) -> bool:
        """Whether it ended well."""
        return self.code == 0


#: Asks a command line; never raises, whatever the program does.
Ask = Callable[[tuple[str, ...]], Awaitable[Answer]]


def asker(environ: Mapping[str, str], folder: Path, *, seconds: float = ASK_SECONDS) -> Ask:
    """What asks programs in ``folder``, each for at most ``seconds``, with ``environ`` but for what looks secret."""
    quiet = {**without_secrets(environ), **_QUIET}

    async def ask(argv: tuple[str, ...]) -> Answer:
        said = bytearray()
        spec = ChildSpec(
            argv=argv,
            cwd=folder,
            env=quiet,
            stdin=None,
            grace_seconds=0.5,
            max_output_bytes=_MAX_BYTES,
        )
        try:
            deadline = Deadline.after(seconds, now=anyio.current_time())
            end = await run_child(spec, deadline=deadline, on_stdout=said.extend)
        except ChildNotStarted as error:
            return Answer(None, "", error.reason)
        except OSError as error:
            return Answer(None, "", error.strerror or str(error))
        text = bytes(said).decode("utf-8", errors="replace")
        if end.cause is not Cause.ENDED or end.code is None:
            reason = f"no answer within {seconds:g} s" if end.cause is Cause.STOPPED else end.sentence()
            return Answer(None, text, reason)
        return Answer(end.code, text, str(starred(" ".join(end.stderr_tail.split())))[-200:])

    return ask


def version_in(text: str) -> tuple[int, ...] | None:
    """The first version number in a text, as numbers; ``None`` if there is none."""
    found = _VERSION.search(text)
    return tuple(int(part) for part in found.group().split(".")) if found else None
