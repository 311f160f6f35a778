"""The user's folder: whether it can be used, how long the socket's path is, who serves it, and what was left behind."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from fleet.doctor.finding import Finding, broken, fine, note, warning
from fleet.errors import FleetError
from fleet.settings import resolve
from fleet.trust import TrustStore
from roundtable.errors import RoundtableError
from roundtable.home import MAX_SOCKET_PATH_BYTES, Home

__all__ = ["is_served", "look_at_home"]

#: A listening socket takes a connection at once, busy or not.
_CONNECT_SECONDS = 1.0


def look_at_home(home: Home, environ: Mapping[str, str], folder: Path) -> list[Finding]:
    """Everything below ``FLEET_HOME``, and the socket wherever it lies."""
    return [*_folder(home), *_files(home, environ, folder), *_socket(home)]


def is_served(path: Path) -> bool | None:
    """Whether somebody listens at a socket; ``None`` if that cannot be told."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(os.fspath(path))
        except OSError as error:
            return False if error.errno in (errno.ECONNREFUSED, errno.ENOENT) else None
    return True


def _folder(home: Home) -> list[Finding]:
    root = home.root
    mend = f"mkdir -p {shlex.quote(str(root))} && chmod 700 {shlex.quote(str(root))}"
    if not os.path.lexists(root):
        parent = next((above for above in root.parents if above.exists()), Path("/"))
        if not os.access(parent, os.W_OK | os.X_OK):
            return [
                broken(
                    "home",
                    f"{root} is not there and {parent} cannot be written",
                    "set FLEET_HOME to a folder of your own",
                )
            ]
        return [fine("home", f"{root} (made when it is needed)")]
    try:
        status = root.stat()
    except OSError as error:
        return [broken("home", f"{root}: {error.strerror or error}", mend)]
    if not stat.S_ISDIR(status.st_mode):
        return [broken("home", f"{root} is no folder", "set FLEET_HOME to a folder of your own")]
    if status.st_uid != os.geteuid():
        return [
            broken(
                "home", f"{root} belongs to user {status.st_uid}", "set FLEET_HOME to a folder of your own"
            )
        ]
    if not os.access(root, os.W_OK | os.X_OK):
        return [broken("home", f"{root} cannot be written", f"chmod u+rwx {shlex.quote(str(root))}")]
    if status.st_mode & 0o022:
        return [warning("home", f"others may write {root}", f"chmod go-w {shlex.quote(str(root))}")]
    return [fine("home", str(root))]


def _files(home: Home, environ: Mapping[str, str], folder: Path) -> list[Finding]:
    """The files in it that people write, or that are written for them."""
    findings = []
    try:
        runtime = resolve(environ, folder=folder).default_runtime
        if (home.root / "config.yaml").is_file():
            named = f"; every seat without a runtime gets {runtime}" if runtime else ""
            findings.append(fine("home", f"settings: {home.root / 'config.yaml'}{named}"))
    except (FleetError, OSError) as error:
        said = " ".join(str(error).split())[:300]
        findings.append(broken("home", said, f"mend or remove {home.root / 'config.yaml'}"))
    store = TrustStore(home.root)
    try:
        store.entries()
    except FleetError as error:
        findings.append(
            warning("home", " ".join(str(error).split())[:300], f"rm {shlex.quote(str(store.path))}")
        )
    return findings


def _socket(home: Home) -> list[Finding]:
    try:
        path = home.socket()
    except RoundtableError as error:
        mend = error.hint or "set FLEET_HOME to a shorter path of your own"
        return [broken("socket", " ".join(str(error).split())[:300], mend)]
    size = len(os.fsencode(path))
    findings = [fine("socket", f"{path} ({size} of {MAX_SOCKET_PATH_BYTES} bytes)")]
    if path.parent != home.folder:
        text = f"the path below {home.folder} would be too long for a socket, so it lies in {path.parent}"
        findings.append(note("socket", text, "set FLEET_HOME to a shorter path to have it there"))
    if not os.path.lexists(path):
        findings.append(fine("socket", "nobody serves rooms now; whoever needs one starts a broker"))
        return findings
    if not path.is_socket():
        findings.append(broken("socket", f"{path} is no socket", f"rm -r {shlex.quote(str(path))}"))
        return findings
    match is_served(path):
        case True:
            findings.append(fine("socket", f"a broker serves it{_pid(home)}"))
        case False:
            text = f"{path} was left behind by a broker that is gone; the next one replaces it"
            findings.append(note("socket", text, f"rm {shlex.quote(str(path))}"))
        case None:
            text = f"{path} takes no connection{_pid(home)}"
            findings.append(warning("socket", text, "see what holds it: fuser -v " + shlex.quote(str(path))))
    return findings


def _pid(home: Home) -> str:
    try:
        return f" (process {int(home.pid.read_text(encoding='utf-8').split()[0])})"
    except (OSError, ValueError, IndexError):
        return ""
