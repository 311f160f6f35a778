"""One commit per write where the memory folder is a git repository itself.

Only the files that were written are committed; whatever else is staged or changed stays as it is. A commit that fails
loses nothing: the files are written, and the sentence says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio

from ..harmless import harmless_line
from .folder import Folder
from .program import Cause, Ended, NotStarted, run_program

__all__ = ["GitState", "commit", "git_state", "is_repository"]

#: A commit runs the user's hooks and may ask for a signature; then it is given up, well below the minute after which
#: many clients give a tool up.
_COMMIT_SECONDS = 30.0

_STATUS_SECONDS = 10.0

#: What git says, at most.
_MAX_OUTPUT_BYTES = 1024 * 1024

#: What leads git to another repository, as inside a hook of one.
_ELSEWHERE = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_WORK_TREE",
    }
)


class GitState:
    """What doctor tells about the repository: ``text``, and what is wrong, if something is."""

    def __init__(self, text: str, problem: str | None = None) -> None:
        self.text = text
        self.problem = problem


def is_repository(folder: Folder) -> bool:
    """Whether the folder itself, and not one above it, is a git repository."""
    return folder.exists(".git")


async def commit(folder: Folder, paths: Sequence[str], message: str) -> str | None:
    """Commit ``paths`` if the folder is a repository; ``None`` if that worked or there is nothing to commit.

    Otherwise a sentence that says what went wrong.
    """
    if not paths or not is_repository(folder):
        return None
    names = b"\0".join(os.fsencode(path) for path in paths)
    listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
    deadline = anyio.current_time() + _COMMIT_SECONDS
    try:
        added, _ = await _git(folder, ("add", *listed), deadline, given=names)
        if not added.is_success:
            return _not_committed(added)
        same, _ = await _git(folder, ("diff", "--cached", "--quiet", "--", *paths[:200]), deadline)
        if same.is_success and len(paths) <= 200:
            return None
        done, said = await _git(
            folder, ("commit", "--quiet", f"--message={message}", *listed), deadline, given=names
        )
        if done.cause is Cause.DEADLINE:
            status = anyio.current_time() + _STATUS_SECONDS
            same, _ = await _git(folder, ("diff", "--quiet", "HEAD", "--", *paths[:200]), status)
            if same.is_success:
                return "Committed; a hook of the repository did not end in time and was stopped."
    except NotStarted as problem:
        return f"Not committed: git cannot be run ({problem}); the files are written."
    return None if done.is_success else _not_committed(done, said)


async def git_state(folder: Folder) -> GitState:
    """The branch, and how many files below ``wiki`` and ``raw`` are not committed."""
    if not is_repository(folder):
        return GitState("no repository (`git init` in the folder, and every write is a commit)")
    deadline = anyio.current_time() + _STATUS_SECONDS
    try:
        ended, said = await _git(
            folder,
            ("status", "--porcelain", "--branch", "--untracked-files=all", "--", "wiki", "raw"),
            deadline,
        )
    except NotStarted as problem:
        return GitState("a repository, but git cannot be run", f"git cannot be run: {problem}")
    if not ended.is_success:
        return GitState("a repository git cannot read", _why(ended))
    branch, *changed = said.rstrip("\n").split("\n")
    text = f"repository, {harmless_line(branch.removeprefix('## '))[:100]}"
    if not changed:
        return GitState(f"{text}, nothing uncommitted")
    number = len(changed)
    return GitState(f"{text}, {number} uncommitted", f"{number} files below wiki/ and raw/ are not committed")


async def _git(
    folder: Folder, words: tuple[str, ...], deadline: float, *, given: bytes = b""
) -> tuple[Ended, str]:
    """One git command in the folder, and what it wrote."""
    said = bytearray()

    def take(data: bytes) -> bool:
        said.extend(data[: _MAX_OUTPUT_BYTES - len(said)])
        return True

    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    # Line ends are content: a transcript must come out of a commit as it went in. Paths are no patterns.
    options = ("--literal-pathspecs", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false")
    ended = await run_program(
        ("git", *options, *words),
        cwd=folder.path,
        deadline=deadline,
        environment=environment,
        given=given,
        on_stdout=take,
    )
    return ended, bytes(said).decode(errors="replace")


def _not_committed(ended: Ended, said: str = "") -> str:
    return (
        f"Not committed: {_why(ended, said)}. The files are written; "
        "commit them yourself once that is mended (`roundtable memory doctor` looks)."
    )


def _why(ended: Ended, said: str = "") -> str:
    if ended.cause is Cause.DEADLINE:
        return "git did not end in time and was stopped"
    lines = [line.strip() for line in (ended.stderr or said).split("\n") if line.strip()]
    # Much of it is advice; what is fatal says so, or comes first.
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")
    return harmless_line(told)[:300] or f"git ended with status {ended.code}"
