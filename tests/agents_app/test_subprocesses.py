"""R9: whatever a run's command does, its lines arrive, its end is defined, and nothing of it is left.

A run of /bin/true by a shepherd took 9.3 ms against 0.5 ms without one, of which 5.5 ms are an empty
interpreter and 2.5 ms `ctypes` (best of 100, 2 shared cores, 2026-11-18).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agents_app import subprocesses
from agents_app.subprocesses import Ended, Limits, Order, Reason, Run, Started
from tests import wild
from tests.processes import PATIENCE, ROOT

LIMITS = Limits(wall=PATIENCE, silence=PATIENCE, after_result=PATIENCE, grace=0.2)
ENV = {"PATH": "/usr/bin:/bin"}


class Stage:
    """A directory for the ids of processes, and a mark for their environment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = f"test-{secrets.token_hex(8)}"
        self.lines: list[str] = []

    def order(self, *argv: str, limits: Limits = LIMITS, prompt: bytes = b"") -> Order:
        return Order(
            argv=argv, cwd=self.directory, env=ENV, mark=self.mark, prompt=prompt, limits=limits
        )

    def wild(self, behaviour: str, number: int = 0, limits: Limits = LIMITS) -> Order:
        return self.order(*wild.command(behaviour, self.directory, number), limits=limits)

    def run(self, *argv: str, limits: Limits = LIMITS, prompt: bytes = b"") -> Ended:
        order = self.order(*argv, limits=limits, prompt=prompt)
        return asyncio.run(subprocesses.run(order, self.lines.append))

    def survivors(self) -> set[int]:
        return wild.survivors(self.directory, self.mark)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Where one run takes place."""
    return Stage(tmp_path)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.005)


async def soon(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(until, condition)


def act_when_ready(
    order: Order, act: Callable[[Run], Awaitable[None] | None], stage: Stage
) -> Ended:
    """Run an order, and act once when its first line has come."""

    async def play() -> Ended:
        run = Run(order, lambda line: on_line(line))

        def on_line(line: str) -> Awaitable[None] | None:
            stage.lines.append(line)
            return act(run) if len(stage.lines) == 1 else None

        return await run.ended()

    return asyncio.run(play())


def test_lines_come_in_order_and_a_last_one_without_its_end_too(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "echo one; echo; printf 'th\\303\\274ree'; echo bad >&2")

    assert stage.lines == ["one", "", "thüree"]
    assert ended == Ended(reason=Reason.EXIT, code=0, errors="bad\n")


def test_the_command_gets_its_prompt_its_directory_and_its_environment_alone(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "cat; pwd; env", prompt="grüße\n".encode())

    assert ended.code == 0
    assert stage.lines[:2] == ["grüße", str(stage.directory)]
    names = {line.partition("=")[0] for line in stage.lines[2:]}
    assert names == {"PATH", "PWD", "TINYAGI_RUN_MARK"} | (names & {"_", "SHLVL", "OLDPWD"})


@pytest.mark.parametrize(
    ("script", "code", "number", "message"),
    [
        ("exit 0", 0, None, ""),
        ("exit 3", 3, None, "The program ended with code 3."),
        ("exit 143", 143, None, "The program ended with code 143."),
        ("kill -9 $$", None, 9, "The program was killed by SIGKILL."),
        ("kill -34 $$", None, 34, "The program was killed by SIGRTMIN."),
        ("kill -41 $$", None, 41, "The program was killed by signal 41."),
    ],
)
def test_codes_and_signals_are_told_apart(
    stage: Stage, script: str, code: int | None, number: int | None, message: str
) -> None:
    ended = stage.run("sh", "-c", script)

    assert (ended.reason, ended.code, ended.signal) == (Reason.EXIT, code, number)
    assert ended.message == message
    assert stage.lines == []


def test_a_command_may_kill_its_whole_group(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "sleep 60 & kill -9 0")

    assert (ended.reason, ended.signal) == (Reason.EXIT, signal.SIGKILL)
    assert not stage.survivors()


def test_signals_are_as_a_fresh_program_expects_them(stage: Stage) -> None:
    stage.run("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")

    assert [line.split()[1].strip("0") for line in stage.lines] == ["", ""]


STOPPED = (Reason.STOPPED, "The run was stopped.")


@pytest.mark.parametrize("behaviour", ["wild", "chatty", "closed"])
def test_nothing_survives_a_stop(stage: Stage, behaviour: str) -> None:
    ended = act_when_ready(stage.wild(behaviour), Run.stop, stage)

    assert not stage.survivors()
    assert len(wild.noted(stage.directory)) == 3
    assert (ended.reason, ended.message) == STOPPED
    assert (ended.signal, ended.left) == (signal.SIGKILL, 0)


def test_nothing_is_written_after_stopped_is_reported(stage: Stage) -> None:
    async def stop_when_written(run: Run) -> None:
        await soon((stage.directory / "written").exists)
        run.stop()

    act_when_ready(stage.wild("writing"), stop_when_written, stage)
    written = (stage.directory / "written").stat().st_size

    assert not stage.survivors()
    stage.run("true")
    assert (stage.directory / "written").stat().st_size == written


@pytest.mark.parametrize(
    ("behaviour", "limits", "reason", "message"),
    [
        ("wild", Limits(wall=0.5, grace=0.1), Reason.TIMEOUT, "ran for 0.5 s, the limit"),
        ("wild", Limits(silence=0.4, grace=0.1), Reason.SILENCE, "wrote nothing for 0.4 s"),
        ("closed", Limits(silence=0.4, grace=0.1), Reason.SILENCE, "wrote nothing for 0.4 s"),
        ("chatty", Limits(output=90_000, grace=0.1), Reason.OUTPUT_LIMIT, "more than 90000 bytes"),
    ],
)
def test_nothing_survives_a_limit(
    stage: Stage, behaviour: str, limits: Limits, reason: Reason, message: str
) -> None:
    ended = asyncio.run(subprocesses.run(stage.wild(behaviour, limits=limits), stage.lines.append))

    assert not stage.survivors()
    assert len(wild.noted(stage.directory)) == 3
    assert ended.reason is reason
    assert message in ended.message


def test_nothing_survives_the_time_after_a_result(stage: Stage) -> None:
    order = stage.wild("wild", limits=Limits(after_result=0.2, grace=0.1))

    ended = act_when_ready(order, Run.result_seen, stage)

    assert not stage.survivors()
    assert ended.reason is Reason.AFTER_RESULT
    assert ended.message == "The program went on 0.2 s after its result."


def test_a_command_that_ends_after_its_result_has_ended_by_itself(stage: Stage) -> None:
    order = stage.order("sh", "-c", "echo result; exit 0", limits=Limits(after_result=PATIENCE))

    assert act_when_ready(order, Run.result_seen, stage).reason is Reason.EXIT


def test_nothing_survives_the_end_of_the_command_itself(stage: Stage) -> None:
    ended = asyncio.run(subprocesses.run(stage.wild("leaving", 7), stage.lines.append))

    assert not stage.survivors()
    assert len(wild.noted(stage.directory)) == 3
    assert (ended.reason, ended.code) == (Reason.EXIT, 7)


def test_nothing_survives_the_cancelling_of_the_task(stage: Stage) -> None:
    async def play() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(subprocesses.run(stage.wild("wild"), lambda line: ready.set()))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not stage.survivors()

    asyncio.run(play())


def test_nothing_survives_a_reader_that_fails(stage: Stage) -> None:
    def fail(line: str) -> None:
        raise LookupError(line)

    with pytest.raises(LookupError, match="ready"):
        asyncio.run(subprocesses.run(stage.wild("wild"), fail))

    assert not stage.survivors()


def test_nothing_survives_a_cancelled_start(stage: Stage) -> None:
    async def play() -> None:
        task = asyncio.create_task(subprocesses.run(stage.wild("wild"), stage.lines.append))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    until(lambda: not stage.survivors())


def test_processes_that_breed_faster_than_they_are_counted_end(stage: Stage) -> None:
    async def stop_when_many(run: Run) -> None:
        await soon(lambda: len(wild.noted(stage.directory)) > 40)
        run.stop()

    act_when_ready(stage.wild("breeding", 300), stop_when_many, stage)

    assert not stage.survivors()


def test_a_process_that_is_another_one_all_the_time_ends(stage: Stage) -> None:
    written = stage.directory / "written"

    async def stop_when_far(run: Run) -> None:
        await soon(lambda: written.exists() and written.stat().st_size > 50)
        run.stop()

    ended = act_when_ready(stage.wild("hopping"), stop_when_far, stage)
    size = written.stat().st_size

    assert ended.left == 0
    assert not stage.survivors()
    assert written.stat().st_size == size


def test_an_output_that_a_stranger_holds_open_delays_nothing(stage: Stage) -> None:
    held: list[int] = []

    def hold(started: Started) -> None:
        held.append(os.open(f"/proc/{started.pid}/fd/1", os.O_WRONLY))

    ended = asyncio.run(subprocesses.run(stage.order("sleep", "0.1"), stage.lines.append, hold))

    assert (ended.reason, ended.code) == (Reason.EXIT, 0)
    os.close(held[0])


def test_a_command_that_stands_still_ends(stage: Stage) -> None:
    ended = act_when_ready(stage.wild("stopped"), Run.stop, stage)

    assert (ended.reason, ended.signal) == (Reason.STOPPED, signal.SIGTERM)
    assert not stage.survivors()


def test_a_command_may_say_a_last_word_when_stopped(stage: Stage) -> None:
    order = stage.wild("polite", 5, Limits(grace=PATIENCE))

    ended = act_when_ready(order, Run.stop, stage)

    assert stage.lines == ["ready", "goodbye"]
    assert (ended.reason, ended.code) == (Reason.STOPPED, 5)


def test_stopping_twice_early_or_late_is_harmless(stage: Stage) -> None:
    async def play() -> Ended:
        run = Run(stage.order("sleep", "60"), stage.lines.append)
        run.stop()
        run.stop()
        ended = await run.ended()
        run.stop()
        run.result_seen()
        return ended

    assert asyncio.run(play()).reason is Reason.STOPPED
    assert not stage.survivors()


STAND_IN = """
import asyncio, os, sys, time
from pathlib import Path
from agents_app import subprocesses
from agents_app.subprocesses import Limits, Order

