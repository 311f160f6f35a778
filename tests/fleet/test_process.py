# ruff: noqa: ASYNC240 - a test may block its own loop for a moment
"""One child as a tree, seen from outside: real processes, what they write and what is left of them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import process, wardens
from fleet.deadline import NEVER, Deadline
from fleet.errors import ChildNotStarted
from fleet.process import Cause, ChildSpec, Exit, run_child
from tests.supervision import warden_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.anyio

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

#: Long enough for a busy machine; no test waits for it.
PATIENCE = 30.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["started", "forked"], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every promise holds for a warden of its own and for one that a supervisor has forked."""
    with warden_kind(request.param, monkeypatch):
        yield request.param


class Child:
    """A child to be run, and what was heard of it."""

    def __init__(self, *argv: str, stdin: bytes | None = None, cwd: Path = Path("/"), **rest: object) -> None:
        env = rest.pop("env", {"PATH": os.environ["PATH"]})
        self.spec = ChildSpec(argv, cwd, env, stdin, **rest)  # type: ignore[arg-type]
        self.chunks: list[bytes] = []
        self.pids: list[int] = []

    @property
    def output(self) -> bytes:
        return b"".join(self.chunks)

    async def run(self, seconds: float | None = PATIENCE) -> Exit:
        deadline = Deadline.after(seconds, now=anyio.current_time())
        return await run_child(
            self.spec, deadline=deadline, on_stdout=self.chunks.append, on_started=self.pids.append
        )

    async def run_until(self, needle: bytes) -> Exit:
        """Stop it when the output has the needle, through its warden."""
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                ended: list[Exit] = []

                async def run() -> None:
                    ended.append(await self.run())

                group.start_soon(run)
                await wait_until(lambda: needle in self.output and bool(self.pids))
                os.kill(parent_of(self.pids[0]), signal.SIGTERM)
        return ended[0]


def shell(text: str, **rest: object) -> Child:
    return Child("sh", "-c", text, **rest)  # type: ignore[arg-type]


def python(text: str, **rest: object) -> Child:
    return Child(sys.executable, "-I", "-S", "-c", text, **rest)  # type: ignore[arg-type]


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await anyio.sleep(0.01)


def parent_of(pid: int) -> int:
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True).stdout)


def is_alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True).stdout.strip()
    return bool(state) and not state.startswith(b"Z")


# Output


async def test_output_comes_whole_in_order_and_in_chunks() -> None:
    child = python("import sys\nfor n in range(300000): sys.stdout.write(f'{n:09}\\n')")
    ended = await child.run()
    assert ended == Exit(0, None, Cause.ENDED, "", 3_000_000, ())
    assert child.output == b"".join(b"%09d\n" % number for number in range(300_000))
    assert max(len(chunk) for chunk in child.chunks) <= 65_536
    assert len(child.chunks) >= 3_000_000 / 65_536


async def test_32_megabytes() -> None:
    digest, count = hashlib.sha256(), 0

    def take(chunk: bytes) -> None:
        nonlocal count
        digest.update(chunk)
        count += len(chunk)

    spec = ChildSpec(("head", "-c", str(2**25), "/dev/zero"), Path("/"), dict(os.environ), None)
    ended = await run_child(spec, deadline=NEVER, on_stdout=take)
    assert (ended.code, ended.stdout_bytes, count) == (0, 2**25, 2**25)
    assert digest.hexdigest() == hashlib.sha256(bytes(2**25)).hexdigest()


async def test_one_long_line_and_bytes_that_are_no_text() -> None:
    child = python("import os; os.write(1, b'y' * 300000 + b'\\xff\\xfe\\x00\\x80')")
    assert (await child.run()).code == 0
    assert child.output == b"y" * 300_000 + b"\xff\xfe\x00\x80"


