"""Memory as a shell and a program have it: real commands, real git, real external programs and their trees."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from roundtable.memory import backend, history
from roundtable.memory.actions import Memory
from roundtable.memory.place import Place
from tests.integration.raw import broker_process, until

pytestmark = pytest.mark.anyio

TALK = (
    "[2026-03-01T09:05:00.000Z] ann#1: Which store do we use?\n"
    "[2026-03-01T09:06:00.000Z] bob#2 (reply to ann#1): FINAL: use SQLite\n"
    "[2026-03-01T09:07:00.000Z] cy#3: FINAL: Use SQLite.\n"
)

#: An external program: what it was given as JSON, and what a word of its environment tells it to do.
PROGRAM = r"""
import json, os, signal, subprocess, sys, time
mode = os.environ.get("MODE", "echo")
if mode == "echo":
    print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "stdin": sys.stdin.read()}))
elif mode == "split":
    for byte in "é数\U0001f600".encode():
        os.write(1, bytes([byte])); time.sleep(0.01)
elif mode == "silent":
    pass
elif mode == "stderr":
    print("on stdout"); print("\x1b[31mbroken\x1b[0m\nline two", file=sys.stderr); sys.exit(3)
elif mode == "stdout":
    print("only here"); sys.exit(3)
elif mode == "mute":
    sys.exit(7)
elif mode == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
elif mode == "long":
    sys.stdout.write("x" * 30_000 + "\nlast line é\n")
elif mode == "flood":
    while True:
        os.write(1, b"y" * 65536)
elif mode == "controls":
    print("a\x1b[2Jb\u202ec\rd\u2028e")
elif mode == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    children = [
        subprocess.Popen([sys.executable, "-c", code]),
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True),
    ]
    with open(os.environ["PIDS"], "w") as file:
        file.write(" ".join(str(pid) for pid in (os.getpid(), *(child.pid for child in children))))
    time.sleep(600)
elif mode == "leave":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.environ["PIDS"], "w") as file:
        file.write(str(child.pid))
    print("left")
"""


@pytest.fixture
def program(short_path: Path) -> Path:
    path = short_path / "keeper.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def place(short_path: Path) -> Place:
    return Place(short_path / "memory", "librarian", None)


@pytest.fixture
def kept(short_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PIDS", str(short_path / "pids"))
    return Place(short_path / "memory", "librarian", (sys.executable, str(program)))


@pytest.fixture
def repository(place: Place) -> Place:
    place.folder.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "user.name", "Ann")
    git(place, "config", "user.email", "ann@example.org")
    return place


def git(place: Place, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(place.folder), *words], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(autouse=True)
def no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has an identity and a configuration of their own; memory must not need it."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)


def put(place: Place, path: str, text: str) -> None:
    target = place.folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# The shell


class Shell:
    """Runs `roundtable` in one environment."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "roundtable", *words],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def out(self, *words: str, **more: str) -> str:
        done = self.run(*words, **more)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout


@pytest.fixture
def shell(clean_environ: dict[str, str]) -> Shell:
    return Shell(clean_environ)


def test_a_room_is_exported_ingested_tended_and_asked(shell: Shell, home: Path) -> None:
    with broker_process(home):
        shell.out("post", "store", "Which store do we use?", "--as", "ann", "--create")
        shell.out("post", "store", "FINAL: use SQLite", "--as", "bob", "--reply-to", "ann#1")
        shell.out("export", "store", "raw/store.txt", "--as", "librarian")
    assert shell.out("memory", "ingest", "raw/store.txt", FLEET_SEAT="librarian") == (
        "Ingested raw/store.txt: 2 messages, 2 new facts (1 decision, 1 question) in wiki/store.md.\n"
    )
    assert shell.out("memory", "gardener", "--as", "librarian") == "Tended 1 page: nothing to change.\n"
    answer = shell.out("memory", "query", "what was decided?")
    assert re.fullmatch(
        r"1 passage\n\[\d{4}-\d\d-\d\d \d\d:\d\d\] wiki/store\.md · decision · bob#2 in raw/store\.txt\n"
        r"    use SQLite\n",
        answer,
    )
    data = json.loads(shell.out("memory", "query", "what was decided?", "--json", "--max-chars", "300"))
    assert data["text"] == answer.rstrip("\n")
    (passage,) = data["passages"]
    assert (passage["path"], passage["source"], passage["text"]) == (
        "wiki/store.md",
        "raw/store.txt",
        "use SQLite",
    )
    report = json.loads(shell.out("memory", "doctor", "--json"))
    assert (report["pages"], report["facts"], report["problems"]) == (1, 2, [])
    assert report["folder"] == str(home / "memory")


