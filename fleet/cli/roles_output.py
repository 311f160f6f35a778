"""What ``roles`` prints for a request, and what is to be said beside it. Nothing is started or written here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.blueprint.find import Found
    from fleet.roles.launch import FanOut

__all__ = ["FORMATS", "LAYOUTS", "Request", "fan_out_of", "missing_programs", "output"]

FORMATS = ("plan", "json", "sh", "tmux", "orca")
#: As `fleet.blueprint.schema.Layout`, whose import a manifest shall not pay for.
LAYOUTS = ("windows", "tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical")

#: Tried in this order when no file is named; then the only ``*.roles.yaml`` here, then `_LAST`.
_FIRST = ("roles.yaml", "fleet.roles.yaml", "orphus.roles.yaml")
_LAST = Path("blueprints/roles.yaml")


class Request(NamedTuple):
    """One call of ``roles``, whose words are known to be well formed."""

    file: str | None = None  #: a path, the name of a blueprint, or ``None`` for the manifest that lies here
    form: str = "plan"  #: of `FORMATS`
    binary: str | None = None
    session_name: str | None = None
    layout: str | None = None  #: of `LAYOUTS`
    is_replacing: bool = False
    task: str | None = None  #: stands over the file's own
    may_ask: bool = False  #: whether a person may be asked on the terminal


def output(request: Request) -> tuple[str, tuple[str, ...]]:
    """The text for standard output, and the lines for standard error.

    Raises:
        UsageProblem: no file, several to choose from, or a name that cannot be used.
        InvalidFile: with every problem of the file.
    """
    from fleet.errors import UsageProblem

    if request.binary is not None and (not request.binary.strip() or "\x00" in request.binary):
        raise UsageProblem("--binary needs the name of a program")
    fan_out, warnings = fan_out_of(request)
    said = [*warnings, *missing_programs(fan_out, request.form)]
    match request.form:
        case "plan":
            from fleet.roles.plan import render
        case "json":
            from fleet.roles.listing import render
        case "sh":
            from fleet.roles.sh import render
        case "orca":
            from fleet.roles.orca import render
        case _:
            return _tmux(request, fan_out, said)
    return render(fan_out), tuple(said)


def _tmux(request: Request, fan_out: FanOut, said: list[str]) -> tuple[str, tuple[str, ...]]:
    from fleet.errors import UsageProblem
    from fleet.roles.tmux import render, safe_session_name

    wanted = request.session_name if request.session_name is not None else f"fleet-{fan_out.title}"
    session = safe_session_name(wanted)
    if not session.strip("_"):
        raise UsageProblem(f"--session-name {wanted[:80]!r} has no letter or digit")
    if session != wanted:
        said.append(f"the session is called {session}: tmux takes letters, digits, - and _")
    return render(fan_out, session=session, replace=request.is_replacing), tuple(said)


def fan_out_of(request: Request) -> tuple[FanOut, tuple[str, ...]]:
    """What the file asks for, and its warnings.

    Raises:
        UsageProblem: no file, or several to choose from.
        InvalidFile: with every problem of the file.
    """
    from fleet.roles.launch import from_blueprint, from_manifest
    from fleet.roles.manifest import is_manifest, validate_manifest
    from fleet.yaml import read

    path, found = _found(request.file)
    is_named_so = path.name.startswith("roles.") or ".roles." in path.name
    document = read(path, what="manifest" if is_named_so else "file")
    if is_manifest(document):
        manifest = validate_manifest(document, path)
        fan_out = from_manifest(manifest, binary=request.binary, layout=request.layout, task=request.task)
        return fan_out, ()
    # Imported here: a manifest needs none of it, and it takes several times as long as all the rest.
    from fleet.blueprint.find import Found
    from fleet.blueprint.places import Scope
    from fleet.cli.opening import open_document, settings_here
    from fleet.cli.trust import require_trust

    settings = settings_here()
    found = found or Found(path.name, Scope.PATH, path)
    opened = open_document(document, found, settings, is_task_needed=request.task is None)
    require_trust(opened, settings, may_ask=request.may_ask)
    fan_out = from_blueprint(
        opened.loaded,
        binary=request.binary,
        layout=request.layout,
        task=request.task,
        skills=opened.skills,
    )
    return fan_out, opened.warnings


def _found(file: str | None) -> tuple[Path, Found | None]:
    """The file that was named, or the one that lies here; and how it was found, if by name."""
    from fleet.errors import UsageProblem

    if file is not None:
        path = Path(file)
        if "/" not in file and "." not in file and not path.exists():
            from fleet.blueprint.find import look_up
            from fleet.cli.opening import places_of, settings_here

            found = look_up(file, places_of(settings_here()))
            return found.path, found
        return path, None
    for name in _FIRST:
        if Path(name).exists():
            return Path(name), None
    here = sorted(path for path in Path().glob("*.roles.yaml") if path.is_file())
    if len(here) == 1:
        return here[0], None
    if len(here) > 1:
        raise UsageProblem(f"several manifests here: {', '.join(map(str, here))}", hint="name one of them")
    if _LAST.exists():
        return _LAST, None
    raise UsageProblem(
        f"no roles manifest here: looked for {', '.join(_FIRST)}, *.roles.yaml and {_LAST}",
        hint="name a manifest or a blueprint: roles FILE",
    )


def missing_programs(fan_out: FanOut, form: str) -> Iterator[str]:
    """Programs that are not on PATH; the text is the same with or without them."""
    then = "; its pane will say so and stay" if form == "tmux" else ""
    for launch in fan_out.launches:
        if launch.argv and not _is_on_path(launch.words[0]):
            yield f"warning: {launch.name}: {launch.words[0]} is not on PATH{then}"
    is_needed = any(launch.is_native or not launch.argv for launch in fan_out.launches)
    if is_needed and not _is_on_path("roundtable"):
        yield "warning: roundtable is not on PATH; without it no role can speak in its room"


def _is_on_path(program: str) -> bool:
    """What a shell would find; `shutil.which`, whose module brings four compressors along."""
    folders = [""] if "/" in program else os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(folder, program) for folder in folders)  # noqa: PTH118 - a name may hold anything
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in paths)  # noqa: PTH113