async def test_a_child_may_close_its_stdout_and_live_on() -> None:
    child = shell("echo early; exec 1>&-; sleep 0.3; exit 3")
    begun = time.monotonic()
    ended = await child.run()
    assert (ended.code, child.output) == (3, b"early\n")
    assert time.monotonic() - begun >= 0.3


async def test_what_is_written_last_is_not_lost() -> None:
    for _ in range(5):
        child = python("import os; os.write(1, b'z' * 60000); os.kill(os.getpid(), 9)")
        assert (await child.run()).signal == 9
        assert len(child.output) == 60_000


@linux_only
async def test_what_a_larger_pipe_still_holds_is_not_lost() -> None:
    text = (
        "import fcntl, os\n"
        "import time; time.sleep(0.2)\n"
        "fcntl.fcntl(1, 1031, 1 << 20)\n"  # F_SETPIPE_SZ
        "os.write(1, b'z' * 900_000)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    child = python(text)
    chunks: list[bytes] = []

    def take_slowly(chunk: bytes) -> None:
        if not chunks:
            warden = wardens[0]
            end = time.monotonic() + PATIENCE
            while is_alive(warden):
                assert time.monotonic() < end
        chunks.append(chunk)

    wardens: list[int] = []
    ended = await run_child(
        child.spec,
        deadline=Deadline.after(PATIENCE, now=anyio.current_time()),
        on_stdout=take_slowly,
        on_started=lambda pid: wardens.append(parent_of(pid)),
    )
    assert ended.signal == 9
    assert sum(map(len, chunks)) == 900_000


async def test_the_cap_stops_the_child_and_keeps_what_was_written() -> None:
    child = Child("cat", "/dev/zero", max_output_bytes=100 * 1024 + 1)
    ended = await child.run()
    assert ended.cause is Cause.OVER_CAP
    assert ended.stdout_bytes == len(child.output) == 100 * 1024 + 1
    assert ended.sentence() == "output over cap (102401 bytes)"


@pytest.mark.parametrize(("count", "cause"), [(1000, Cause.ENDED), (1001, Cause.OVER_CAP)])
async def test_the_cap_itself_is_allowed(count: int, cause: Cause) -> None:
    child = Child("head", "-c", str(count), "/dev/zero", max_output_bytes=1000)
    ended = await child.run()
    assert (ended.cause, len(child.output)) == (cause, 1000)


async def test_over_the_cap_nothing_more_is_handed_over() -> None:
    child = shell(
        "head -c 5000 /dev/zero; trap 'head -c 5000 /dev/zero; exit' TERM; sleep 60 & wait",
        max_output_bytes=10,
    )
    ended = await child.run()
    assert (ended.cause, child.output) == (Cause.OVER_CAP, bytes(10))
    assert all(child.chunks)


async def test_nothing_is_never_handed_over() -> None:
    child = shell("head -c 10 /dev/zero; sleep 0.2; head -c 10 /dev/zero", max_output_bytes=10)
    ended = await child.run()
    assert (ended.cause, child.output) == (Cause.OVER_CAP, bytes(10))
    assert all(child.chunks)


async def test_a_full_disk_stops_the_child_and_is_raised() -> None:
    child = shell("cat /dev/zero")
    calls = 0

    def refuse(_chunk: bytes) -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as caught:
        await run_child(child.spec, deadline=NEVER, on_stdout=refuse, on_started=child.pids.append)
    assert caught.value.errno == errno.ENOSPC
    assert calls == 1
    assert not is_alive(child.pids[0])


async def test_an_error_in_the_last_chunk_is_raised_too() -> None:
    def refuse(_chunk: bytes) -> None:
        raise OSError(errno.EROFS, "read-only")

    for _ in range(5):
        with pytest.raises(OSError, match="read-only"):
            await run_child(shell("echo last").spec, deadline=NEVER, on_stdout=refuse)


@linux_only
async def test_a_stranger_that_holds_stdout_is_not_waited_for() -> None:
    child = shell("echo mine; sleep 0.3")
    held: list[int] = []
    try:
        begun = time.monotonic()
        ended = await run_child(
            child.spec,
            deadline=NEVER,
            on_stdout=child.chunks.append,
            on_started=lambda pid: held.append(os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)),
        )
        assert (ended.code, child.output) == (0, b"mine\n")
        assert time.monotonic() - begun < 5
    finally:
        os.close(held[0])


