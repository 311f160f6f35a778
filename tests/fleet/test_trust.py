"""What a project's file could do, and the memory of who said yes to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agents.find import read_agents, with_agents
from fleet.blueprint.find import Found, look_up
from fleet.blueprint.load import load_blueprint
from fleet.blueprint.places import Places, Scope
from fleet.errors import InvalidFile, StorageFailed
from fleet.trust import Claim, TrustStore, claims

TEXT = """\
name: n
description: d
agents:
  talker: {prompt: Only talks., tools: [read], model: a/b}
  prog: {command: [python3, ./x.py, --token, canary-1]}
  outer: {mcpServers: {s: {command: npx, env: {A_KEY: canary-2}}}, hooks: {Stop: [{command: "rm -rf x"}]}}
teams:
  t:
    mode: deliberate
    approvals: allow
    members:
      - {agent: talker}
      - {agent: prog, name: p, env: {A: b, GH_PAT: canary-3}}
      - {agent: outer, args: [--yolo], approvals: allow}
      - {agent: shared}
"""
SHARED = "---\nname: shared\nenv: {A: b}\npermissionMode: bypassPermissions\n---\nI share.\n"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "project/.git").mkdir(parents=True)
    (tmp_path / "project/.fleet/blueprints").mkdir(parents=True)
    (tmp_path / "project/.fleet/agents").mkdir(parents=True)
    return Places.around(tmp_path / "project", home=tmp_path / "home")


def needed(places: Places, word: str) -> tuple[Claim, ...]:
    found, agents = look_up(word, places), read_agents(places)
    return claims(
        found, with_agents(load_blueprint(found.path), agents), agents, shown=places.shown(found.path)
    )


def test_what_could_act_is_told_in_lines_without_secrets(places: Places, tmp_path: Path) -> None:
    (tmp_path / "project/.fleet/blueprints/b.yaml").write_text(TEXT)
    (tmp_path / "project/.fleet/agents/shared.md").write_text(SHARED)
    blueprint, agent = needed(places, "b")
    assert blueprint.shown == ".fleet/blueprints/b.yaml"
    assert blueprint.acts == (
        "agent prog: runs python3 ./x.py --token '***'",
        'agent outer: starts MCP servers: s {"command": "npx", "env": {"A_KEY": "***"}}',
        'agent outer: runs hooks: Stop [{"command": "rm -rf x"}]',
        "team t: approvals: allow",
        "team t: member p: sets A=b, GH_PAT=***",
        "team t: member outer: adds arguments --yolo",
        "team t: member outer: approvals: allow",
    )
    assert agent.shown == ".fleet/agents/shared.md"
    assert agent.acts == ("sets A=b", "permissionMode: bypassPermissions")


def test_whoever_only_talks_needs_no_trust(places: Places, tmp_path: Path) -> None:
    text = "name: n\ndescription: d\nteams: {t: {mode: deliberate, members: [{agent: critic, brief: b, model: a/b}]}}\n"
    (tmp_path / "project/.fleet/blueprints/b.yaml").write_text(text)
    assert needed(places, "b") == ()


@pytest.mark.parametrize("where", ["home/blueprints/b.yaml", "elsewhere/b.yaml"])
def test_the_users_own_and_a_path_are_trusted(
    places: Places, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    word = "b" if "home" in where else str(path)
    assert needed(places, word) == ()
    own = tmp_path / "home/agents/shared.md"
    own.parent.mkdir(parents=True)
    own.write_text(SHARED)
    assert needed(places, word) == ()
    # An agent that comes with the project is asked about all the same.
    (tmp_path / "project/.fleet/agents/shared.md").write_text(SHARED)
    assert [claim.shown for claim in needed(places, word)] == [".fleet/agents/shared.md"]


def test_a_brief_from_elsewhere_is_an_act(places: Places, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "project/inside.md").write_text("x")
    (tmp_path / "project/link.md").symlink_to(tmp_path / "secret.txt")
    text = (
        "name: n\ndescription: d\nteams: {t: {mode: deliberate, members: [{agent: critic, briefPath: %s}]}}\n"
    )
    path = tmp_path / "project/.fleet/blueprints/b.yaml"
    for written, is_asked in (
        ("../../inside.md", False),
        ("../../../secret.txt", True),
        (str(tmp_path / "secret.txt"), True),
        ("../../link.md", True),
    ):
        path.write_text(text % written)
        acts = [act for found in needed(places, "b") for act in found.acts]
        assert bool(acts) == is_asked
        assert not acts or acts[0].startswith("team t: member critic: reads ")


def test_the_other_dialects_folder_is_the_projects_too(places: Places, tmp_path: Path) -> None:
    folder = tmp_path / "project/.orphus/fleets"
    folder.mkdir(parents=True)
    (folder / "b.fleet.yaml").write_text(TEXT)
    assert len(needed(places, "b")) == 1


def claim(path: Path, fingerprint: str = "a") -> Claim:
    return Claim(path, path.name, fingerprint, ("runs x",))


def test_a_yes_holds_for_one_path_with_one_content(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "home")
    here = claim(tmp_path / "x")
    assert store.lacks([here]) == (here,)
    store.remember([here], now="2030-01-01T00:00:00+00:00")
    assert store.lacks([here]) == ()
    changed, moved = claim(tmp_path / "x", "b"), claim(tmp_path / "y")
    assert store.lacks([here, changed, moved]) == (changed, moved)
    assert (tmp_path / "home/trust.json").stat().st_mode & 0o777 == 0o600
    assert store.forget([tmp_path / "x"]) == 1
    assert store.lacks([here]) == (here,)


def test_an_earlier_content_stays_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path)
    for fingerprint in ("a", "b", "a"):
        store.remember([claim(tmp_path / "x", fingerprint)], now="n")
    assert [entry.fingerprint for entry in store.entries()] == ["b", "a"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"trusted": [1]}', '{"trusted": [{"path": "x"}]}', "\xff"])
def test_a_broken_file_trusts_nothing_and_is_not_overwritten(tmp_path: Path, text: str) -> None:
    store = TrustStore(tmp_path)
    store.path.write_text(text)
    store.path.chmod(0o600)
    for call in (store.entries, lambda: store.remember([claim(tmp_path)], now="n")):
        with pytest.raises(InvalidFile) as caught:
            call()
        assert "trust.json:1:1: " in str(caught.value)
    assert store.path.read_text() == text


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_trusts_nothing(tmp_path: Path, mode: int) -> None:
    store = TrustStore(tmp_path)
    store.remember([claim(tmp_path / "x")], now="n")
    store.path.chmod(mode)
    with pytest.raises(InvalidFile, match="others may write it"):
        store.entries()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFailed):
        TrustStore(tmp_path).remember([claim(tmp_path)], now="n")


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises((StorageFailed, InvalidFile)):
        TrustStore(tmp_path / "home").remember([claim(tmp_path)], now="n")


def test_several_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fleet.trust import *\n"
        "store = TrustStore(Path(sys.argv[1]))\n"
        "for n in range(10): store.remember([Claim(Path('/', sys.argv[2], str(n)), 'x', 'a', ())], now='n')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert len(TrustStore(tmp_path).entries()) == 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trust.json", "trust.lock"]


names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20).map(
    lambda n: n.replace("/", "-")
)


@given(st.lists(st.tuples(names, st.sampled_from("abc")), min_size=1, max_size=6))
def test_what_was_remembered_is_known(given_claims: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        store = TrustStore(Path(home))
        wanted = [claim(Path("/", name), fingerprint) for name, fingerprint in given_claims]
        store.remember(wanted, now="n")
        assert store.lacks(wanted) == ()
        assert json.loads(store.path.read_text())["version"] == 1


def test_the_oldest_are_forgotten_first(tmp_path: Path) -> None:
    store = TrustStore(tmp_path)
    store.remember([claim(tmp_path / str(n)) for n in range(1005)], now="n")
    entries = store.entries()
    assert (len(entries), entries[0].path.name) == (1000, "5")


def test_a_scope_is_found_again_for_a_path(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "project/.fleet/blueprints/b.yaml"
    path.write_text(TEXT)
    monkeypatch.chdir(tmp_path / "project")
    given_path = look_up(".fleet/blueprints/b.yaml", places)
    assert given_path.scope is Scope.PATH
    assert given_path.as_named(places) == Found("b", Scope.PROJECT, path)
