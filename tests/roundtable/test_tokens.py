"""The file of tokens: made once, for this user's eyes, kept by two that make them at once, and left alone when odd."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from roundtable.errors import TokensUnusable
from roundtable.home import Home
from roundtable.tokens import tokens, tokens_path


@pytest.fixture
def fresh(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def write(home: Home, text: str, mode: int = 0o600) -> Path:
    home.prepare()
    path = tokens_path(home)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_is_made_once_and_stays(fresh: Home) -> None:
    first = tokens(fresh, ["ann"])
    both = tokens(fresh, ["bob", "ann"])
    assert list(both) == ["bob", "ann"]
    assert both["ann"] == first["ann"]
    assert len({*both.values()}) == 2
    assert all(len(token) >= 43 for token in both.values())  # 256 bits


def test_only_this_user_can_read_them_whatever_the_umask(fresh: Home) -> None:
    before = os.umask(0)
    try:
        tokens(fresh, ["ann"])
    finally:
        os.umask(before)
    path = tokens_path(fresh)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {entry.name for entry in path.parent.iterdir()} == {"tokens.json", "tokens.lock"}


def test_the_file_is_replaced_and_not_written_in_place(fresh: Home) -> None:
    tokens(fresh, ["ann"])
    with tokens_path(fresh).open() as old:
        before = old.read()
        tokens(fresh, ["bob"])
        old.seek(0)
        assert old.read() == before


def test_what_all_have_is_not_written_again(fresh: Home) -> None:
    tokens(fresh, ["ann"])
    inode = tokens_path(fresh).stat().st_ino
    tokens(fresh, ["ann"])
    assert tokens_path(fresh).stat().st_ino == inode


def test_eight_that_make_tokens_at_once_keep_each_others(fresh: Home) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from roundtable.home import Home; from roundtable.tokens import tokens\n"
        "print(tokens(Home(Path(sys.argv[1])), [sys.argv[2]])[sys.argv[2]])"
    )
    makers = {
        f"role{number}": subprocess.Popen(
            [sys.executable, "-c", code, str(fresh.root), f"role{number}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    }
    said = {role: maker.communicate(timeout=30)[0].strip() for role, maker in makers.items()}
    assert json.loads(tokens_path(fresh).read_text())["tokens"] == said


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_could_read_or_write_is_refused(fresh: Home, mode: int) -> None:
    path = write(fresh, '{"tokens": {}}', mode)
    with pytest.raises(TokensUnusable, match=f"mode {mode:04o}") as caught:
        tokens(fresh, ["ann"])
    assert str(path) in str(caught.value)
    assert "remove it" in (caught.value.hint or "")
    assert path.read_text() == '{"tokens": {}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"tokens": []}',
        '{"tokens": {"a b": "0123456789012345678901"}}',
        '{"tokens": {"ann": 7}}',
        '{"tokens": {"ann": "short"}}',
        '{"tokens": {"ann": "0123456789 0123456789 012"}}',
        '{"tokens": {"ann": "0123456789012345678901", "bob": "0123456789012345678901"}}',
        '{"tokens": {"ann": "' + "x" * 2_000_000 + '"}}',
    ],
    ids=range(11),
)
def test_a_file_that_is_something_else_is_refused_and_left_as_it_is(fresh: Home, text: str) -> None:
    path = write(fresh, text)
    with pytest.raises(TokensUnusable) as caught:
        tokens(fresh, ["ann"])
    assert path.read_text() == text
    # Nobody reads a token, not even a bad one, in an error.
    assert "0123456789" not in str(caught.value)


def test_a_link_is_not_followed(fresh: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"tokens": {}}')
    elsewhere.chmod(0o600)
    fresh.prepare()
    tokens_path(fresh).symlink_to(elsewhere)
    with pytest.raises(TokensUnusable):
        tokens(fresh, ["ann"])
    assert elsewhere.read_text() == '{"tokens": {}}'


def test_a_pipe_in_its_place_is_refused_and_not_waited_for(fresh: Home) -> None:
    fresh.prepare()
    os.mkfifo(tokens_path(fresh), 0o600)
    with pytest.raises(TokensUnusable, match="no regular file"):
        tokens(fresh, ["ann"])


def test_the_command_prints_the_token_and_nothing_else(clean_environ: dict[str, str], home: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "roundtable", "token", *words],
            capture_output=True,
            text=True,
            env=clean_environ,
            timeout=30,
        )

    done = run("ann")
    assert (done.returncode, done.stdout, done.stderr) == (0, tokens(Home(home), ["ann"])["ann"] + "\n", "")
    refused = run("a b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a letter or digit" in refused.stderr
    tokens_path(Home(home)).chmod(0o644)
    unsafe = run("ann")
    assert (unsafe.returncode, unsafe.stdout) == (1, "")
    assert len(unsafe.stderr.splitlines()) == 2  # what is wrong, and what to do