@linux_only
async def test_a_stranger_that_goes_on_writing_is_not_waited_for() -> None:
    strangers: list[subprocess.Popen[bytes]] = []

    def lend(pid: int) -> None:
        with open(f"/proc/{pid}/fd/1", "wb") as stdout:
            strangers.append(subprocess.Popen(["cat", "/dev/zero"], stdout=stdout, stderr=subprocess.DEVNULL))

    begun = time.monotonic()
    try:
        ended = await run_child(
            shell("sleep 0.3", max_output_bytes=2**50).spec,
            deadline=NEVER,
            on_stdout=lambda _chunk: time.sleep(0.005),  # so that the pipe is full whenever it is looked at
            on_started=lend,
        )
        assert ended.code == 0
        assert time.monotonic() - begun < 5
        assert strangers[0].poll() in (None, -signal.SIGPIPE)
    finally:
        strangers[0].kill()
        strangers[0].wait()


# stderr


async def test_the_last_of_stderr_is_kept() -> None:
    ended = await python("import os\nfor n in range(70000): os.write(2, b'%059d\\n' % n)").run()
    assert len(ended.stderr_tail) == 4096
    assert ended.stderr_tail.endswith(f"{69_999:059}\n")
    assert f"{69_999 - 67:059}\n" in ended.stderr_tail
    assert ended.stdout_bytes == 0


async def test_stderr_is_told_whole_when_it_is_short() -> None:
    ended = await shell("echo one >&2; sleep 0.1; printf 'two\\tthree' >&2; exit 4").run()
    assert (ended.code, ended.stderr_tail) == (4, "one\ntwo\tthree")


async def test_stderr_does_nothing_to_a_terminal() -> None:
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07a\x07b\r\nc\rd \x9b31m \u202eback\u200b é\x00\x1b"
    ended = await python(f"import os; os.write(2, {text.encode()!r} + b'\\xff')").run()
    assert ended.stderr_tail == "red a�b\nc\nd �31m �back� é��"


async def test_a_tail_does_not_begin_within_a_character() -> None:
    ended = await python("import os; os.write(2, ('€' * 2000).encode())").run()
    assert ended.stderr_tail == "€" * 1365


async def test_a_short_stderr_keeps_its_first_bytes() -> None:
    ended = await python("import os; os.write(2, b'\\x80x')").run()
    assert ended.stderr_tail == "�x"


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode(errors="replace")))
def test_no_control_survives(tail: bytes) -> None:
    text = process._harmless(tail)
    assert all(character in "\n\t" or unicodedata.category(character) != "Cc" for character in text)
    assert not set(text) & {"\x1b", "\r", "\x9b", "\u202e", "\u2028", "\u200f"}


# stdin


async def test_stdin_arrives_whole_and_ends() -> None:
    content = os.urandom(2**20)
    child = Child("cat", stdin=content)
    assert (await child.run()).code == 0
    assert child.output == content


@pytest.mark.parametrize("stdin", [None, b""])
async def test_without_input_stdin_is_at_its_end(stdin: bytes | None) -> None:
    child = Child("cat", stdin=stdin)
    assert (await child.run()).code == 0
    assert child.output == b""


async def test_a_child_need_not_read_what_it_is_sent() -> None:
    assert (await shell("sleep 0.2; exit 5", stdin=bytes(2**20)).run()).code == 5


async def test_a_child_may_close_its_stdin_and_live_on() -> None:
    child = shell("exec 0<&-; sleep 0.2; echo still here", stdin=bytes(2**20))
    assert (await child.run()).code == 0
    assert child.output == b"still here\n"


