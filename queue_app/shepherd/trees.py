"""Start a command, find all the processes it has led to, and end them.

A group kill misses what took a session of its own, a search for a mark what emptied its environment;
on Linux no process leaves the tree of one that adopts the orphans below it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
else:
    # The same functions; the public module adds 3.5 ms of enumerations to a start of 8 ms.
    import _signal as signal

# In the environment of all that a run starts, and in that of its shepherd.
RUN_MARK = "TINYAGI_RUN_MARK"
SHEPHERD_MARK = "TINYAGI_SHEPHERD_MARK"
_LOOK_EVERY = 0.01
_PASSES = 100
_PS = "/bin/ps"
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
# A shepherd that was forked cannot show its mark as environment; it takes as much of it as a name holds.
_NAME_LENGTH = 15
# Instead of a program: a function `main` of a module, run by the forked process itself.
MODULE = b"module:"
_MOST_DESCRIPTORS = 256
_PR_SET_CHILD_SUBREAPER = 36


class CannotStart(Exception):
    """The command did not start: what failed (`fork`, `directory` or `program`), and why."""

    def __init__(self, step: bytes, errno: int) -> None:
        super().__init__(step, errno)
        self.step = step
        self.errno = errno


class Tree:
    """All the processes that this one has led to."""

    def __init__(self) -> None:
        self.adopts = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self.seen: dict[int, str] = {}

    def living(self) -> set[int]:
        """Return their ids."""
        return below(self._tops())

    def kill(self) -> None:
        """Kill them all."""
        kill(self._tops)

    def remember(self) -> None:
        """Note who is there; where orphans are not adopted, only this finds them again."""
        self.seen = {pid: self.seen.get(pid) or since(pid) for pid in self.living()}

    def _tops(self) -> list[int]:
        known = [pid for pid, began in self.seen.items() if since(pid) == began]
        return known + _children(os.getpid())


def start(argv: list[bytes], *, cwd: bytes, env: dict[bytes, bytes]) -> tuple[int, int, int, int]:
    """Start a command; return its id and our ends of its input, output and errors."""
    inward, outward, errors, failure = (os.pipe() for _ in range(4))
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        raise CannotStart(b"fork", error.errno or 0) from None
    if pid == 0:
        _bind(parent)
        _become(argv, cwd, env, fds=(inward[0], outward[1], errors[1], failure[1]))
    for theirs in (inward[0], outward[1], errors[1], failure[1]):
        os.close(theirs)
    # Closed without a word by a successful exec.
    step, _, number = os.read(failure[0], 100).partition(b" ")
    os.close(failure[0])
    if step:
        os.waitpid(pid, 0)
        raise CannotStart(step, int(number))
    for ours in (inward[1], outward[0], errors[0]):
        os.set_blocking(ours, False)
    return pid, inward[1], outward[0], errors[0]


def below(tops: Iterable[int], visit: Callable[[int], None] = lambda pid: None) -> set[int]:
    """Return some processes and all their descendants; visit each before its children are read."""
    found: set[int] = set()
    waiting = list(tops)
    while waiting:
        # The newest first: one that forks and ends in turn is gone before a long list is read.
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            visit(pid)
            waiting += _children(pid)
    return found


def since(pid: int) -> str:
    """Return when a process began, as its system counts; empty when it has ended.

    Ids are used again; an id and its beginning are not.
    """
    if sys.platform != "linux":
        return _ps("-o", "lstart=", "-p", str(pid)).strip()
    stat = _stat(pid)
    return "" if not stat or stat[0] == b"Z" else stat[19].decode()


def terminate(pids: Iterable[int]) -> None:
    """Ask processes to end, also those that were stopped."""
    for pid in pids:
        _send(pid, signal.SIGTERM)
        _send(pid, signal.SIGCONT)


def kill(find: Callable[[], Iterable[int]]) -> set[int]:
    """Kill what is found and all below, frozen first from the top down, so that nothing escapes.

    They die soon after; their ids are returned.
    """
    frozen: set[int] = set()
    for _ in range(_PASSES):
        new = below(find(), lambda pid: _send(pid, signal.SIGSTOP)) - frozen
        if not new:
            break
        frozen |= new
    for pid in frozen:
        _send(pid, signal.SIGKILL)
    return frozen


def end_run(mark: str, *, shepherd: tuple[int, str] | None = None, patience: float = 15.0) -> int:
    """End what a lost run left on this host; return how many processes resist.

    Its shepherd, known by the mark or by id and beginning, is asked to end its tree and itself, and
    killed with all below it when that takes longer than `patience`. Where the shepherd is dead, what
    bears the mark is killed with all below it; what left both tree and environment is not found.
    """
    known = {shepherd} if shepherd else set()
    bearing = _bearing(SHEPHERD_MARK, mark) | _named(mark)
    known |= {(pid, since(pid)) for pid in bearing}
    asked = {(pid, began) for pid, began in known if began and since(pid) == began}
    terminate(pid for pid, _ in asked)
    until = time.monotonic() + patience
    while _living(asked) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)
    until += patience
    left = _resisting(lambda: _living(asked), until)
    return left + _resisting(lambda: _bearing(RUN_MARK, mark) - {os.getpid()}, until)


def _resisting(find: Callable[[], set[int]], until: float) -> int:
    """Kill what is found, and wait for its end; return how many do not die."""
    dying: set[int] = set()
    while True:
        dying = {pid for pid in dying | kill(find) if since(pid)}
        if not dying or time.monotonic() > until:
            return len(dying)
        time.sleep(_LOOK_EVERY)


def _living(processes: set[tuple[int, str]]) -> set[int]:
    return {pid for pid, began in processes if since(pid) == began}


def _bearing(name: str, mark: str) -> set[int]:
    """Return the processes with this mark; none where the system does not show environments."""
    entry = f"{name}={mark}".encode()
    found = set()
    for pid in _pids():
        if entry in _read(f"/proc/{pid}/environ").split(b"\0"):
            found.add(pid)
    return found


def wear(mark: str) -> None:
    """Take the run's mark as this process's name, where the system keeps one."""
    if sys.platform == "linux":
        name = ctypes.create_string_buffer(mark[:_NAME_LENGTH].encode())
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name, 0, 0, 0)


def _named(mark: str) -> set[int]:
    name = mark[:_NAME_LENGTH].encode() + b"\n"
    return {pid for pid in _pids() if _read(f"/proc/{pid}/comm") == name}


def _children(pid: int) -> list[int]:
    """Return the children of a process, the newest last."""
    if sys.platform != "linux":
        rows = [row.split() for row in _ps("-axo", "pid=,ppid=,comm=").splitlines()]
        return [int(row[0]) for row in rows if int(row[1]) == pid and row[2] != _PS]
    if not os.path.exists("/proc/thread-self/children"):
        # A kernel built without these lists.
        return [child for child in _pids() if _stat(child)[1:2] == [b"%d" % pid]]
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    lists = [_read(f"/proc/{pid}/task/{thread}/children") for thread in threads]
    return [int(child) for one in lists for child in one.split()]


def _pids() -> list[int]:
    if sys.platform != "linux":
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[bytes]:
    # What follows the program's name, which may itself hold spaces and brackets.
    return _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()


def _read(file: str) -> bytes:
    try:
        with open(file, "rb", buffering=0) as opened:
            return opened.read()
    except OSError:
        # Ended meanwhile, or another user's.
        return b""


def _ps(*arguments: str) -> str:
    import subprocess

    done = subprocess.run([_PS, *arguments], capture_output=True, text=True, check=False)
    return done.stdout


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # Ended meanwhile, or another user's: whoever counts what is left will see it.
        return


def _bind(parent: int) -> None:
    """Let this process die with the one that started it."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(127)


