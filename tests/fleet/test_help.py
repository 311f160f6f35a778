"""Help is quick, and the pages that are kept are those that the parser would make."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from fleet.cli import COMMANDS, EXAMPLE, SUMMARY
from fleet.cli.parser import group
from fleet.cli.roles import command as roles
from fleet.cli.roles_page import PAGE
from roundtable.overview import overview


def page(command: click.Command, name: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=80, max_content_width=80)
    return command.get_help(context) + "\n"


def test_the_page_of_roles_is_current() -> None:
    assert page(roles, "roles") == PAGE


def test_the_page_of_fleet_is_the_parsers() -> None:
    assert page(group, "fleet") == overview("fleet", SUMMARY, COMMANDS, EXAMPLE)


@pytest.mark.parametrize("call", ["main", "roles"])
def test_help_imports_no_parser_and_nothing_heavy(call: str) -> None:
    code = (
        f"import sys; sys.argv = ['x', '--help']; from fleet.cli import {call}; {call}();"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"click", "anyio", "asyncio", "pydantic", "yaml", "msgspec", "jinja2", "rich", "libtmux"}
    assert not heavy & set(eval(done.stderr))  # noqa: S307 - a list of names of our own making
    assert done.stdout.startswith("Usage: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    context = click.Context(group, info_name="fleet")
    command = group.get_command(context, name)
    assert command is not None
    text = page(command, name)
    assert "Example: " in text