async def test_input_and_output_flow_at_once() -> None:
    child = python(
        "import os\nos.write(1, b'a' * 500000)\nn = 0\nwhile (c := os.read(0, 65536)): n += len(c)\nprint(n)",
        stdin=bytes(2**20),
    )
    assert (await child.run()).code == 0
    assert child.output == b"a" * 500_000 + b"1048576\n"


# How it starts


async def test_environment_folder_and_words_are_exactly_those_given(tmp_path: Path) -> None:
    env = {"A": "1", "B": "two = 2\nlines", "C": "", "D": "\udcff"}
    child = (
        Child("/usr/bin/env", "-0", env=env) if sys.platform != "darwin" else Child("/usr/bin/env", env=env)
    )
    await child.run()
    end = "\n" if sys.platform == "darwin" else "\0"
    assert os.fsdecode(child.output) == "".join(f"{name}={value}{end}" for name, value in env.items())

    script = "import os, sys; os.write(1, repr((os.getcwd(), sys.argv[1:])).encode())"
    child = Child(sys.executable, "-I", "-S", "-c", script, "", "a b", "'\n", cwd=tmp_path)
    await child.run()
    assert child.output.decode() == repr((str(tmp_path.resolve()), ["", "a b", "'\n"]))


async def test_a_relative_folder_is_the_runners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    child = shell("pwd -P", cwd=Path("below"))
    await child.run()
    assert child.output.decode().strip() == str((tmp_path / "below").resolve())


async def test_the_program_is_looked_for_in_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found $0\n")
    program.chmod(0o755)
    child = Child("only-here", env={"PATH": str(tmp_path)})
    await child.run()
    assert child.output.decode() == f"found {program}\n"
    child = Child("./only-here", cwd=tmp_path)
    await child.run()
    assert child.output == b"found ./only-here\n"


async def test_it_leads_a_session_and_a_group_of_its_own() -> None:
    child = shell("ps -o pid=,pgid=,sess= -p $$" if sys.platform != "darwin" else "echo $$ $$ $$")
    await child.run()
    pid, group, session = (int(word) for word in child.output.split())
    assert [pid] == child.pids
    assert pid == group == session
    assert pid != os.getsid(0)


@linux_only
async def test_it_starts_with_default_signals_and_no_descriptor_of_ours() -> None:
    child = shell("grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd")
    was = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    try:
        await child.run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, was)
    _, blocked, _, ignored, *descriptors = child.output.decode().split()
    # Signals 32 and 33 are the C library's own; no program can set them.
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & ~(0b11 << 31) == 0
    assert descriptors == ["0", "1", "2", "3"]  # the last one is the folder that ls reads


@pytest.mark.parametrize("program", ["surely-no-such-program", "/nowhere/at/all", "./neither"])
async def test_a_missing_program_is_named(program: str) -> None:
    child = Child(program)
    with pytest.raises(ChildNotStarted) as caught:
        await child.run()
    assert caught.value.program == program
    assert caught.value.reason == os.strerror(errno.ENOENT)
    assert child.pids == []


async def test_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    with pytest.raises(ChildNotStarted, match="plain: Permission denied"):
        await Child(str(tmp_path / "plain")).run()


async def test_a_folder_that_is_missing_or_none(tmp_path: Path) -> None:
    with pytest.raises(
        ChildNotStarted, match=r"start true: working directory .*/gone: No such file"
    ) as caught:
        await Child("true", cwd=tmp_path / "gone").run()
    assert caught.value.program == "true"
    (tmp_path / "file").touch()
    with pytest.raises(ChildNotStarted, match="file: Not a directory"):
        await Child("true", cwd=tmp_path / "file").run()


