"""Words and texts go through a real shell and come out as they were."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.roles.shell import MAKE_FOLDER, here, quote, quoted, readable

#: Anything that can be an argument: no NUL, and what UTF-8 can carry.
ARGUMENTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)

HOSTILE = [
    *(
        "",
        " ",
        "-",
        "--",
        "-n",
        "~",
        "*",
        "$HOME",
        "$(touch x)",
        "`touch x`",
        "a\nb",
        "\n",
        "'",
        "''",
        '"',
        "\\",
    ),
    *(
        "it's",
        "'\\''",
        "#",
        "a#b",
        ";",
        "a;",
        "&",
        "|",
        "!",
        "{a,b}",
        "[a]",
        "%s",
        "\x1b[31m",
        "\r",
        "\t",
        "␞",
        "🙂",
    ),
]


def through_sh(script: str, *, folder: Path | None = None) -> bytes:
    done = subprocess.run(["sh"], input=script.encode(), cwd=folder, capture_output=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@given(st.lists(ARGUMENTS, min_size=1, max_size=20))
@example(HOSTILE)
def test_words_arrive_unchanged(words: list[str]) -> None:
    said = through_sh(f"printf '%s\\0' {quoted(words)}")
    assert said == "".join(f"{word}\0" for word in words).encode()
    said = through_sh(f"printf '%s\\0' {' '.join(map(readable, words))}")
    assert said == "".join(f"{word}\0" for word in words).encode()


@given(ARGUMENTS)
def test_a_quoted_word_can_be_quoted_again(word: str) -> None:
    assert through_sh(f"sh -c {quote(f'printf %s {quote(word)}')}") == word.encode()


@given(st.one_of(ARGUMENTS, st.sampled_from(["END", "a\nEND\nb", "END\nEND-", "\nEND\n", "$dir\\\n'"])))
def test_a_text_arrives_unchanged_in_its_file(text: str) -> None:
    script = f'dir=$(mktemp -d) && trap \'rm -rf "$dir"\' EXIT\n{here("x", text)}cat "$dir/x"'
    assert through_sh(script) == f"{text}\n".encode()


@pytest.mark.parametrize("name", ["plain", "with space", "it's", "$x", "ü", "n" * 100, "relative"])
def test_the_folder_of_a_script_has_a_plain_and_short_path(short_path: Path, name: str) -> None:
    (short_path / name).mkdir()
    base = name if name == "relative" else str(short_path / name)
    script = f'TMPDIR={quote(base)}\n{MAKE_FOLDER}printf %s "$dir"\nls -ld "$dir" >&2\nrmdir "$dir"'
    done = subprocess.run(["sh"], input=script, cwd=short_path, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0
    assert done.stderr.startswith("drwx------")
    folder = Path(done.stdout)
    assert folder.parent == (short_path / name if name == "plain" else Path("/tmp"))
    assert len(done.stdout) <= 110
    assert readable(done.stdout) == done.stdout
