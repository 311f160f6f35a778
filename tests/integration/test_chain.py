"""`fleet chain` with real processes: what goes from step to step, and what ends a chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.integration.running import Done, fleet

Environ = dict[str, str]

SH = {"command": ["sh"]}
CAT = {"command": ["cat"]}


def chain(folder: Path, *steps: dict[str, Any], **rest: Any) -> str:
    path = folder / "c.chain.json"
    agents = {"sh": SH, "cat": CAT, **rest.pop("agents", {})}
    path.write_text(json.dumps({"name": "c", "description": "d", "agents": agents, "chain": steps, **rest}))
    return str(path)


def said(done: Done, number: int, seat: str) -> str:
    """What a member wrote, without the heading of its turn."""
    text = (done.folder / "artifacts" / f"{number:02d}-{seat}.md").read_text()
    return text.partition("\n\n")[2]


def test_what_goes_from_step_to_step_is_bounded_and_full_is_the_way_out(
    environ: Environ, place: Path
) -> None:
    path = chain(
        place,
        {"agent": "sh", "task": "head -c {task} /dev/zero | tr '\\0' x", "as": "a"},
        {"agent": "cat", "task": "{outputs.a}"},
        {"agent": "cat", "task": "{outputs.a.full}"},
        {"agent": "cat", "task": "{previous.full}"},
        {"agent": "cat"},
    )
    done = fleet("chain", path, "100000", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    artifact = done.folder / "artifacts" / "01-sh.md"
    cut = f"{'x' * 2000}\n…(+98000 chars) full output: {artifact}\n"
    assert said(done, 2, "cat-1" if (done.folder / "artifacts" / "02-cat-1.md").exists() else "cat") == cut
    assert said(done, 3, "cat") == said(done, 4, "cat") == "x" * 100_000 + "\n"
    assert said(done, 5, "cat").startswith("x" * 2000 + "\n…(+98000 chars) full output: ")
    head, _, text = done.stdout.partition("\n\n")
    assert head.startswith("chain completed: sh → cat → cat → cat → cat (5 steps, ")
    assert len(text) < 2000 + 200 + len(str(done.folder))
    done = fleet("chain", path, "2000", environ=environ, folder=place)
    assert said(done, 2, "cat") == "x" * 2000 + "\n"


def test_a_failed_step_ends_the_chain_and_is_named(environ: Environ, place: Path) -> None:
    path = chain(
        place,
        {"agent": "sh", "task": "echo one"},
        {"agent": "sh", "task": "echo half; exit 3 # {previous}"},
        {"agent": "sh", "task": "touch started"},
    )
    done = fleet("chain", path, environ=environ, folder=place)
    assert done.code == 1
    assert done.stdout == "chain failed at step 2 (sh) of 3\nfailed: exit 3\nhalf\n"
    assert not (place / "started").exists()
    assert [team["state"] for team in done.result["teams"]] == ["done", "failed", "pending"]
    assert done.result["teams"][2]["members"][0]["state"] == "skipped"
    (notice,) = (event for event in done.events if event["type"] == "notice")
    assert notice["line"].endswith("2 of 3 finished. Failed: sh (exit 3). Skipped: sh.")


def test_a_group_gives_one_bounded_return(environ: Environ, place: Path) -> None:
    big = "head -c 100000 /dev/zero | tr '\\0' x # {task}"
    path = chain(
        place,
        {
            "parallel": [
                {"agent": "sh", "task": big, "count": 3, "name": "b"},
                {"agent": "sh", "task": big, "as": "last"},
            ]
        },
        {"agent": "cat"},
        {"agent": "cat", "task": "{outputs.last}"},
    )
    done = fleet("chain", path, "go", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert [member["seat"] for member in done.result["teams"][0]["members"]] == ["b-1", "b-2", "b-3", "sh"]
    prompt = said(done, 5, "cat")
    assert prompt.startswith(f"4/4 succeeded · paths are below {done.folder}\n")
    assert len(prompt) <= 2200 + len(str(done.folder))
    assert all(f"artifacts/0{number}-" in prompt for number in range(1, 5))
    assert said(done, 6, "cat").startswith("x" * 2000 + "\n…(+98000 chars)")


ITEMS = 'cat > /dev/null; echo "Here: "; echo \'{"items": [{"name": "One"}, {"name": "Two"}, {"name": "Three"}]}\''
FACTS = {"agent": "facts", "as": "facts", "outputSchema": {"type": "object", "required": ["items"]}}


def fan(**rest: Any) -> dict[str, Any]:
    expand = {"from": {"output": "facts", "path": "/items"}, "key": "/name", "maxItems": 3, **rest}
    return {
        "expand": expand,
        "parallel": {"agent": "cat", "task": "see {item.name}"},
        "collect": {"as": "all"},
    }


def test_a_fan_out_has_a_member_per_item(environ: Environ, place: Path) -> None:
    agents = {"facts": {"command": ["sh", "-c", ITEMS]}}
    path = chain(place, FACTS, fan(), {"agent": "cat", "task": "{outputs.all}"}, agents=agents)
    done = fleet("chain", path, "go", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert [member["seat"] for member in done.result["teams"][1]["members"]] == ["cat-1", "cat-2", "cat-3"]
    entries = json.loads(done.stdout.partition("\n\n")[2])
    assert [(entry["key"], entry["index"], entry["status"], entry["text"]) for entry in entries] == [
        ("One", 0, "ok", "see One"), ("Two", 1, "ok", "see Two"), ("Three", 2, "ok", "see Three"),
    ]  # fmt: skip
    assert json.loads((done.folder / "chain" / "all.json").read_text()) == entries


def test_a_fan_out_over_too_much_or_nothing(environ: Environ, place: Path) -> None:
    agents = {"facts": {"command": ["sh", "-c", ITEMS]}}
    path = chain(place, FACTS, fan(maxItems=2), {"agent": "cat"}, agents=agents)
    done = fleet("chain", path, "go", environ=environ, folder=place)
    assert done.code == 1
    assert done.stdout == (
        "chain failed at step 2 ([cat]) of 3\nfacts/items resolved 3 items, exceeding maxItems 2\n"
    )
    agents = {"facts": {"command": ["sh", "-c", "cat > /dev/null; echo '{\"items\": []}'"]}}
    path = chain(place, FACTS, fan(), {"agent": "cat", "task": "{outputs.all} {previous}"}, agents=agents)
    done = fleet("chain", path, "go", environ=environ, folder=place)
    assert done.code == 0, done.stderr
    assert done.stdout.endswith("\n\n[] Dynamic fanout produced 0 results.\n")
    path = chain(place, FACTS, fan(onEmpty="fail"), agents=agents)
    done = fleet("chain", path, "go", environ=environ, folder=place)
    assert (done.code, "is empty" in done.stdout) == (1, True)


def test_files_go_to_the_chains_folder(environ: Environ, place: Path) -> None:
    agents = {"facts": {"command": ["sh", "-c", "cat > /dev/null; echo facts"]}}
    path = chain(
        place,
        {"agent": "facts", "task": "go", "output": "facts.md", "outputMode": "file-only"},
        {"agent": "cat", "task": "{previous} in {chain_dir}", "reads": ["facts.md"]},
        {
            "parallel": [
                {"agent": "cat", "task": "a {previous}", "output": "x.md"},
                {"agent": "cat", "task": "b {previous}", "output": "x.md"},
            ]
        },
        agents=agents,
    )
    done = fleet("chain", path, environ=environ, folder=place)
    assert done.code == 0, done.stderr
    folder = done.folder / "chain"
    assert (folder / "facts.md").read_text() == "facts\n"
    prompt = said(done, 2, "cat")
    assert f"Output saved to: {folder}/facts.md (" in prompt
    assert f"in {folder}\n\n## Read first\n- {folder}/facts.md\n" in prompt
    assert (folder / "parallel-3" / "1-cat" / "x.md").exists()
    assert (folder / "parallel-3" / "2-cat" / "x.md").exists()


def test_nothing_starts_when_something_does_not_fit(environ: Environ, place: Path) -> None:
    path = chain(
        place,
        {"agent": "sh", "task": "touch started"},
        {"agent": "cat", "task": "{outputs.nope}"},
        {"agent": "nobody"},
    )
    done = fleet("chain", path, environ=environ, folder=place)
    assert done.code == 2
    assert "c.chain.json:1:" in done.stderr
    assert "unknown chain output reference {outputs.nope} at step 2" in done.stderr
    path = chain(place, {"agent": "sh", "task": "touch started"}, {"agent": "nobody"})
    done = fleet("chain", path, environ=environ, folder=place)
    assert (done.code, "unknown agent: nobody" in done.stderr) == (2, True)
    assert not (place / "started").exists()
    assert not (place / ".fleet").exists()


def test_a_chain_of_the_project_by_name_is_asked_about(environ: Environ, place: Path) -> None:
    folder = place / ".fleet" / "chains"
    folder.mkdir(parents=True)
    chain(folder, {"agent": "sh", "task": "echo hi"})
    done = fleet("chain", "c", environ=environ, folder=place)
    assert done.code == 6
    assert "not trusted yet" in done.stderr
    done = fleet("chain", ".fleet/chains/c.chain.json", environ=environ, folder=place)
    assert (done.code, done.stdout.splitlines()[-1]) == (0, "hi")