def test_exit_codes_and_streams(shell: Shell, home: Path) -> None:
    assert shell.out("memory", "query", "anything").startswith("Memory is empty: ")
    assert "not there yet" in shell.out("memory", "doctor")
    assert not home.exists()
    for words, code, told in (
        (("memory", "ingest", "raw/x.txt", "--as", "critic"), 1, 'this session is "critic"'),
        (("memory", "gardener"), 1, "name it with --as librarian"),
        (("memory", "ingest", "/x", "--as", "librarian"), 2, "must be relative"),
        (("memory", "ingest", "raw/x.txt", "--as", "librarian"), 2, "there is no raw/x.txt"),
        (("memory", "query", ""), 2, "requires a 'question'"),
        (("memory", "query", "x", "--as", "a b"), 2, "not a member's name"),
        (("memory", "dance"), 2, "No such command"),
    ):
        done = shell.run(*words)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    done = shell.run("memory", "query", "x", "--json", ROUNDTABLE_MEMORY_DIR="relative")
    assert done.returncode == 2
    assert "ROUNDTABLE_MEMORY_DIR" in json.loads(done.stdout)["error"]["message"]
    # No command of memory starts a broker.
    assert not (home / "roundtable").exists()


def test_a_question_of_operators_and_quotes_is_words(shell: Shell, home: Path) -> None:
    put(Place(home / "memory", "librarian", None), "raw/store.txt", TALK)
    for question in (
        'NEAR("use" "sqlite", 2) AND text : sqlite* OR ^"',
        "sqlite' OR 1=1; --",
        '"""',
        "* ( ) { } ^ :",
    ):
        done = shell.run("memory", "query", "--", question)
        assert done.returncode == 0, done
        assert done.stderr == ""
        assert done.stdout.strip()
    assert "bob#2" in shell.out("memory", "query", "--", '-sqlite AND "use')


def test_the_index_is_made_again_by_the_next_question(shell: Shell, home: Path) -> None:
    put(Place(home / "memory", "librarian", None), "raw/store.txt", TALK)
    before = shell.out("memory", "query", "sqlite")
    (home / "memory/index.db").write_bytes(b"no database" * 999)
    assert "index.db is damaged" in shell.out("memory", "doctor")
    assert shell.out("memory", "query", "sqlite") == before
    assert "No problems." in shell.out("memory", "doctor")


