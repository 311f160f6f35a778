"""The warden by itself: what it tells, whom it obeys, and what it takes for the tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import warden
from fleet.warden import Launch, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

PATIENCE = 30.0

#: Runs the warden as it is elsewhere: no subreaper, no parent-death signal, and ``ps`` for a process table.
ELSEWHERE = textwrap.dedent("""
    import importlib.util, os, sys
    spec = importlib.util.spec_from_file_location("warden", sys.argv.pop(1))
    warden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(warden)
    warden._IS_LINUX = False
    os._exit(warden._main())
""")


class Warden:
    """A warden in a process of its own, and the ends of its pipes."""

    def __init__(self, words: tuple[str, ...] = (warden.__file__,)) -> None:
        lifeline_r, self.lifeline = os.pipe()
        self.status, status_w = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", *words, str(lifeline_r), str(status_w)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline_r, status_w),
        )
        os.close(lifeline_r)
        os.close(status_w)
        self.lines = os.fdopen(self.status)

    def start(self, script: str, grace_seconds: float = 5) -> dict[str, Any]:
        """Launch a shell and return what is told when it runs."""
        env = {b"PATH": os.environb[b"PATH"]}
        os.write(self.lifeline, Launch((b"sh", b"-c", script.encode()), b"/", env, grace_seconds).encode())
        assert list(self.told()) == ["forked"]
        return self.told()

    def told(self) -> Any:
        line = self.lines.readline()
        return json.loads(line) if line else None

    def let_go(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def end(self) -> None:
        self.let_go()
        self.process.communicate(timeout=PATIENCE)
        self.lines.close()


@pytest.fixture
def make() -> Iterator[Callable[..., Warden]]:
    made: list[Warden] = []

    def one(*words: str) -> Warden:
        made.append(Warden(*((words,) if words else ())))
        return made[-1]

    yield one
    for each in made:
        each.end()


def is_alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True).stdout.strip()
    return bool(state) and not state.startswith(b"Z")


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def test_what_it_tells_of_a_program_that_ends(make: Callable[..., Warden]) -> None:
    child = make()
    started = child.start("exit 7")
    assert list(started) == ["started"]
    assert child.told() == {"ended": 7, "signal": None}
    assert child.told() == {"gone": True, "stopped": False, "survivors": []}
    assert child.told() is None
    assert child.process.wait(PATIENCE) == 0


def test_what_it_tells_of_a_program_that_is_stopped(make: Callable[..., Warden]) -> None:
    child = make()
    pid = child.start("sleep 60")["started"]
    child.let_go()
    assert child.told() == {"ended": None, "signal": signal.SIGTERM}
    assert child.told() == {"gone": True, "stopped": True, "survivors": []}
    assert not is_alive(pid)


def test_what_it_tells_of_a_program_that_cannot_be_started(make: Callable[..., Warden]) -> None:
    child = make()
    os.write(child.lifeline, Launch((b"/nowhere/prog",), b"/", {}, 1).encode())
    assert list(child.told()) == ["forked"]
    assert child.told() == {"failed": 2, "at": "exec"}
    assert child.told() is None
    child = make()
    os.write(child.lifeline, Launch((b"true",), b"/nowhere", {}, 1).encode())
    child.told()
    assert child.told() == {"failed": 2, "at": "cwd"}


def test_sigterm_means_stop(make: Callable[..., Warden]) -> None:
    child = make()
    pid = child.start("sleep 60")["started"]
    child.process.send_signal(signal.SIGTERM)
    assert child.told() == {"ended": None, "signal": signal.SIGTERM}
    assert child.told()["stopped"] is True
    assert not is_alive(pid)


def test_the_signals_of_a_terminal_mean_nothing(make: Callable[..., Warden]) -> None:
    child = make()
    pid = child.start("sleep 60")["started"]
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        child.process.send_signal(number)
    time.sleep(0.1)  # nothing is to happen, and that cannot be waited for
    assert child.process.poll() is None
    assert is_alive(pid)


def test_it_is_in_a_session_of_its_own_and_in_no_ones_way(make: Callable[..., Warden]) -> None:
    child = make()
    child.start("sleep 60")
    pid = child.process.pid
    assert os.getsid(pid) == pid
    if sys.platform.startswith("linux"):
        proc = Path(f"/proc/{pid}")
        assert (proc / "cwd").readlink() == Path("/")
        assert {(proc / "fd" / number).readlink() for number in "012"} == {Path("/dev/null")}


def test_its_runner_is_gone_before_it_begins(make: Callable[..., Warden], tmp_path: Path) -> None:
    child = make()
    child.let_go()
    assert child.told() is None
    child = make()
    launch = Launch((b"touch", bytes(tmp_path / "ran")), b"/", {}, 1).encode()
    os.write(child.lifeline, launch[:-1])
    child.let_go()
    assert child.told() is None
    assert child.process.wait(PATIENCE) == 0
    assert not (tmp_path / "ran").exists()


def test_nobody_listens_any_more(make: Callable[..., Warden]) -> None:
    child = make()
    pid = child.start("sleep 60")["started"]
    child.lines.close()
    child.let_go()
    assert child.process.wait(PATIENCE) == 0
    assert not is_alive(pid)


def test_the_grace_is_kept(make: Callable[..., Warden]) -> None:
    child = make()
    child.start("trap '' TERM; echo up; while :; do sleep 0.05; done", grace_seconds=0.5)
    assert child.process.stdout is not None
    assert child.process.stdout.readline() == b"up\n"
    begun = time.monotonic()
    child.let_go()
    assert child.told() == {"ended": None, "signal": signal.SIGKILL}
    assert 0.5 <= time.monotonic() - begun < 0.5 + warden.KILL_SECONDS + 1


@linux_only
def test_it_sleeps_while_the_program_runs(make: Callable[..., Warden]) -> None:
    child = make()
    child.start("sleep 60")

    def switches() -> str:
        text = Path(f"/proc/{child.process.pid}/status").read_text()
        return text[text.index("voluntary_ctxt_switches") :]

    wait_until(lambda: "S (sleeping)" in Path(f"/proc/{child.process.pid}/status").read_text())
    time.sleep(0.1)
    before = switches()
    time.sleep(0.5)  # in which nothing is to happen
    assert switches() == before


@linux_only
def test_it_reaps_the_orphans_of_a_program_that_lives(make: Callable[..., Warden]) -> None:
    child = make()
    child.start("for n in 1 2 3; do (true & exit); done; echo up; sleep 60")
    assert child.process.stdout is not None
    child.process.stdout.readline()
    wait_until(lambda: sum(each.parent == child.process.pid for each in processes()) == 1)


def test_it_works_after_a_fork() -> None:
    """As a supervisor would use it, with descriptors other than 0 to 2."""
    script = textwrap.dedent("""
        import os, sys
        sys.path.insert(0, sys.argv[1])
        from fleet.warden import Launch, watch
        lifeline_r, lifeline_w = os.pipe()
        status_r, status_w = os.pipe()
        out_r, out_w = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(lifeline_w)
            launch = Launch((b"sh", b"-c", b"echo hello; sleep 60"), b"/", dict(os.environb), 1.0)
            fds = os.open(os.devnull, os.O_RDONLY), out_w, os.dup(2)
            os._exit(watch(launch, lifeline_fd=lifeline_r, status_fd=status_w, stdio=fds))
        os.close(out_w), os.close(status_w), os.close(lifeline_r)
        assert os.read(out_r, 100) == b"hello\\n"
        os.close(lifeline_w)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.read(out_r, 100) == b""
        assert os.read(status_r, 1000).endswith(b'"stopped": true, "survivors": []}\\n')
    """)
    root = str(Path(warden.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", script, root], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")


def test_elsewhere_group_and_descendants_end(make: Callable[..., Warden]) -> None:
    """Without a subreaper: the group, also what was orphaned in it, and descendants in groups of their own."""
    child = make("-c", ELSEWHERE, warden.__file__)
    script = (
        "trap '' TERM; (sleep 61 & echo $!); "
        f"{sys.executable} -I -S -c 'import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(62)' & "
        "wait; sleep 63"
    )
    pids = [child.start(script, grace_seconds=0.2)["started"]]
    assert child.process.stdout is not None
    pids += [int(child.process.stdout.readline()) for _ in range(2)]
    child.let_go()
    assert child.told() == {"ended": None, "signal": signal.SIGKILL}
    assert child.told() == {"gone": True, "stopped": True, "survivors": []}
    assert not any(is_alive(pid) for pid in pids)


def test_elsewhere_what_is_left_running_ends(make: Callable[..., Warden]) -> None:
    child = make("-c", ELSEWHERE, warden.__file__)
    child.start("sleep 60 & echo $!; exit 3")
    assert child.process.stdout is not None
    pid = int(child.process.stdout.readline())
    assert child.told() == {"ended": 3, "signal": None}
    assert child.told() == {"gone": True, "stopped": False, "survivors": []}
    assert not is_alive(pid)


def test_what_cannot_be_killed_is_reported(make: Callable[..., Warden]) -> None:
    """Signals that have no effect stand in for a process of another user."""
    deaf = ELSEWHERE.replace("_IS_LINUX = False", "_kill = lambda *_: None").replace(
        "import ", "import time, "
    )
    child = make("-c", deaf, warden.__file__)
    pid = child.start("exec sleep 60", grace_seconds=0.1)["started"]
    begun = time.monotonic()
    child.let_go()
    try:
        assert child.told() == {"gone": True, "stopped": True, "survivors": [pid]}
        assert time.monotonic() - begun < 0.1 + warden.KILL_SECONDS + 1
    finally:
        os.kill(pid, signal.SIGKILL)


def test_the_process_table_has_this_process() -> None:
    me = {each.pid: each for each in processes()}[os.getpid()]
    assert (me.parent, me.group, me.is_zombie) == (os.getppid(), os.getpgrp(), False)
    assert me.session in (os.getsid(0), 0)
    assert me.start


@linux_only
def test_both_process_tables_agree() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    zombie = subprocess.Popen(["true"])
    try:
        wait_until(lambda: {p.pid: p for p in processes()}[zombie.pid].is_zombie)
        one = {each.pid: each for each in warden._from_proc()}
        other = {each.pid: each for each in warden._from_ps()}
        for pid in (os.getpid(), child.pid, zombie.pid):
            assert [getattr(one[pid], name) for name in ("parent", "group", "is_zombie")] == [
                getattr(other[pid], name) for name in ("parent", "group", "is_zombie")
            ]
        assert one[child.pid].session == child.pid
    finally:
        child.kill()
        child.wait()
        zombie.wait()


_BYTES = st.binary(max_size=30).map(lambda text: text.replace(b"\0", b""))
_NAMES = _BYTES.map(lambda name: name.replace(b"=", b"") or b"N")


@given(
    st.lists(_BYTES, min_size=1).map(tuple),
    _BYTES,
    st.dictionaries(_NAMES, _BYTES),
    st.floats(min_value=0, max_value=1e6),
)
def test_a_launch_arrives_as_it_was(
    argv: tuple[bytes, ...], cwd: bytes, env: dict[bytes, bytes], grace_seconds: float
) -> None:
    sent = Launch(argv, cwd, env, grace_seconds).encode()
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4
    got = Launch.decode(sent[4:])
    assert (got.argv, got.cwd, got.env, got.grace_seconds) == (argv, cwd, env, grace_seconds)
    assert list(got.env) == list(env)


def test_it_imports_nothing_of_the_package() -> None:
    script = (
        f"import sys; exec(open({warden.__file__!r}).read(), {{'__name__': 'warden'}}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "ctypes" in loaded
    # Each would add to every start; see the reason in the file.
    assert not loaded & {"fleet", "typing", "dataclasses", "json", "subprocess", "pathlib", "re"}
