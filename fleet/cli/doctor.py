"""``fleet doctor``: what is here, what is missing, and the line that mends it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fleet.doctor.finding import Finding

__all__ = ["command"]

#: However slow the programs are that are asked, all at the same time.
_SECONDS = 30.0


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet doctor --json",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def command(*, as_json: bool) -> int:
    """Look at tmux, git, the locale, the socket, the agent CLIs and the keys.

    Nothing is changed and no network is used. No value of a variable is shown. Each finding that can be mended comes
    with the line that mends it. Exit code 1 if something is broken that every run needs, else 0.
    """
    from roundtable.harmless import harmless_line

    findings = _findings()
    broken = [finding for finding in findings if finding.level == "broken"]
    if as_json:
        listed = [
            {"area": f.area, "level": str(f.level), "text": harmless_line(f.text), "mend": f.mend}
            for f in findings
        ]
        click.echo(json.dumps({"ok": not broken, "findings": listed}, ensure_ascii=False, indent=2))
    else:
        area = None
        for finding in findings:
            if finding.area != area:
                area = finding.area
                click.echo(area)
            click.echo(harmless_line(f"  {finding.level:<8} {finding.text}"))
            if finding.mend:
                click.echo(harmless_line(f"           mend: {finding.mend}"))
    if broken:
        areas = ", ".join(dict.fromkeys(finding.area for finding in broken))
        click.echo(f"broken, and every run needs it: {areas}", err=True)
    return 1 if broken else 0


def _findings() -> list[Finding]:
    import os
    from pathlib import Path

    import anyio

    from fleet.blueprint.places import Places
    from fleet.cli.opening import folder_here
    from fleet.doctor.asking import asker
    from fleet.doctor.clis import look_at_clis
    from fleet.doctor.finding import warning
    from fleet.doctor.home import look_at_home
    from fleet.doctor.keys import look_at_keys
    from fleet.doctor.machine import look_at_git, look_at_locale, look_at_python
    from fleet.doctor.tmux import look_at_tmux
    from fleet.errors import FleetError
    from fleet.settings import resolve
    from roundtable.home import Home

    environ, folder = os.environ, folder_here()
    home, user = Home.from_environment(environ), Path("~").expanduser()
    try:
        default_runtime = resolve(environ, folder=folder).default_runtime
    except FleetError:  # told with the home
        default_runtime = None
    findings = [*look_at_python(), *look_at_locale(environ), *look_at_home(home, environ, folder)]
    parts: dict[str, list[Finding]] = {"git": [], "tmux": [], "clis": []}

    async def look() -> None:
        ask = asker(environ, folder)

        async def git() -> None:
            parts["git"] = await look_at_git(ask, Places.around(folder, home=home.root))

        async def tmux() -> None:
            parts["tmux"] = await look_at_tmux(ask, environ, user)

        async def clis() -> None:
            parts["clis"] = await look_at_clis(ask, environ, user, folder, default_runtime=default_runtime)

        with anyio.move_on_after(_SECONDS) as bound:
            async with anyio.create_task_group() as group:
                for part in (git, tmux, clis):
                    group.start_soon(part)
        if bound.cancelled_caught:
            missed = ", ".join(name for name, found in parts.items() if not found)
            text = f"the programs here answer too slowly; not looked at within {_SECONDS:g} s: {missed}"
            findings.append(warning("doctor", text, "fleet doctor, once the machine is less busy"))

    anyio.run(look)
    return [*findings, *parts["git"], *parts["tmux"], *parts["clis"], *look_at_keys(environ)]
