"""The import direction of the house: no cycle, floors that only look down, foreign packages behind one door."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("fleet", "roundtable")

#: Floors of `fleet`, ground first; a module belongs to the longest prefix and imports only its own floor or below.
FLOORS = (
    (
        "fleet",
        "fleet.errors",
        "fleet.yaml",
        "fleet.deadline",
        "fleet.process",
        "fleet.warden",
        "fleet.wardens",
        "fleet.supervisor",
    ),
    ("fleet.settings",),
    ("fleet.blueprint",),
    ("fleet.agents",),
    ("fleet.plan", "fleet.trust"),
    ("fleet.check",),
    ("fleet.runs", "fleet.roles"),
    ("fleet.deliberation", "fleet.dispatch", "fleet.chain", "fleet.report", "fleet.tmux", "fleet.live"),
    ("fleet.conductor", "fleet.shapes"),
    ("fleet.doctor", "fleet.testing"),
    ("fleet.cli", "fleet.__main__"),
)

#: Packages that only the named modules may import.
DOORS = {
    "yaml": {"fleet.yaml"},
    "yamlcore": {"fleet.yaml"},
    "rich": {"fleet.report.terminal"},
    "libtmux": {"fleet.tmux"},
    "jinja2": {"fleet.blueprint.template", "fleet.deliberation.prompts"},
    "pydantic": {"fleet.blueprint", "fleet.chain.schema", "fleet.settings", "roundtable.mcp.unreadable"},
    "asyncio": set(),
    "subprocess": {"roundtable.spawn", "fleet.wardens"},
    "sqlite3": {"roundtable.stores", "roundtable.memory.index"},
    "mcp": {"roundtable.mcp"},
    "mcp_types": {"roundtable.mcp"},
    "starlette": {"roundtable.mcp.http"},
    "uvicorn": {"roundtable.mcp.http"},
}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path, *, is_deep: bool) -> set[str]:
    """Absolute names imported by a module: at its top, or anywhere if ``is_deep``. Type-only imports do not count."""
    names: set[str] = set()
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        if is_deep or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))
    return names


def ours(path: Path, *, is_deep: bool) -> set[str]:
    return {name for name in imports(path, is_deep=is_deep) if name in MODULES}


def floor(module: str) -> int:
    matching = [
        (len(prefix), level)
        for level, prefixes in enumerate(FLOORS)
        for prefix in prefixes
        if module == prefix or (prefix != "fleet" and module.startswith(prefix + "."))
    ]
    assert matching, f"{module} stands on no floor of the house"
    return max(matching)[1]


def test_there_is_no_import_cycle() -> None:
    graph = {name: ours(path, is_deep=False) - {name} for name, path in MODULES.items()}
    # A package's own `__init__` is executed before its modules; it is not a cycle that they name it.
    graph = {name: {to for to in targets if not name.startswith(to + ".")} for name, targets in graph.items()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("roundtable")])
def test_the_room_never_imports_the_launcher(module: str) -> None:
    assert not [name for name in imports(MODULES[module], is_deep=True) if name.split(".")[0] == "fleet"]


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] == "fleet"])
def test_an_arrow_never_runs_back_up(module: str) -> None:
    below = floor(module)
    above = {
        name
        for name in ours(MODULES[module], is_deep=True)
        if name.startswith("fleet") and floor(name) > below
    }
    assert not above, f"{module} imports from a floor above"


@pytest.mark.parametrize("package", DOORS)
def test_a_foreign_package_has_one_door(package: str) -> None:
    users = {
        name
        for name, path in MODULES.items()
        if any(imported.split(".")[0] == package for imported in imports(path, is_deep=True))
    }
    allowed = DOORS[package]
    assert {u for u in users if not any(u == door or u.startswith(door + ".") for door in allowed)} == set()


def test_a_name_without_meaning_is_not_a_module() -> None:
    empty = {
        "utils",
        "util",
        "helpers",
        "helper",
        "common",
        "manager",
        "managers",
        "handlers",
        "handler",
        "service",
    }
    assert not [name for name in MODULES if set(name.split(".")) & empty]
