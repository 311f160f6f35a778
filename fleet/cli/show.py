"""``fleet show``: a blueprint as it will be used, with every default and where each value came from."""

from __future__ import annotations

import json

import click

from fleet.cli.completing import blueprint_names

__all__ = ["command"]


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet show design",
)
@click.argument("blueprint", metavar="FILE|NAME", shell_complete=blueprint_names)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead, with the origins beside it.")
@click.option(
    "--var", "variables", metavar="NAME=VALUE", multiple=True, help="Fill in a variable of its texts."
)
def command(blueprint: str, variables: tuple[str, ...], *, as_json: bool) -> None:
    """Print the resolved blueprint as YAML.

    A value without a remark stands in the file itself. What looks secret is shown as ***. A text whose variable has no
    value stays as it is written.
    """
    from fleet.blueprint.resolved import origins, plain, resolved
    from fleet.blueprint.written import yaml_text
    from fleet.cli.opening import open_blueprint, settings_here

    opened = open_blueprint(blueprint, settings_here(), variables=variables, is_lenient=True)
    data = resolved(opened.loaded)
    for warning in opened.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        report = {
            "path": str(opened.found.path),
            "scope": str(opened.found.scope),
            "blueprint": plain(data),
            "origins": origins(data),
        }
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    click.echo(f"# {opened.found.path} ({opened.found.scope})\n{yaml_text(data)}", nl=False)
