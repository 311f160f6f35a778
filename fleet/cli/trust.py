"""``fleet trust``: say yes, once, to a file of a project that could act; and the question wherever it is met."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fleet.cli.completing import agent_or_blueprint_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.blueprint.places import Places
    from fleet.cli.opening import Opened
    from fleet.settings import Settings
    from fleet.trust import Claim, TrustStore

__all__ = ["agree_to", "command", "require_trust"]

#: Characters of one file and its acts in an error.
_MAX_CLAIM = 300


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet trust review",
)
@click.argument("names", nargs=-1, metavar="[NAME|FILE]...", shell_complete=agent_or_blueprint_names)
@click.option("--yes", "is_agreed", is_flag=True, help="Trust without a question.")
@click.option("--forget", "is_forgotten", is_flag=True, help="Take the trust back instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(names: tuple[str, ...], *, is_agreed: bool, is_forgotten: bool, as_json: bool) -> int:
    """Trust blueprints and agents that came with a project.

    NAME is a blueprint, with the agents it names, or an agent. What they could do is shown and asked about; the yes
    holds until the file changes or moves. Without a NAME: list what is trusted.
    """
    from fleet.cli.opening import places_of, settings_here
    from fleet.trust import TrustStore

    settings = settings_here()
    store = TrustStore(settings.home.root)
    if not names:
        _list(store, as_json=as_json)
        return 0
    wanted = [claim for name in names for claim in _claims(name, settings, places_of(settings))]
    if is_forgotten:
        gone = store.forget(claim.path for claim in wanted)
        click.echo(f"{gone} forgotten", err=True)
        return 0
    lacking = store.lacks(wanted)
    for claim in wanted:
        if claim not in lacking:
            click.echo(f"{claim.shown}: trusted already", err=True)
    if not wanted:
        click.echo("nothing to trust: nothing there could act", err=True)
    _agree(store, lacking, is_agreed=is_agreed, names=names)
    return 0


def require_trust(opened: Opened, settings: Settings, *, may_ask: bool = True) -> None:
    """Ask for a yes to every file that could act and has none; there has to be a terminal for it.

    Raises:
        AgreementNeeded: nobody can be asked, or the answer was no.
        InvalidFile: the user's trust file is not what it should be.
    """
    from fleet.cli.opening import places_of
    from fleet.trust import claims

    shown = places_of(settings).shown(opened.found.path)
    needed = claims(opened.found, opened.loaded, opened.agents, shown=shown)
    agree_to(needed, settings, names=(_name_for_trust(opened),), may_ask=may_ask)


def agree_to(
    needed: tuple[Claim, ...], settings: Settings, *, names: Sequence[str], may_ask: bool = True
) -> None:
    """Do what ``require_trust`` does for files that are known; ``names`` are what ``fleet trust`` is told of them.

    Raises:
        AgreementNeeded: nobody can be asked, or the answer was no.
        InvalidFile: the user's trust file is not what it should be.
    """
    from fleet.trust import TrustStore

    if not needed:
        return
    store = TrustStore(settings.home.root)
    _agree(store, store.lacks(needed), is_agreed=False, names=names, may_ask=may_ask)


def _name_for_trust(opened: Opened) -> str:
    """How ``fleet trust`` is told of this blueprint."""
    from fleet.blueprint.places import Scope

    return str(opened.found.path) if opened.found.scope is Scope.PATH else opened.found.name


def _agree(
    store: TrustStore,
    lacking: tuple[Claim, ...],
    *,
    is_agreed: bool,
    names: Sequence[str],
    may_ask: bool = True,
) -> None:
    """Show each and get a yes for all of them, or raise."""
    import shlex

    from fleet.errors import AgreementNeeded

    if not lacking:
        return
    hint = f"look at it; then: fleet trust {shlex.join(names)} --yes"
    if not is_agreed and not (may_ask and _is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        files = "; ".join(f"{claim.shown} ({', '.join(claim.acts)})"[:_MAX_CLAIM] for claim in lacking)
        raise AgreementNeeded(f"not trusted yet, and it came with this project: {files}", hint=hint)
    for claim in lacking:
        click.echo(f"{claim.shown} came with this project and could act:", err=True)
        for act in claim.acts:
            click.echo(f"  {act}", err=True)
    question = "Trust it as it is now?" if len(lacking) == 1 else "Trust them as they are now?"
    if not is_agreed and not _is_yes(question):
        raise AgreementNeeded("not trusted; nothing was started", hint=hint)
    store.remember(lacking, now=datetime.now(UTC).isoformat(timespec="seconds"))
    click.echo("trusted, until it changes", err=True)


def _claims(name: str, settings: Settings, places: Places) -> list[Claim]:
    """What a word on the command line means: a blueprint with its agents, or an agent."""
    from pathlib import Path

    from fleet.agents.find import read_agents
    from fleet.blueprint.find import look_up
    from fleet.cli.opening import open_blueprint
    from fleet.errors import UsageProblem
    from fleet.trust import Claim, acts_of_agent, claims

    agents = read_agents(places)
    named = [
        agent
        for agent in agents.found
        if agent.file is not None
        and (agent.path.absolute() == Path(name).absolute() or agents.get(name) is agent)
    ]
    try:
        found = None if named and name.endswith(".md") else look_up(name, places)
    except UsageProblem:
        if not named:
            raise
        found = None
    if found is not None:
        opened = open_blueprint(name, settings, is_lenient=True)
        return [
            *claims(
                opened.found.as_named(places), opened.loaded, opened.agents, shown=places.shown(found.path)
            )
        ]
    wanted = []
    for agent in named:
        acts = tuple(acts_of_agent(agent.file.definition)) if agent.file else ()
        if acts and agent.file and agent.scope.is_project:
            wanted.append(Claim(agent.path.resolve(), agent.shown, agent.file.fingerprint, acts))
    return wanted


def _list(store: TrustStore, *, as_json: bool) -> None:
    from hashlib import sha256

    rows = []
    for entry in store.entries():
        try:
            is_same = sha256(entry.path.read_bytes()).hexdigest() == entry.fingerprint
        except OSError:
            is_same = False
        rows.append(
            {"path": str(entry.path), "since": entry.since, "sha256": entry.fingerprint, "current": is_same}
        )
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        state = "" if row["current"] else " (changed or gone since)"
        click.echo(f"{row['since']} {row['path']}{state}")


def _is_yes(question: str) -> bool:
    """One line from the terminal; anything but a yes is a no, the end of input too."""
    click.echo(f"{question} [y/N] ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream is not None and stream.isatty())  # type: ignore[attr-defined]
    except ValueError:  # closed
        return False