mark, copies, *argv = sys.argv[1:]
def ready(line):
    if copies == "with a copy" and not os.fork():
        Path("copy").write_text(str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    print(line, flush=True)

order = Order(argv=tuple(argv), cwd=Path.cwd(), env={"PATH": "/usr/bin:/bin"}, mark=mark,
              limits=Limits(grace=0.2))
asyncio.run(subprocesses.run(order, ready))
"""


def stand_in(stage: Stage, copies: str = "alone") -> subprocess.Popen[str]:
    """Start a processor of its own that runs a wild agent; return it when the agent is ready."""
    agent = wild.command("wild", stage.directory)
    processor = subprocess.Popen(
        [sys.executable, "-c", STAND_IN, stage.mark, copies, *agent],
        cwd=stage.directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert processor.stdout
    assert processor.stdout.readline() == "ready\n"
    processor.stdout.close()
    return processor


@pytest.mark.parametrize("copies", ["alone", "with a copy"])
def test_nothing_survives_a_killed_processor(stage: Stage, copies: str) -> None:
    with stand_in(stage, copies) as processor:
        assert len(stage.survivors()) >= 4

        processor.kill()

    until(lambda: not stage.survivors())
    copy = stage.directory / "copy"
    assert copy.exists() == (copies == "with a copy")
    if copy.exists():
        os.kill(int(copy.read_text()), signal.SIGKILL)


def test_more_output_than_the_limit_ends_the_run(stage: Stage) -> None:
    read = 0

    def count(line: str) -> None:
        nonlocal read
        read += len(line) + 1

    order = stage.order("sh", "-c", "yes 0123456789012345678901234567890123456789")
    ended = asyncio.run(subprocesses.run(order, count))

    assert ended.reason is Reason.OUTPUT_LIMIT
    assert ended.message == "The program wrote more than 50000000 bytes."
    assert 49_000_000 < read <= 50_000_000
    assert not stage.survivors()


def test_a_line_of_20_mb_is_cut_and_says_so(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo next")

    cut, following = stage.lines
    assert (ended.reason, ended.code) == (Reason.EXIT, 0)
    assert cut == "x" * 1024 * 1024 + " [cut: a line of 20000000 bytes]"
    assert following == "next"


def test_output_that_is_not_text_is_replaced_line_by_line(stage: Stage) -> None:
    stage.run("printf", "ok\\n\\377\\376a\\0b\\n\\342\\202\\nend")

    assert stage.lines == ["ok", "\ufffd\ufffda\0b", "\ufffd", "end"]


def test_other_line_ends_of_unicode_do_not_part_lines(stage: Stage) -> None:
    stage.run("printf", "a\\342\\200\\250b\\fc\\n")

    assert stage.lines == ["a\u2028b\fc"]


def test_only_the_last_of_the_errors_is_kept(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "yes error | head -c 600000 >&2; echo last >&2")

    assert ended.errors.endswith("error\nlast\n")
    assert len(ended.errors) == 16 * 1024


def test_a_prompt_that_is_never_read_does_no_harm(stage: Stage) -> None:
    ended = stage.run("sh", "-c", "echo done", prompt=b"x" * 5_000_000)
    assert (ended.reason, ended.code, stage.lines) == (Reason.EXIT, 0, ["done"])

    limits = Limits(silence=0.2, grace=0.1)
    ended = stage.run("sleep", "60", prompt=b"x" * 5_000_000, limits=limits)
    assert ended.reason is Reason.SILENCE
    assert not stage.survivors()


def test_a_large_prompt_arrives_whole_while_output_comes_back(stage: Stage) -> None:
    prompt = b"".join(b"%099d\n" % number for number in range(50_000))

    ended = stage.run("cat", prompt=prompt)

    assert ended.code == 0
    assert "\n".join([*stage.lines, ""]).encode() == prompt


def test_a_slow_reader_slows_the_command_and_is_not_its_silence(stage: Stage) -> None:
    order = stage.wild("progress", 20_000, Limits(silence=0.3, grace=0.1))
    reached: list[int] = []

    async def hold_up(run: Run) -> None:
        file, seen = stage.directory / "lines", ""

        def stands_still() -> bool:
            nonlocal seen
            before, seen = seen, file.read_text() if file.exists() else ""
            return bool(seen) and before == seen

        deadline = time.monotonic() + 1.0
        await soon(lambda: time.monotonic() > deadline and stands_still())
        reached.append(int(file.read_text()))

    ended = act_when_ready(order, hold_up, stage)

    assert (ended.reason, len(stage.lines)) == (Reason.EXIT, 20_000)
    assert reached[0] < 2_000, "most of the output had to wait in the command"


def test_the_loop_goes_on_while_a_run_does(stage: Stage) -> None:
    async def play() -> int:
        task = asyncio.create_task(subprocesses.run(stage.order("sleep", "0.2"), print))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        return turns

    assert asyncio.run(play()) > 20


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("no-such-program",), "The program 'no-such-program' was not found."),
        (("/no/such/program",), "The program '/no/such/program' was not found."),
        (("./data",), "'./data' is not executable."),
        (("/",), "'/' is not executable."),
        (("./text",), "'./text' could not be started (exec format error)."),
        (("true", "x" * 200_000), "The arguments of 'true' are too long."),
        ((), "No program is named."),
        (("",), "No program is named."),
        (("true", "a\0b"), "holds a NUL character."),
    ],
)
def test_a_command_that_cannot_start_says_why(
    stage: Stage, argv: tuple[str, ...], message: str
) -> None:
    for name, mode in (("text", 0o755), ("data", 0o644)):
        (stage.directory / name).write_text("no program")
        (stage.directory / name).chmod(mode)

    ended = stage.run(*argv)

    assert ended.reason is Reason.CANNOT_START
    assert message in ended.message
    assert (ended.code, stage.lines) == (None, [])


@pytest.mark.parametrize(
    ("name", "cause"), [("gone", "no such file or directory"), ("file", "not a directory")]
)
def test_a_directory_that_cannot_be_entered_is_named(stage: Stage, name: str, cause: str) -> None:
    (stage.directory / "file").touch()
    order = Order(argv=("true",), cwd=stage.directory / name, env=ENV, mark=stage.mark)

    ended = asyncio.run(subprocesses.run(order, stage.lines.append))

    assert ended.reason is Reason.CANNOT_START
    assert ended.message == (
        f"The working directory '{stage.directory / name}' cannot be entered ({cause}). "
        "Create it, or give the agent another one."
    )


def test_a_variable_without_a_name_is_refused(stage: Stage) -> None:
    order = Order(argv=("true",), cwd=stage.directory, env={"A=B": "C"}, mark=stage.mark)

    ended = asyncio.run(subprocesses.run(order, stage.lines.append))

    assert ended.message.startswith("A variable of 'true' has a name that is empty or holds '='.")


def test_a_killed_shepherd_takes_the_command_along_and_the_mark_finds_the_rest(
    stage: Stage,
) -> None:
    def kill(started: Started) -> None:
        os.kill(started.shepherd[0], signal.SIGKILL)

    order = stage.order("sh", "-c", "setsid sleep 60 & sleep 60")
    ended = asyncio.run(subprocesses.run(order, stage.lines.append, kill))

    assert ended.reason is Reason.LOST
    assert ended.message == "The shepherd of the run was killed, and the run with it."
    assert not stage.survivors()


def test_a_shepherd_that_stands_still_is_woken_and_the_run_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocesses, "_SLACK", 0.1)
    shepherds: list[int] = []

    async def play() -> Ended:
        run = Run(
            stage.wild("wild"), lambda line: freeze(), lambda s: shepherds.append(s.shepherd[0])
        )

        def freeze() -> None:
            os.kill(shepherds[0], signal.SIGSTOP)
            run.stop()

        return await run.ended()

    assert asyncio.run(play()).reason is Reason.STOPPED
    assert not stage.survivors()
