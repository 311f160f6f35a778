"""``roles`` and ``fleet roles``: print what would fan a team out. Nothing is started; stdout is the script alone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from roundtable.commandline import invoke

__all__ = ["command", "main"]

#: Tried in this order when no file is named; then the only ``*.roles.yaml`` here, then `_LAST`.
_FIRST = ("roles.yaml", "fleet.roles.yaml", "orphus.roles.yaml")
_LAST = Path("blueprints/roles.yaml")
_FORMATS = ("plan", "tmux")
#: As `fleet.blueprint.schema.Layout`, whose import `--help` shall not pay for.
_LAYOUTS = ("windows", "tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical")


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: roles --format tmux | sh",
)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="plan",
    show_default=True,
    help="A listing to read, or a shell script that starts every role in tmux.",
)
@click.option(
    "--binary", metavar="NAME", help="Start this program for every role, with --name, --provider, …"
)
@click.option("--session-name", metavar="NAME", help="The tmux session; default fleet-<task>.")
@click.option("--layout", type=click.Choice(_LAYOUTS), help="Windows, or panes of one window.")
@click.option("--replace", is_flag=True, help="The script ends a session of the same name first.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a roles manifest and stop.")
def command(
    file: str | None,
    form: str,
    binary: str | None,
    session_name: str | None,
    layout: str | None,
    *,
    replace: bool,
    schema: bool,
) -> None:
    """Print a roles manifest or a blueprint as a plan or as a tmux script.

    Without FILE: roles.yaml, fleet.roles.yaml, orphus.roles.yaml, the only *.roles.yaml here, or
    blueprints/roles.yaml.
    """
    if schema:
        from fleet.cli.schema import schema_text

        _write(schema_text("roles"))
        return
    # Imported here, so that `--help` reads no YAML and builds no models.
    from fleet.blueprint.load import validate_blueprint
    from fleet.errors import UsageProblem
    from fleet.roles.launch import from_blueprint, from_manifest
    from fleet.roles.manifest import is_manifest, validate_manifest
    from fleet.yaml import read

    if binary is not None and (not binary.strip() or "\x00" in binary):
        raise UsageProblem("--binary needs the name of a program")
    path = _found(file)
    document = read(path, what="manifest" if ".roles." in path.name or "roles." in path.name else "file")
    if is_manifest(document):
        fan_out = from_manifest(validate_manifest(document, path), binary=binary, layout=layout)
    else:
        loaded = validate_blueprint(document, path)
        for warning in loaded.warnings:
            click.echo(str(warning), err=True)
        fan_out = from_blueprint(loaded, binary=binary, layout=layout)
    for launch in fan_out.launches:
        _warn_if_missing(launch.name, launch.argv[:1])
    if form == "plan":
        from fleet.roles.plan import render

        _write(render(fan_out))
        return
    from fleet.roles.tmux import render as render_tmux
    from fleet.roles.tmux import safe_session_name

    wanted = session_name if session_name is not None else f"fleet-{fan_out.title}"
    session = safe_session_name(wanted)
    if not session.strip("_"):
        raise UsageProblem(f"--session-name {wanted[:80]!r} has no letter or digit")
    if session != wanted:
        click.echo(f"the session is called {session}: tmux takes letters, digits, - and _", err=True)
    _write(render_tmux(fan_out, session=session, replace=replace))


def main() -> None:
    """The ``roles`` command."""
    sys.exit(invoke(command, program="roles"))


def _found(file: str | None) -> Path:
    """The file that was named, or the one that lies here."""
    from fleet.errors import UsageProblem

    if file is not None:
        path = Path(file)
        if not path.exists() and "/" not in file and "." not in file:
            from fleet.blueprint.find import find_blueprint

            return find_blueprint(file)
        return path
    for name in _FIRST:
        if Path(name).exists():
            return Path(name)
    here = sorted(path for path in Path().glob("*.roles.yaml") if path.is_file())
    if len(here) == 1:
        return here[0]
    if len(here) > 1:
        raise UsageProblem(f"several manifests here: {', '.join(map(str, here))}", hint="name one of them")
    if _LAST.exists():
        return _LAST
    raise UsageProblem(
        f"no roles manifest here: looked for {', '.join(_FIRST)}, *.roles.yaml and {_LAST}",
        hint="name a manifest or a blueprint: roles FILE",
    )


def _warn_if_missing(name: str, program: tuple[object, ...]) -> None:
    """Say that a role's program is not on PATH; the output is the same with or without it."""
    from shutil import which

    if program and which(str(program[0])) is None:
        click.echo(f"warning: {name}: {program[0]} is not on PATH; its pane will say so and stay", err=True)


def _write(text: str) -> None:
    """Write UTF-8 whatever the locale says; a path keeps the bytes it has on disk."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()