async def test_what_the_system_cannot_take() -> None:
    with pytest.raises(ChildNotStarted, match="null byte"):
        await Child("echo", "a\0b").run()
    with pytest.raises(ChildNotStarted, match="null byte"):
        await Child("true", env={"A": "\0"}).run()
    with pytest.raises(ChildNotStarted, match="null byte"):
        await Child("true", cwd=Path("/\0")).run()
    with pytest.raises(ChildNotStarted, match="'A=B' cannot name"):
        await Child("true", env={"A=B": "c"}).run()
    with pytest.raises(ChildNotStarted, match="'' cannot name"):
        await Child("true", env={"": "c"}).run()


async def test_words_of_any_length_up_to_the_systems() -> None:
    child = Child("printf", "%s", "w" * 100_000)
    await child.run()
    assert child.output == b"w" * 100_000
    with pytest.raises(ChildNotStarted, match="Argument list too long"):
        await Child("printf", *["w" * 100_000] * 200).run()


async def test_the_warden_minds_nothing_in_the_runners_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    assert (await Child("true").run()).code == 0


async def test_no_descriptors_left_to_start_with(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_descriptors()
    pipes, real = 0, os.pipe

    def pipe() -> tuple[int, int]:
        nonlocal pipes
        pipes += 1
        if pipes == 4:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real()

    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(ChildNotStarted, match="Too many open files"):
        await Child("true").run()
    assert open_descriptors() == before


async def test_a_warden_that_cannot_start(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "forked":
        pytest.skip("there is no warden to start")
    monkeypatch.setattr(wardens, "_WARDEN", "/nowhere/warden.py")
    with pytest.raises(ChildNotStarted, match="cannot start true: its warden ended first"):
        await Child("true").run()


@pytest.mark.parametrize(
    "wrong",
    [
        {"argv": ()},
        {"argv": ("", "x")},
        {"grace_seconds": -0.1},
        {"grace_seconds": float("nan")},
        {"grace_seconds": float("inf")},
        {"max_output_bytes": 0},
    ],
)
def test_a_spec_is_legal_or_is_not(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"argv": ("true",), "cwd": Path("/"), "env": {}, "stdin": None}
    ChildSpec(**right, grace_seconds=0, max_output_bytes=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"argv|grace|max_output"):
        ChildSpec(**{**right, **wrong})  # type: ignore[arg-type]


def test_the_limits_nobody_named() -> None:
    spec = ChildSpec(("true",), Path("/"), {}, None)
    assert (spec.grace_seconds, spec.max_output_bytes) == (1.0, 268_435_456)


async def test_a_listener_that_fails_at_the_start_stops_the_child() -> None:
    child = shell("sleep 60")

    def refuse(pid: int) -> None:
        child.pids.append(pid)
        raise RuntimeError("not now")

    with pytest.raises(RuntimeError, match="not now"):
        await run_child(child.spec, deadline=NEVER, on_stdout=child.chunks.append, on_started=refuse)
    assert len(child.pids) == 1
    assert not is_alive(child.pids[0])


# How it ends


@pytest.mark.parametrize("code", [0, 1, 7, 127, 255])
async def test_exit_statuses_pass_through(code: int) -> None:
    ended = await shell(f"exit {code}").run()
    assert (ended.code, ended.signal, ended.cause) == (code, None, Cause.ENDED)
    assert ended.sentence() == f"exit {code}"


@pytest.mark.parametrize("name", ["SEGV", "KILL", "TERM", "HUP", "PIPE"])
async def test_signals_pass_through(name: str) -> None:
    ended = await shell(f"kill -{name} $$").run()
    assert (ended.code, ended.signal, ended.cause) == (None, getattr(signal, f"SIG{name}"), Cause.ENDED)
    assert ended.sentence() == f"killed by SIG{name}"


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (Exit(1, None, Cause.ENDED, "", 0, ()), "exit 1"),
        (Exit(None, 11, Cause.ENDED, "", 0, ()), "killed by SIGSEGV"),
        (Exit(None, 200, Cause.ENDED, "", 0, ()), "killed by signal 200"),
        (Exit(0, None, Cause.STOPPED, "", 0, ()), "stopped"),
        (Exit(None, 15, Cause.OVER_CAP, "", 256 * 2**20, ()), "output over cap (256 MiB)"),
        (Exit(None, 15, Cause.OVER_CAP, "", 2**31, ()), "output over cap (2 GiB)"),
        (Exit(None, 15, Cause.OVER_CAP, "", 3 * 2**10, ()), "output over cap (3 KiB)"),
        (Exit(None, 15, Cause.OVER_CAP, "", 1025, ()), "output over cap (1025 bytes)"),
        (Exit(None, 15, Cause.OVER_CAP, "", 0, ()), "output over cap (0 bytes)"),
        (Exit(None, 9, Cause.STOPPED, "", 0, (5, 6)), "stopped; could not be killed: 5, 6"),
    ],
)
def test_sentences(ended: Exit, sentence: str) -> None:
    assert ended.sentence() == sentence


