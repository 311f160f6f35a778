"""``fleet schema``: print the JSON Schema of something Fleet reads or writes."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import click

__all__ = ["command", "schema_text"]

#: What can be printed -> the model or the function that gives it; imported only when asked for.
_SCHEMAS = {
    "blueprint": "fleet.blueprint.schema:Blueprint",
    "chain": "fleet.chain.schema:ChainFile",
    "roles": "fleet.roles.manifest:manifest_schema",
    "event": "fleet.runs.journal:event_schema",
    "result": "fleet.runs.results:result_schema",
}


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: fleet schema blueprint > blueprint.schema.json",
)
@click.argument("what", type=click.Choice(list(_SCHEMAS)), default="blueprint")
def command(what: str) -> None:
    """Print the JSON Schema of a blueprint, a chain, a roles manifest, an event or a result."""
    click.echo(schema_text(what), nl=False)


def schema_text(what: str) -> str:
    """One schema of the table as JSON, ending in a newline."""
    module, _, name = _SCHEMAS[what].partition(":")
    source: Any = getattr(import_module(module), name)
    if hasattr(source, "model_json_schema"):
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **source.model_json_schema(by_alias=True, schema_generator=_generator()),
        }
    else:
        schema = source()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _generator() -> Any:
    """What writes the schemas of files; imported only when one is asked for."""
    from fleet.blueprint.schema import FileSchema

    return FileSchema
