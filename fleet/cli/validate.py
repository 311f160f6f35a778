"""``fleet validate``: say everything that is wrong in blueprints, roles manifests and agent files, and run nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.completing import blueprint_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.blueprint.load import Loaded
    from fleet.errors import Problem
    from fleet.yaml import KeyPath

__all__ = ["command"]


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet validate --strict blueprints/*.yaml",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE|NAME…", shell_complete=blueprint_names)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file instead.")
def command(files: tuple[str, ...], *, strict: bool, as_json: bool) -> int:
    """Check blueprints, roles manifests and agent files (.md).

    Every finding is told, with its line and column: errors as they are, warnings marked as such. Exit code 2 if a file
    has an error, or with --strict a warning. What is installed here does not matter; fleet agents tells that.
    """
    is_bad = False
    for file in files:
        errors, warnings = _check(file)
        is_good = not errors and not (strict and warnings)
        is_bad |= not is_good
        if as_json:
            report = {
                "file": file,
                "valid": not errors,
                "ok": is_good,
                "strict": strict,
                "errors": [_as_json(problem) for problem in errors],
                "warnings": [_as_json(problem) for problem in warnings],
            }
            click.echo(json.dumps(report, ensure_ascii=False))
            continue
        for problem in errors:
            click.echo(str(problem), err=True)
        for problem in warnings:
            click.echo(f"{problem} (warning)", err=True)
        count = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
        if is_good:
            click.echo(f"{file}: valid{f', {count}' if warnings else ''}")
        elif not errors:
            click.echo(f"{file}: valid, but --strict takes {count} for errors", err=True)
    return 2 if is_bad else 0


def _check(word: str) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """The errors and the warnings of one file."""
    from fleet.agents.definition import read_agent
    from fleet.blueprint.find import look_up
    from fleet.blueprint.load import validate_blueprint
    from fleet.blueprint.wording import in_order
    from fleet.cli.opening import places_of, settings_here
    from fleet.errors import InvalidFile, Problem
    from fleet.roles.manifest import is_manifest, validate_manifest
    from fleet.yaml import read

    is_name = "/" not in word and "." not in word and not Path(word).exists()
    path = look_up(word, places_of(settings_here())).path if is_name else Path(word)
    try:
        if path.suffix == ".md":
            agent = read_agent(path, shown=str(path))
            if agent is None:
                return (
                    Problem(str(path), 1, 1, "", "no agent file: it has no settings between lines of ---"),
                ), ()
            return (), in_order((*agent.notes, *agent.warnings))
        document = read(path, what="file")
        if is_manifest(document):
            validate_manifest(document, path)
            return (), ()
        loaded = validate_blueprint(document, path)
        return (), in_order((*loaded.warnings, *_unknown_runtimes(loaded)))
    except InvalidFile as error:
        return error.problems, ()


def _unknown_runtimes(loaded: Loaded) -> Iterator[Problem]:
    """Runtimes that no version of Fleet knows; what is installed does not matter here."""
    from fleet.agents.choose import RUNTIMES
    from fleet.blueprint.wording import did_you_mean

    named: list[tuple[KeyPath, str | None]] = [
        (("agents", name, "runtime"), agent.runtime) for name, agent in loaded.blueprint.agents.items()
    ]
    for name, team in loaded.blueprint.teams.items():
        for index, member in enumerate(team.members):
            named.append((("teams", name, "members", index, "runtime"), member.runtime))
    for key, runtime in named:
        if runtime is not None and runtime not in RUNTIMES:
            known = f"is not a runtime; known: {', '.join(RUNTIMES)}{did_you_mean(runtime, RUNTIMES)}"
            yield loaded.problem(key, f'"{runtime}" {known}')


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "key": problem.key,
        "message": problem.text,
    }