def test_asking_at_once_makes_one_index(shell: Shell, home: Path) -> None:
    place = Place(home / "memory", "librarian", None)
    put(place, "raw/store.txt", TALK)
    command = [sys.executable, "-m", "roundtable", "memory", "query", "sqlite"]
    running = [
        subprocess.Popen(command, env=shell.environment, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    answers = {process.communicate(timeout=60)[0] for process in running}
    assert len(answers) == 1
    assert "bob#2" in answers.pop()


# Git


async def test_each_write_is_one_commit_of_its_own_files(repository: Place) -> None:
    put(repository, "raw/store.txt", TALK)
    put(repository, "mine.txt", "staged by hand")
    git(repository, "add", "mine.txt")
    writer = Memory(repository, "librarian")
    said = await writer.ingest("raw/store.txt")
    assert "Not committed" not in said.text
    assert git(repository, "show", "--name-only", "--format=%s").split("\n")[:-1] == [
        "ingest raw/store.txt",
        "",
        "wiki/sources.md",
        "wiki/store.md",
    ]
    await writer.ingest("raw/store.txt")
    await writer.gardener()
    await writer.gardener()
    assert git(repository, "log", "--format=%s").split("\n")[:-1] == [
        "gardener: merge duplicates, link pages",
        "ingest raw/store.txt",
    ]
    assert git(repository, "diff", "--cached", "--name-only") == "mine.txt\n"
    report = (await writer.doctor()).text
    assert "Git: repository, main, 1 uncommitted." in report


async def test_what_is_committed_has_the_bytes_that_were_written(repository: Place) -> None:
    git(repository, "config", "core.autocrlf", "true")
    git(repository, "config", "core.safecrlf", "true")
    put(repository, "raw/*.txt", TALK.replace("SQLite\n", "SQLite\r\n", 1))
    put(repository, "raw/other.txt", "theirs")
    from roundtable.memory.folder import Folder
    from roundtable.memory.history import commit

    with Folder.opened(repository.folder, is_made=False) as folder:
        assert await commit(folder, ["raw/*.txt"], "pattern") is None
        assert await commit(folder, ["raw/*.txt"], "again") is None
    assert git(repository, "show", "--name-only", "--format=%s").split() == ["pattern", "raw/*.txt"]
    assert git(repository, "cat-file", "-s", "HEAD:raw/*.txt").strip() == str(len(TALK) + 1)


async def break_identity(place: Place) -> None:
    git(place, "config", "--unset", "user.email")
    git(place, "config", "user.useConfigOnly", "true")


async def break_lock(place: Place) -> None:
    (place.folder / ".git/index.lock").touch()


async def break_hook(place: Place) -> None:
    hook = place.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'fatal: not today' >&2\nexit 1\n")
    hook.chmod(0o755)


async def break_ignore(place: Place) -> None:
    (place.folder / ".gitignore").write_text("wiki/\n")


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (break_identity, "no email was given"),
        (break_lock, "index.lock"),
        (break_hook, "not today"),
        (break_ignore, "ignored"),
    ],
)
async def test_a_commit_that_fails_is_said_and_loses_nothing(
    repository: Place, broken: object, told: str
) -> None:
    put(repository, "raw/store.txt", TALK)
    assert callable(broken)
    await broken(repository)
    said = await Memory(repository, "librarian").ingest("raw/store.txt")
    assert not said.is_error
    assert "3 new facts" in said.text
    assert re.search(rf"Not committed: .*{told}.*\. The files are written", said.text), said.text
    assert "use SQLite" in (repository.folder / "wiki/store.md").read_text()
    assert "use SQLite" in (await Memory(repository, None).query("sqlite")).text


async def test_a_repository_above_is_left_alone(repository: Place) -> None:
    inner = Place(repository.folder / "inner", "librarian", None)
    put(inner, "raw/store.txt", TALK)
    await Memory(inner, "librarian").ingest("raw/store.txt")
    assert git(repository, "status", "--porcelain") == "?? inner/\n"
    assert "Git: no repository" in (await Memory(inner, None).doctor()).text


