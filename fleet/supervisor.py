"""Fork one warden per child, so that a turn costs a fork and not the start of an interpreter.

A process of its own, ``python -I -S supervisor.py SOCKET``, started with the run. Each message on the socket is one
byte with five descriptors: the child's stdin, stdout and stderr, the warden's lifeline and its status. The socket's
end of file says that the runner has ended, however it did; the wardens go on by themselves, each has its own lifeline.

Standard library only and single-threaded: everything here is copied into every warden. Not here: what a warden does
(``warden.py``), and what becomes of a child whose supervisor died (``wardens.py``, in the runner).
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

TYPE_CHECKING = False  # importing typing would lengthen the start
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["DESCRIPTORS", "main"]

#: How many descriptors come with one message.
DESCRIPTORS = 5


def main(socket_fd: int) -> int:
    """Fork wardens until the socket ends."""
    warden = _load_warden()
    # A warden that has ended is nobody's business here, so the system reaps it.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # What is there now is shared with every warden for as long as nobody writes to it, as a collection would.
    gc.disable()
    gc.freeze()
    os.chdir("/")
    with socket.socket(fileno=socket_fd) as requests:
        while True:
            asked, descriptors, _, _ = socket.recv_fds(requests, 1, DESCRIPTORS)
            if not asked:
                return 0
            for fd in descriptors:
                os.set_inheritable(fd, False)  # they come without, and no program is to have one of them
            if len(descriptors) == DESCRIPTORS:
                _fork(warden, requests, descriptors)
            for fd in descriptors:
                os.close(fd)


def _fork(warden: ModuleType, requests: socket.socket, descriptors: list[int]) -> None:
    stdin, stdout, stderr, lifeline, status = descriptors
    try:
        pid = os.fork()
    except OSError as problem:
        os.write(status, b'{"failed": %d, "at": "fork"}\n' % (problem.errno or 0))
        return
    if pid == 0:
        try:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            warden.stand(lifeline, status, (stdin, stdout, stderr))
        finally:
            # Whatever happens, it must not run on as a second supervisor.
            os._exit(0)


def _load_warden() -> ModuleType:
    """The module beside this file; an isolated interpreter does not look there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warden.py")  # noqa: PTH100, PTH118, PTH120 - pathlib would lengthen the start
    loader = SourceFileLoader("warden", path)
    spec = spec_from_loader("warden", loader)
    if spec is None:
        raise ImportError(path)
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1])))
