"""Servers of the wire, started for a measurement and gone afterwards, and what the kernel says they have used.

Ours; the bound (``bound.c``, or ``bound.py`` where nothing compiles it); and any other that speaks the same messages,
given by a command line in ``BENCH_BROKER`` and the socket it makes in ``BENCH_BROKER_SOCKET``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Server", "bound", "bound_command", "broker", "other"]

_HERE = Path(__file__).parent

#: How long a server may take to be there.
_START_SECONDS = 20.0


@dataclass(frozen=True)
class Server:
    """A process that serves a room."""

    label: str
    pid: int
    path: Path

    def cpu_seconds(self) -> float:
        """Time it has computed, all threads; 0 where the system does not tell (no Linux)."""
        if sys.platform != "linux":
            return 0.0
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def resident_mb(self) -> float:
        """Memory it holds."""
        return self._status("VmRSS")

    def peak_mb(self) -> float:
        """The most it has held since ``forget_peak``."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Let the peak begin at what is held now."""
        if sys.platform == "linux":
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, key: str) -> float:
        if sys.platform != "linux":
            return float("nan")
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


@contextmanager
def broker(folder: Path, *options: str) -> Iterator[Server]:
    """Our broker, with a home below ``folder``."""
    home = folder / "home"
    words = [sys.executable, "-m", "roundtable.serve", "--home", str(home), "--grace", "60", *options]
    with _started([*words, "--ready-fd", "{}"]) as process:
        yield Server("broker", process.pid, home / "roundtable" / "broker.sock")


def bound_command(folder: Path) -> tuple[str, list[str]]:
    """The label and the command of the bound, compiled into ``folder`` where that can be done."""
    compiler = shutil.which("cc")
    if compiler and sys.platform == "linux":
        program = folder / "bound"
        done = subprocess.run([compiler, "-O2", "-o", str(program), str(_HERE / "bound.c")])
        if done.returncode == 0:
            return "C", [str(program)]
    return "bare Python", [sys.executable, str(_HERE / "bound.py")]


@contextmanager
def bound(folder: Path, label: str, command: list[str]) -> Iterator[Server]:
    """The bound that ``bound_command`` named."""
    path = folder / "bound.sock"
    path.unlink(missing_ok=True)
    with _started([*command, str(path), "{}"]) as process:
        yield Server(label, process.pid, path)


@contextmanager
def other() -> Iterator[Server | None]:
    """The broker that the environment names, if it names one."""
    command, path = os.environ.get("BENCH_BROKER"), os.environ.get("BENCH_BROKER_SOCKET")
    if not command or not path:
        yield None
        return
    with subprocess.Popen(shlex.split(command), stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + _START_SECONDS
            while not _is_served(path):
                assert process.poll() is None, f"BENCH_BROKER ended at once: {command}"
                assert time.monotonic() < end, f"nobody serves BENCH_BROKER_SOCKET: {path}"
                time.sleep(0.02)
            yield Server("other", process.pid, Path(path))
        finally:
            process.terminate()


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@contextmanager
def _started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes to the descriptor put in place of ``{}`` when it serves."""
    ready, writable = os.pipe()
    command = [word.format(writable) if word == "{}" else word for word in words]
    with subprocess.Popen(command, pass_fds=(writable,), stderr=subprocess.DEVNULL) as process:
        os.close(writable)
        try:
            with os.fdopen(ready, "rb") as pipe:
                assert pipe.readline() == b"ready\n", command
            yield process
        finally:
            process.terminate()