async def test_a_commit_whose_hook_hangs_is_said_to_stand(
    repository: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_COMMIT_SECONDS", 1.5)
    put(repository, "raw/store.txt", TALK)
    hook = repository.folder / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexec sleep 60\n")
    hook.chmod(0o755)
    said = await Memory(repository, "librarian").ingest("raw/store.txt")
    assert not said.is_error
    assert said.text.endswith("Committed; a hook of the repository did not end in time and was stopped.")
    assert "ingest" in git(repository, "log", "--format=%s")


async def test_inside_a_hook_of_another_repository_ours_is_used(
    repository: Place, monkeypatch: pytest.MonkeyPatch, short_path: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(short_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(short_path / "other-index"))
    put(repository, "raw/store.txt", TALK)
    said = await Memory(repository, "librarian").ingest("raw/store.txt")
    assert "Not committed" not in said.text
    monkeypatch.undo()
    assert "ingest raw/store.txt" in git(repository, "log", "--format=%s")


def test_an_export_is_a_commit(shell: Shell, home: Path) -> None:
    place = Place(home / "memory", "librarian", None)
    place.folder.mkdir(parents=True)
    git(place, "init", "-q", "-b", "main")
    with broker_process(home):
        shell.out("post", "store", "one", "--as", "ann", "--create")
        told = shell.out("export", "store", "raw/store.txt", "--as", "librarian")
        assert "Not committed: " in told
        git(place, "config", "user.name", "Ann")
        git(place, "config", "user.email", "ann@example.org")
        assert "Not committed" not in shell.out("export", "store", "raw/store.txt", "--as", "librarian")
        assert "Not committed" not in shell.out("export", "store", "raw/store.txt", "--as", "librarian")
    assert git(place, "log", "--format=%s", "--name-only").split("\n")[:-1] == [
        "export #store to raw/store.txt: 1 message",
        "",
        "raw/store.txt",
    ]


# An external program


async def test_the_program_gets_the_action_as_words(kept: Place) -> None:
    writer = Memory(kept, "librarian")
    for action, arguments, words in (
        ("query", {"question": 'what\'s $HOME; `x` "é"?'}, ["query", 'what\'s $HOME; `x` "é"?']),
        ("ingest", {"source": "raw/a b.txt"}, ["ingest", "raw/a b.txt"]),
        ("gardener", {}, ["gardener"]),
    ):
        said = await writer.call(action, arguments)
        assert not said.is_error
        assert json.loads(said.text) == {"argv": words, "cwd": str(kept.folder), "stdin": ""}
    said = await Memory(kept, "critic").doctor()
    assert said.text.startswith(f"Memory at {kept.folder}, kept by `{shlex.join(kept.command or ())}`.\n")
    assert json.loads(said.text.split("\n")[2])["argv"] == ["doctor"]


async def test_the_gate_stands_before_the_program_too(kept: Place) -> None:
    for said in (await Memory(kept, "critic").ingest("x"), await Memory(kept, None).gardener()):
        assert said.is_error
        assert said.text.startswith('Only the "librarian" role may ')
    assert not kept.folder.exists()


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("split", "é数\U0001f600"),
        ("silent", "memory query completed."),
        ("controls", "a\ufffd[2Jb\ufffdc\nd\ne"),
    ],
)
async def test_what_the_program_says(
    kept: Place, monkeypatch: pytest.MonkeyPatch, mode: str, text: str
) -> None:
    monkeypatch.setenv("MODE", mode)
    said = await Memory(kept, None).query("x")
    assert (said.text, said.is_error) == (text, False)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("stderr", "memory query failed: broken line two"),
        ("stdout", "memory query failed: only here"),
        ("mute", "memory query failed: exited 7"),
        ("signal", "memory query failed: killed by SIGSEGV"),
    ],
)
async def test_a_program_that_fails(
    kept: Place, monkeypatch: pytest.MonkeyPatch, mode: str, text: str
) -> None:
    monkeypatch.setenv("MODE", mode)
    said = await Memory(kept, None).query("x")
    assert (said.text, said.is_error) == (text, True)


async def test_a_long_answer_is_cut_and_whole_in_a_file(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "long")
    for max_chars in (None, 20_000):
        said = await Memory(kept, None).query("x", max_chars)
        head, text = said.text.split("\n")
        shown = max_chars or 2000
        assert text == "x" * shown
        found = re.fullmatch(rf"\(first {shown} characters of 30014 bytes; the whole is in (.+)\)", head)
        assert found is not None
        whole = kept.folder / "answers" / found[1].removeprefix(f"{kept.folder}/answers/")
        assert whole.read_text() == "x" * 30_000 + "\nlast line é\n"
    monkeypatch.setattr(backend, "_KEPT_ANSWERS", 2)
    for _ in range(3):
        await Memory(kept, None).query("x")
    assert len(list((kept.folder / "answers").iterdir())) == 2


async def test_a_flood_is_stopped(kept: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "flood")
    monkeypatch.setattr(backend, "MAX_OUTPUT_BYTES", 1024 * 1024)
    said = await Memory(kept, None).query("x")
    assert (said.text, said.is_error) == (
        "memory query failed: it wrote more than 1 MiB and was stopped",
        True,
    )
    assert list((kept.folder / "answers").iterdir()) == []


async def test_a_program_that_hangs_is_ended_as_a_tree(
    kept: Place, monkeypatch: pytest.MonkeyPatch, short_path: Path
) -> None:
    monkeypatch.setenv("MODE", "hang")
    monkeypatch.setattr("roundtable.memory.program._GRACE_SECONDS", 0.1)
    said = await Memory(kept, None, seconds=1.5).query("x")
    assert said.is_error
    assert said.text == "memory query failed: no end within 1.5 s; the program was stopped"
    pids = [int(pid) for pid in (short_path / "pids").read_text().split()]
    if not sys.platform.startswith("linux"):
        pids.pop()  # what has left the group is not found elsewhere
    until(lambda: not any(map(is_alive, pids)))