def _become(
    argv: list[bytes], cwd: bytes, env: dict[bytes, bytes], *, fds: tuple[int, int, int, int]
) -> None:
    """Turn this process into the command; never return."""
    step = b"directory"
    try:
        # A session of its own: `kill 0` of a command must not reach its parent.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for place, fd in enumerate(fds[:3]):
            os.dup2(fd, place)
        os.chdir(cwd)
        step = b"program"
        if argv[0].startswith(MODULE):
            # Before its parent goes on, which may ask it to end at once.
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            # Nothing is executed that would close them; an open end of its own input never ends.
            os.closerange(3, _MOST_DESCRIPTORS)
            _call(argv, env)
        _execute(argv, env)
    except OSError as error:
        os.write(fds[3], b"%s %d" % (step, error.errno or 0))
    finally:
        os._exit(127)


def _call(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Run a module's `main` in this very process, as if it had been started."""
    name = argv[0].removeprefix(MODULE).decode()
    wear(name.rpartition(".")[2])
    os.environ.clear()
    os.environ.update({os.fsdecode(key): os.fsdecode(value) for key, value in env.items()})
    sys.argv = [os.fsdecode(word) for word in argv]
    try:
        __import__(name)
        sys.modules[name].main()
        sys.stdout.flush()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    os._exit(0)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become the program, looked for on the path of its own environment."""
    path = env.get(b"PATH", b"/usr/bin:/bin").split(b":")
    places = [b""] if b"/" in argv[0] else [directory for directory in path if directory]
    refusal: OSError = FileNotFoundError(2, "")
    for directory in places:
        try:
            os.execve(os.path.join(directory, argv[0]), argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = error
    raise refusal


def _prctl(option: int, value: int) -> bool:
    """Ask Linux for one of its services; return False where it is not to be had."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
