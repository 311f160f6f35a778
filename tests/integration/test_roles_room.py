"""Agents started by `roles` reach their room with the server that their own command line names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.blueprint.load import load_blueprint
from fleet.roles.launch import from_blueprint
from fleet.roles.native import ATTACHABLE
from fleet.roles.seats import folder_files

#: Stands for every CLI: finds the server in what it was given, as that CLI would, and posts with its tools.
AGENT = f"""\
#!{sys.executable}
import json, os, subprocess, sys, tomllib

name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
environ = dict(os.environ)
if name == "codex":
    (text,) = (word for word in words if word.startswith("mcp_servers.roundtable="))
    server = tomllib.loads(text)["mcp_servers"]["roundtable"]
    # All that Codex hands down.
    environ = {{key: environ[key] for key in ("PATH", "HOME", *server["env_vars"]) if key in environ}}
elif name == "opencode":
    command = json.loads(environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["roundtable"]["command"]
    server = {{"command": command[0], "args": command[1:]}}
else:
    flag = {{"claude": "--mcp-config", "copilot": "--additional-mcp-config"}}[name]
    server = json.loads(words[words.index(flag) + 1])["mcpServers"]["roundtable"]
running = subprocess.Popen(
    [server["command"], *server["args"]], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)

def say(**message):
    running.stdin.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    running.stdin.flush()

def answer(number):
    for line in running.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]

hello = {{"protocolVersion": "2025-06-18", "capabilities": {{}}, "clientInfo": {{"name": "x", "version": "1"}}}}
say(id=1, method="initialize", params=hello)
answer(1)
say(method="notifications/initialized")
post = {{"name": "roundtable_post", "arguments": {{"room": "den", "message": f"hello from {{name}}"}}}}
say(id=2, method="tools/call", params=post)
said = answer(2)
running.stdin.close()
running.wait()
sys.exit(1 if said.get("isError") else 0)
"""


@pytest.mark.parametrize("runtime", sorted(ATTACHABLE))
def test_an_agent_posts_under_its_seats_name(runtime: str, place: Path, environ: dict[str, str]) -> None:
    programs = place / "bin"
    programs.mkdir()
    (programs / runtime).write_text(AGENT)
    (programs / runtime).chmod(0o755)
    roundtable = programs / "roundtable"
    roundtable.write_text(f'#!/bin/sh\nexec {sys.executable} -m roundtable "$@"\n')
    roundtable.chmod(0o755)
    (place / "b.yaml").write_text(
        "name: n\ndescription: d\nteams:\n  t: {mode: deliberate, room: den, members: "
        f"[{{agent: first.seat, runtime: {runtime}}}]}}\n"
    )
    fan_out = from_blueprint(load_blueprint(place / "b.yaml"), binary=None, layout=None)
    for name, text in folder_files(fan_out.launches).items():
        (place / name).write_text(text)
    (place / "start").write_text(f"{place}/")
    env = {**environ, "PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", str(place / "seats"), "1"], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    read = subprocess.run(
        [str(roundtable), "fetch", "den", "--as", "reader", "--json"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert read.returncode == 0, read.stderr
    said = json.dumps(json.loads(read.stdout))
    assert f"hello from {runtime}" in said
    assert "first.seat" in said