async def test_what_a_program_leaves_behind_is_ended_and_not_waited_for(
    kept: Place, monkeypatch: pytest.MonkeyPatch, short_path: Path
) -> None:
    monkeypatch.setenv("MODE", "leave")
    with anyio.fail_after(20):
        said = await Memory(kept, None).query("x")
    assert said.text == "left"
    until(lambda: not is_alive(int((short_path / "pids").read_text())))


async def test_a_cancelled_call_ends_the_program(
    kept: Place, monkeypatch: pytest.MonkeyPatch, short_path: Path
) -> None:
    monkeypatch.setenv("MODE", "hang")
    monkeypatch.setattr("roundtable.memory.program._GRACE_SECONDS", 0.1)
    pids = short_path / "pids"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Memory(kept, None).query, "x")
        await anyio.to_thread.run_sync(
            lambda: until(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        )
        tasks.cancel_scope.cancel()
    found = [int(pid) for pid in pids.read_text().split()]
    until(lambda: not any(map(is_alive, found if sys.platform.startswith("linux") else found[:2])))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_told_to_stop_ends_the_program_first(
    shell: Shell, program: Path, short_path: Path, number: signal.Signals
) -> None:
    pids = short_path / "pids"
    environment = {
        **shell.environment,
        "MODE": "hang",
        "PIDS": str(pids),
        "ROUNDTABLE_MEMORY_COMMAND": shlex.join([sys.executable, str(program)]),
    }
    command = [sys.executable, "-m", "roundtable", "memory", "query", "x"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert process.communicate()[1].strip() == b""
    found = [int(pid) for pid in pids.read_text().split()]
    until(lambda: not any(map(is_alive, found if sys.platform.startswith("linux") else found[:2])))


@pytest.mark.parametrize("command", [("no-such-program-anywhere", "-x"), ("/etc/passwd",), ("/",)])
async def test_a_program_that_is_not_there(place: Place, command: tuple[str, ...]) -> None:
    said = await Memory(Place(place.folder, "librarian", command), None).query("x")
    assert said.is_error
    assert said.text.startswith(f"Memory backend not reachable ({command[0]}: ")
    assert "Configure it with ROUNDTABLE_MEMORY_COMMAND / ROUNDTABLE_MEMORY_DIR" in said.text


@pytest.mark.parametrize("question", ["--help", "a\0b", "x" * 200_000, "\ud800"])
async def test_a_question_that_can_be_no_argument(kept: Place, question: str) -> None:
    said = await Memory(kept, None).query(question)
    assert said.is_error
    assert said.text.startswith("the question ")


def test_the_shell_hands_over_to_the_program(shell: Shell, program: Path, home: Path) -> None:
    command = shlex.join([sys.executable, str(program)])
    answer = json.loads(shell.out("memory", "query", "why?", ROUNDTABLE_MEMORY_COMMAND=command))
    assert (answer["argv"], answer["cwd"]) == (["query", "why?"], str(home / "memory"))
    done = shell.run("memory", "query", "why?", ROUNDTABLE_MEMORY_COMMAND=command, MODE="mute")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "roundtable: memory query failed: exited 7\n",
    )


@pytest.fixture(autouse=True)
def nothing_is_left(short_path: Path) -> Iterator[None]:
    """A test that fails leaves no process behind either."""
    yield
    pids = short_path / "pids"
    for pid in pids.read_text().split() if pids.exists() else ():
        if is_alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


# The reference page


def test_the_page_is_true_as_written(shell: Shell, home: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "memory.md").read_text()
    (played,) = re.findall(r"^```\n(\$ .*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"^\$ (.+)\n", played, flags=re.MULTILINE)[1:]
    with broker_process(home):
        for command, expected in zip(parts[::2], parts[1::2], strict=True):
            program, *words = shlex.split(command)
            assert program == "roundtable"
            said = shell.out(*words).replace(str(home), "$FLEET_HOME")
            assert re.sub(r"\[20[\d :-]+\]", "[2026-03-01 09:05]", said) == expected, command