async def test_what_it_leaves_running_is_stopped_and_does_not_hold_it_up() -> None:
    child = shell("trap '' TERM; sleep 60 & echo $!; exit 6")
    begun = time.monotonic()
    ended = await child.run()
    assert (ended.code, ended.cause, ended.survivors) == (6, Cause.ENDED, ())
    assert not is_alive(int(child.output))
    assert 0.5 <= time.monotonic() - begun < 5


async def test_what_it_leaves_running_may_say_goodbye() -> None:
    child = shell(
        "{ trap 'echo bye; exit' TERM; echo hi; while :; do sleep 0.05; done; } & sleep 0.3; exit 0"
    )
    assert (await child.run()).code == 0
    assert child.output == b"hi\nbye\n"


# Deadlines


async def test_at_the_deadline_the_child_is_stopped() -> None:
    child = shell("echo so far; exec sleep 60")
    begun = anyio.current_time()
    ended = await child.run(1.0)
    assert 1.0 <= anyio.current_time() - begun < 3
    assert (ended.code, ended.signal, ended.cause) == (None, signal.SIGTERM, Cause.STOPPED)
    assert (ended.sentence(), child.output) == ("stopped", b"so far\n")
    assert not is_alive(child.pids[0])


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object, **_rest: object) -> None:
        raise AssertionError("a process was to be started")

    monkeypatch.setattr(process, "start_warden", refuse)


@pytest.mark.usefixtures("nothing_starts")
async def test_a_deadline_that_has_passed_starts_nothing() -> None:
    child = shell("exit 1")
    assert await child.run(0) == Exit(None, None, Cause.STOPPED, "", 0, ())
    assert child.pids == []


async def test_a_deadline_may_come_before_the_child() -> None:
    for milliseconds in (1, 5, 15, 30, 45):
        child = Child("sh", "-c", "sleep 60", *["w" * 100_000])
        assert (await child.run(milliseconds / 1000)).cause is Cause.STOPPED
        assert not any(is_alive(pid) for pid in child.pids)


async def test_the_grace_is_for_last_words() -> None:
    child = shell("trap 'echo last; echo words >&2; exit 9' TERM; echo up; sleep 60 & wait", grace_seconds=20)
    ended = await child.run_until(b"up")
    assert (ended.code, ended.signal, ended.cause) == (9, None, Cause.STOPPED)
    assert (child.output, ended.stderr_tail) == (b"up\nlast\n", "words\n")


async def test_a_child_that_had_stopped_itself_is_waked() -> None:
    child = python(
        "import os, signal\nsignal.signal(15, lambda *a: (os.write(1, b'awake'), os._exit(0)))\n"
        "os.write(1, b'up '); os.kill(os.getpid(), signal.SIGSTOP)\nwhile True: signal.pause()",
        grace_seconds=20,
    )
    ended = await child.run_until(b"up")
    assert (ended.code, child.output) == (0, b"up awake")


