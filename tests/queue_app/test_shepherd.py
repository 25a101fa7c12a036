"""The shepherd as a program, what it says, and the end of runs whose processor is lost."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queue_app.shepherd import COMMAND, trees, wire
from queue_app.shepherd.lines import LONGEST_LINE, Lines
from tests import wild
from tests.processes import PATIENCE

WITHOUT_ADOPTING = (
    *COMMAND[:-1],
    COMMAND[-1].replace(
        "main()",
        "from queue_app.shepherd import trees; trees._prctl = lambda *_: False; main()",
    ),
)


class Shepherd:
    """A real one, spoken to without an event loop."""

    def __init__(self, directory: Path, command: tuple[str, ...] = COMMAND) -> None:
        self.directory = directory
        self.mark = f"test-{secrets.token_hex(8)}"
        self.frames: list[tuple[str, bytes]] = []
        self.parser = wire.Frames()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={trees.SHEPHERD_MARK: self.mark},
            start_new_session=True,
        )

    def order(self, *argv: str, **limits: str) -> None:
        """Give it a command that may take a minute, with a grace of 0.1 s."""
        numbers = {"wall": "60", "silence": "60", "after_result": "60", "grace": "0.1"} | limits
        env = {"PATH": "/usr/bin:/bin", trees.RUN_MARK: self.mark}
        fields = [
            *(("arg", word.encode()) for word in argv),
            *(("env", f"{name}={value}".encode()) for name, value in env.items()),
            *((name, value.encode()) for name, value in {"output": "1000000", **numbers}.items()),
            ("cwd", os.fsencode(self.directory)),
        ]
        self.tell(wire.encode(fields, b""))

    def tell(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def hear(self, kind: str) -> bytes:
        """Return the next frame of a kind; what was said before it is kept."""
        assert self.process.stdout
        while True:
            for number, (said, payload) in enumerate(self.frames):
                if said == kind:
                    del self.frames[: number + 1]
                    return payload
            data = self.process.stdout.read(65536)
            assert data, f"it ended without '{kind}'"
            self.frames += self.parser.feed(data)

    def survivors(self) -> set[int]:
        return wild.survivors(self.directory, self.mark)

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)


@pytest.fixture
def shepherd(tmp_path: Path) -> Iterator[Shepherd]:
    """One that waits for its order, and ends with the test."""
    one = Shepherd(tmp_path)
    yield one
    one.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.005)


def test_it_imports_nothing_slow() -> None:
    program = COMMAND[-1].replace("main()", "sys.stdout.write(' '.join(sys.modules))")
    loaded = subprocess.run([*COMMAND[:-1], program], capture_output=True, text=True, check=True)

    slow = {"json", "re", "enum", "signal", "subprocess", "typing", "dataclasses", "pathlib"}
    assert not slow & set(loaded.stdout.split())
    assert "queue_app.shepherd.program" in loaded.stdout


def test_it_ends_when_the_processor_dies_before_its_order_is_whole(shepherd: Shepherd) -> None:
    shepherd.tell(wire.encode([("arg", b"true")], b"prompt")[:-3])
    shepherd.close()

    assert shepherd.process.returncode == 0


def test_it_says_what_it_started_and_how_that_ended(shepherd: Shepherd) -> None:
    shepherd.order("sh", "-c", "echo hello; exit 3")

    assert int(wire.words(shepherd.hear("started"))["pid"]) > 0
    assert shepherd.hear("out") == b"hello\n"
    assert wire.words(shepherd.hear("end")) == {"reason": "exit", "code": "3", "left": "0"}
    assert shepherd.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_makes_it_end_its_tree_and_itself(
    shepherd: Shepherd, number: signal.Signals
) -> None:
    shepherd.order(*wild.command("wild", shepherd.directory))
    shepherd.hear("out")

    shepherd.process.send_signal(number)

    assert wire.words(shepherd.hear("end"))["reason"] == "stopped"
    assert shepherd.process.wait(PATIENCE) == 0
    assert not shepherd.survivors()


def test_it_ends_its_tree_when_nobody_reads_what_it_says(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("chatty", shepherd.directory), output="1000000000")
    shepherd.hear("out")

    assert shepherd.process.stdout
    shepherd.process.stdout.close()

    assert shepherd.process.wait(PATIENCE) == 0
    assert not shepherd.survivors()


def test_it_ends_its_tree_while_nobody_reads_and_the_pipe_is_full(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("chatty", shepherd.directory), output="1000000000", wall="0.5")
    shepherd.hear("out")

    until(lambda: wild.survivors(shepherd.directory, shepherd.mark) <= {shepherd.process.pid})

    assert wire.words(shepherd.hear("end"))["reason"] == "timeout"


@pytest.mark.parametrize("end", ["stop", "pipe"])
def test_where_orphans_are_not_adopted_those_it_has_seen_are_ended(
    tmp_path: Path, end: str
) -> None:
    shepherd = Shepherd(tmp_path, WITHOUT_ADOPTING)
    shepherd.order(*wild.command("bereaved", tmp_path))
    shepherd.hear("out")

    if end == "stop":
        shepherd.tell(wire.STOP)
        assert wire.words(shepherd.hear("end")) == {
            "reason": "stopped",
            "left": "0",
            "signal": "15",
        }
    shepherd.close()

    assert not shepherd.survivors()


def test_a_lost_run_is_ended_by_its_mark_while_its_processor_hangs(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("wild", shepherd.directory))
    shepherd.hear("out")

    assert trees.end_run(shepherd.mark) == 0

    assert not shepherd.survivors()
    assert wire.words(shepherd.hear("end"))["reason"] == "stopped"


def test_a_lost_run_is_ended_by_the_id_and_beginning_of_its_shepherd(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("wild", shepherd.directory))
    shepherd.hear("out")
    known = (shepherd.process.pid, trees.since(shepherd.process.pid))

    assert trees.end_run("another mark", shepherd=known) == 0

    assert not shepherd.survivors()


def test_a_shepherd_that_does_not_obey_is_killed_with_its_tree(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("wild", shepherd.directory), grace="60")
    shepherd.hear("out")

    assert trees.end_run(shepherd.mark, patience=0.2) == 0

    assert shepherd.process.wait(PATIENCE) == -signal.SIGKILL
    assert not shepherd.survivors()


def test_what_a_killed_shepherd_left_is_found_by_the_mark(shepherd: Shepherd) -> None:
    shepherd.order(*wild.command("breeding", shepherd.directory, 30))
    shepherd.hear("out")
    until(lambda: len(wild.noted(shepherd.directory)) > 10)
    shepherd.process.kill()
    shepherd.process.wait(PATIENCE)
    assert shepherd.survivors()

    assert trees.end_run(shepherd.mark) == 0

    assert not shepherd.survivors()


def test_a_killed_shepherd_takes_the_command_along_marked_or_not(shepherd: Shepherd) -> None:
    shepherd.order("env", "-i", "sleep", "90")
    pid = int(wire.words(shepherd.hear("started"))["pid"])
    until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))

    shepherd.process.kill()

    until(lambda: trees.since(pid) == "")


def test_an_id_that_another_process_has_now_is_left_alone(shepherd: Shepherd) -> None:
    shepherd.order("sleep", "60")
    shepherd.hear("started")

    assert trees.end_run("another mark", shepherd=(shepherd.process.pid, "1")) == 0
    assert trees.end_run(shepherd.mark[:-1]) == 0

    assert shepherd.process.poll() is None
    assert trees.end_run(shepherd.mark) == 0


def test_the_beginning_of_a_process_is_known_until_it_ends() -> None:
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    began = trees.since(child.pid)
    assert began.isdigit()
    assert began == trees.since(child.pid)

    child.communicate(b"\n")

    assert trees.since(child.pid) == ""


def test_a_process_is_found_and_killed_with_its_children_and_theirs() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout
        sleeper = int(shell.stdout.readline())

        assert trees.below([shell.pid]) == {shell.pid, sleeper}
        assert {shell.pid, sleeper} < trees.below([os.getpid()])

        trees.kill(lambda: [shell.pid])

    assert shell.returncode == -signal.SIGKILL
    until(lambda: trees.since(sleeper) == "")


def test_all_are_frozen_parents_first_before_one_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {1: [2, 3], 2: [4], 3: [], 4: []}
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(trees, "_children", tree.__getitem__)
    monkeypatch.setattr(trees, "_send", lambda pid, number: sent.append((pid, number)))

    assert trees.kill(lambda: [1]) == {1, 2, 3, 4}

    frozen = [pid for pid, number in sent[:-4] if number == signal.SIGSTOP]
    assert len(frozen) == len(sent[:-4])
    assert frozen.index(1) < frozen.index(2) < frozen.index(4)
    assert {number for _, number in sent[-4:]} == {signal.SIGKILL}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_and_frames_are_whole_whatever_the_pieces(size: int) -> None:
    text = b"one\n\nthree, a longer one\n" + b"x" * 50 + b"\nlast"
    lines, frames, found = Lines(b"out"), wire.Frames(), b""

    for start in range(0, len(text), size):
        whole = lines.feed(text[start : start + size])
        assert whole == b"" or whole.endswith(b"\n")
        framed = wire.frame(b"out", whole)
        said = [
            frame
            for place in range(len(framed))
            for frame in frames.feed(framed[place : place + 1])
        ]
        assert said == [("out", whole)]
        found += whole

    assert found + lines.finish() == text + b"\n"


def test_a_line_of_the_greatest_length_is_not_cut_and_one_byte_more_is() -> None:
    lines = Lines(b"out")

    assert lines.feed(b"x" * LONGEST_LINE) == b""
    assert lines.feed(b"\n") == b"x" * LONGEST_LINE + b"\n"
    assert lines.feed(b"x" * LONGEST_LINE) == b""
    assert lines.feed(b"x" * LONGEST_LINE) == b""
    cut = b"x" * LONGEST_LINE + b" [cut: a line of 2097152 bytes]\n"
    assert lines.feed(b"\nnext\nbegun") == cut + b"next\n"
    assert lines.finish() == b"begun\n"


def test_an_order_is_read_back_to_its_last_byte() -> None:
    order = [("arg", b"a"), ("arg", b""), ("env", b"A=b=c"), ("cwd", b"/x\n\xff")]
    data = wire.encode(order, b"prompt\0") + b"rest"

    def read(size: int) -> bytes:
        nonlocal data
        part, data = data[:size], data[size:]
        return part

    values, prompt = wire.decode(read)
    assert values == {b"arg": [b"a", b""], b"env": [b"A=b=c"], b"cwd": [b"/x\n\xff"]}
    assert (prompt, data) == (b"prompt\0", b"rest")
