"""The page of each command names every option, and its examples print what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import pytest

from fleet.cli.parser import group
from tests.fleet.cli.test_completion import programs
from tests.integration.running import end_broker

PAGES = sorted((Path(__file__).parents[3] / "docs/reference/commands").glob("*.md"))
#: Commands of this table have their options described elsewhere.
ELSEWHERE = {"--help"}


def examples(page: Path) -> list[tuple[str, str]]:
    """Every command of the page's ``console`` blocks with what it is said to print."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def pattern(output: str) -> str:
    """``…`` stands for anything on its line, alone on a line for any lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FLEET_", "PYTEST_", "TMUX"))
    }
    environ.pop("CI", None)
    environ |= {
        "FLEET_HOME": str(tmp_path / "home"),
        "PATH": f"{programs(tmp_path / 'bin')}:{environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    assert examples(page)
    for command, output in examples(page):
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=project,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
        )
        said = f"$ {command}\n{done.stdout}\nis not\n{output}"
        assert re.fullmatch(pattern(output), done.stdout), said
    end_broker(environ)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_option_is_on_the_page(page: Path) -> None:
    command = group.get_command(click.Context(group, info_name="fleet"), page.stem)
    assert command is not None
    text = page.read_text()
    assert text.startswith(f"# fleet {page.stem}")
    named = {
        name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts
    }
    missing = {name for name in named - ELSEWHERE if name.startswith("--") and f"`{name}" not in text}
    assert missing == set()
    told = set(re.findall(r"^\| `(--[a-z-]+)", text, re.MULTILINE))
    assert told <= named


@pytest.mark.parametrize(
    "page", sorted({*PAGES, *PAGES[0].parents[1].glob("*.md")}), ids=lambda page: page.stem
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        path = page.parent / target if target else page
        heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert anchor in anchors, f"{target}#{anchor}"