async def test_after_the_grace_it_is_killed() -> None:
    child = shell("trap '' TERM; echo up; while :; do sleep 0.05; done", grace_seconds=0.6)
    begun = anyio.current_time()
    ended = await child.run(0.5)
    assert child.output == b"up\n"
    assert (ended.signal, ended.cause) == (signal.SIGKILL, Cause.STOPPED)
    assert 1.1 <= anyio.current_time() - begun < 3.1


async def test_the_warden_has_the_grace_before_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "KILL_SECONDS", 0.1)
    monkeypatch.setattr(process, "_WARDEN_SLACK_SECONDS", 0.1)
    child = shell("trap 'sleep 0.6; echo late; exit 0' TERM; echo up; sleep 60 & wait", grace_seconds=20)
    ended = await child.run(0.7)
    assert (ended.code, child.output) == (0, b"up\nlate\n")


async def test_what_could_not_be_killed_is_passed_on(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if kind == "forked":
        pytest.skip("the supervisor has loaded the true warden")
    deaf = tmp_path / "warden.py"
    text = Path(wardens._WARDEN).read_text()
    deaf.write_text(text.replace('if __name__ == "__main__":', "_kill = lambda *_: None\nif True:"))
    monkeypatch.setattr(wardens, "_WARDEN", str(deaf))
    child = Child("sleep", "60", grace_seconds=0.1)
    ended = await child.run(0.5)
    os.kill(child.pids[0], signal.SIGKILL)
    assert (ended.code, ended.signal, ended.survivors) == (None, None, tuple(child.pids))
    assert ended.sentence() == f"stopped; could not be killed: {child.pids[0]}"


# Cancellation


async def test_cancelled_it_stops_the_child_first() -> None:
    child = shell("trap 'echo cut; exit' TERM; echo up; sleep 60 & wait")
    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(child.run)
            await wait_until(lambda: b"up" in child.output)
            begun = anyio.current_time()
            scope.cancel()
    assert scope.cancelled_caught
    assert anyio.current_time() - begun < 3
    assert child.output == b"up\ncut\n"
    assert not is_alive(child.pids[0])


@pytest.mark.usefixtures("nothing_starts")
async def test_cancelled_before_it_began_it_starts_nothing() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shell("exit 1").run()
    assert scope.cancelled_caught


async def test_cancelled_at_any_moment_nothing_stays() -> None:
    before = open_descriptors()
    for milliseconds in range(0, 100, 9):
        child = shell("echo up; exec sleep 60")
        with anyio.move_on_after(milliseconds / 1000) as scope:
            await child.run()
        assert scope.cancelled_caught
        assert not any(is_alive(pid) for pid in child.pids)
    assert open_descriptors() == before


# Wardens that are kept from their work


@linux_only
async def test_a_child_that_kills_its_warden() -> None:
    child = shell("sleep 60 & echo $!; kill -KILL $PPID; sleep 60; sleep 60")
    begun = anyio.current_time()
    ended = await child.run()
    assert (ended.code, ended.signal, ended.cause) == (None, signal.SIGKILL, Cause.ENDED)
    assert (ended.sentence(), ended.survivors) == ("killed by SIGKILL", ())
    assert not is_alive(int(child.output))
    assert not is_alive(child.pids[0] if child.pids else int(child.output))
    assert anyio.current_time() - begun < 5


async def test_a_child_whose_warden_is_killed_while_it_stops() -> None:
    child = shell("trap 'kill -KILL $PPID' TERM; echo up; while :; do sleep 0.05; done", grace_seconds=5)
    begun = anyio.current_time()
    ended = await child.run(0.7)
    assert (ended.signal, ended.cause) == (signal.SIGKILL, Cause.STOPPED)
    assert anyio.current_time() - begun < 4
    assert not is_alive(child.pids[0])


async def test_a_child_that_stops_its_warden() -> None:
    child = shell("kill -STOP $PPID; sleep 60 & echo $!; wait", grace_seconds=0.2)
    begun = anyio.current_time()
    ended = await child.run(0.5)
    assert ended.cause is Cause.STOPPED
    assert anyio.current_time() - begun < 0.5 + 0.2 + 2.5
    assert not is_alive(int(child.output))


@linux_only
async def test_a_child_that_kills_its_warden_and_holds_its_pipes() -> None:
    child = shell(
        "trap '' TERM; exec 3>/dev/null; for f in /proc/$PPID/fd/*; do [ -p $f ] && [ -w $f ] && "
        'eval "exec 4>>$f" && (sleep 60 & echo $!); done; echo up; kill -KILL $PPID; sleep 60',
        grace_seconds=0.2,
    )
    begun = anyio.current_time()
    ended = await child.run(1.0)
    assert ended.cause is Cause.STOPPED
    assert anyio.current_time() - begun < 1.0 + 0.2 + 3
    *pids, last = child.output.split()
    assert (last, len(pids) > 0) == (b"up", True)
    assert not any(is_alive(int(pid)) for pid in pids)


@linux_only
async def test_a_status_pipe_that_never_ends_is_not_waited_for() -> None:
    """The warden is killed, and a process outside the tree holds the other end of its status pipe."""
    child = Child("sleep", "60", grace_seconds=0.2)
    held: list[int] = []

    def hold(pid: int) -> None:
        child.pids.append(pid)
        warden = parent_of(pid)
        for entry in Path(f"/proc/{warden}/fd").iterdir():
            if entry.is_fifo() and os.access(entry, os.W_OK):
                with contextlib.suppress(PermissionError):
                    held.append(os.open(entry, os.O_WRONLY | os.O_NONBLOCK))
        os.kill(warden, signal.SIGKILL)

    begun = anyio.current_time()
    deadline = Deadline.after(0.7, now=begun)
    try:
        with anyio.fail_after(PATIENCE):
            ended = await run_child(
                child.spec, deadline=deadline, on_stdout=child.chunks.append, on_started=hold
            )
    finally:
        for fd in held:
            os.close(fd)
    assert held
    assert (ended.signal, ended.cause) == (signal.SIGKILL, Cause.STOPPED)
    assert anyio.current_time() - begun < 0.7 + 0.2 + 3
    assert not is_alive(child.pids[0])


async def test_what_the_warden_had_told_stands() -> None:
    """The program has ended; its warden is killed while it ends the rest."""
    child = shell("warden=$PPID; (trap '' TERM; sleep 0.2; kill -KILL $warden; sleep 60) & exit 8")
    ended = await child.run()
    assert (ended.code, ended.signal, ended.cause) == (8, None, Cause.ENDED)


# Many, and elsewhere


async def test_sixteen_at_once() -> None:
    children = [shell(f"echo {number}; exit {number}") for number in range(16)]
    ended: dict[int, Exit] = {}

    async def run(number: int) -> None:
        ended[number] = await children[number].run()

    async with anyio.create_task_group() as group:
        for number in range(16):
            group.start_soon(run, number)
    assert [ended[number].code for number in range(16)] == list(range(16))
    assert [int(child.output) for child in children] == list(range(16))


async def test_nothing_of_it_stays_open() -> None:
    await shell("exit 0").run()
    before = open_descriptors()
    await shell("cat; echo out; echo err >&2", stdin=b"in").run()
    with pytest.raises(ChildNotStarted):
        await Child("surely-no-such-program").run()
    await Child("cat", "/dev/zero", max_output_bytes=1).run()
    assert open_descriptors() == before


def test_under_trio() -> None:
    child = shell("cat; trap '' TERM; sleep 60", stdin=b"hello", grace_seconds=0.1)
    ended = anyio.run(child.run, 0.7, backend="trio")
    assert (ended.cause, child.output) == (Cause.STOPPED, b"hello")

    async def cancelled() -> bool:
        with anyio.move_on_after(0.3) as scope:
            await shell("sleep 60").run()
        return scope.cancelled_caught

    assert anyio.run(cancelled, backend="trio")


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))
