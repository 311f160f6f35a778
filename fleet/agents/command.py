"""Any program as a member: one process per turn, the prompt on stdin, the answer on stdout.

The environment it sees is a contract: docs/reference/environment.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from fleet.agents.base import Answered, Failed, Opening, Stopped, Turn, TurnOutcome
from fleet.errors import ChildNotStarted
from fleet.process import Cause, ChildSpec, run_child

__all__ = ["CommandAgent"]

_PROMPT_FILE = "{prompt_file}"


class CommandAgent:
    """Runs ``argv`` once per turn; ``{prompt_file}`` in it is replaced by the path of a file with the prompt."""

    has_memory = False

    def __init__(self, argv: tuple[str, ...], *, prompts: Path, is_deterministic: bool = False) -> None:
        self.is_deterministic = is_deterministic
        self._argv = argv
        self._prompts = prompts  #: a private folder for prompt files
        self._opening: Opening | None = None

    async def start(self, opening: Opening) -> None:
        """Remember where and with what to run; a program has nothing to start before its first turn."""
        self._opening = opening

    async def turn(self, turn: Turn, emit: Callable[[bytes], None]) -> TurnOutcome:
        """Run the program to its end."""
        if self._opening is None:
            raise RuntimeError("turn before start")
        argv, stdin = self._argv, turn.prompt.encode("utf-8", errors="replace")
        prompt_file: Path | None = None
        if any(_PROMPT_FILE in word for word in argv):
            prompt_file = self._write_prompt(stdin)
            argv = tuple(word.replace(_PROMPT_FILE, str(prompt_file)) for word in argv)
        spec = ChildSpec(
            argv=argv,
            cwd=self._opening.cwd,
            env={**self._opening.env, **turn.env},
            stdin=None if prompt_file else stdin,
        )
        try:
            exit_ = await run_child(spec, deadline=turn.deadline, on_stdout=emit)
        except ChildNotStarted as error:
            return Failed(str(error))
        finally:
            if prompt_file:
                prompt_file.unlink(missing_ok=True)
        if exit_.cause is Cause.STOPPED:
            return Stopped()
        if exit_.cause is Cause.ENDED and exit_.code == 0:
            return Answered()
        tail = " ".join(exit_.stderr_tail.split())
        return Failed(f"{exit_.sentence()}: {tail[-200:]}" if tail else exit_.sentence())

    async def close(self) -> None:
        """Nothing outlives a turn."""

    def _write_prompt(self, prompt: bytes) -> Path:
        descriptor, name = tempfile.mkstemp(prefix="prompt-", suffix=".md", dir=self._prompts)
        with os.fdopen(descriptor, "wb") as file:
            file.write(prompt)
        return Path(name)
