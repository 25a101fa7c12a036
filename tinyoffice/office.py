"""Start the office, keep it, and stop it in order: what `manage.py office` does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from django.core.management import call_command
from django.db import DatabaseError

from spark import availability
from tinyoffice import credentials, founding, parent, ports, presence, storage, supervision
from tinyoffice.conf import Conf, WebConf
from tinyoffice.errors import TinyOfficeError
from tinyoffice.runtime import runtime_directory

START_SECONDS = 60
Say = Callable[[str], None]


class CannotStart(TinyOfficeError):
    """The office may not or cannot be started."""

    code = "cannot_start"


def open_office(conf: Conf, say: Say) -> None:
    """Check, prepare, start everything and keep it until somebody stops it."""
    os.umask(0o077)
    _hold_signals()
    lock = _lock(conf)
    if conf.postgres is None:
        storage.check_database(conf.database_file)
    if (reason := ports.refusal(conf.web.host, conf.web.port)) is not None:
        raise CannotStart(reason)
    _prepare(conf)
    refuse_public(conf.web)
    _keep(conf, lock, say)


def refuse_public(web: WebConf) -> None:
    """Refuse an address that others can reach unless TLS is declared and a password is set."""
    if web.is_loopback:
        return
    if not web.behind_tls:
        raise CannotStart(
            f"TINYAGI_API_HOST is '{web.host}', which other machines can reach, and TLS is not "
            "declared. Put a proxy that does TLS before the office and set TINYAGI_BEHIND_TLS=1, "
            "or unset TINYAGI_API_HOST to stay on this machine."
        )
    if not founding.ensure_owner().has_usable_password():
        raise CannotStart(
            f"TINYAGI_API_HOST is '{web.host}', which other machines can reach, and the owner has "
            "no password. Set one with `manage.py changepassword owner`, "
            "or unset TINYAGI_API_HOST to stay on this machine."
        )


def login_link(web: WebConf) -> str:
    """Make a login link that opens once within ten minutes."""
    return f"{web.url}/login/{credentials.make_login()}"


def _lock(conf: Conf) -> int:
    lock = presence.take(conf.home)
    if lock is None:
        raise CannotStart(
            f"An office runs on '{conf.home}' already (process {presence.process_id(conf.home)}). "
            "Stop it with `manage.py stop`, or set TINYAGI_HOME and TINYAGI_API_PORT "
            "to start another beside it."
        )
    return lock


def _prepare(conf: Conf) -> None:
    try:
        call_command("migrate", verbosity=0, interactive=False)
        founding.found(conf.home)
    except DatabaseError as error:
        where = f"'{conf.database_file}'" if conf.postgres is None else "named by DATABASE_URL"
        raise CannotStart(
            f"The database {where} could not be prepared: {str(error).strip()}. Mend that (a full "
            "disk, a server that is not up) and start again: what was begun is taken up there."
        ) from error


def _keep(conf: Conf, lock: int, say: Say) -> None:
    keeper = _start_keeper(conf, lock)
    try:
        if _wait_until_up(conf.web, keeper):
            _welcome(conf.web, say)
        elif keeper.poll() is None and not signal.sigpending() & _stopping():
            _give_up(conf, keeper)
        asked = _wait_until_stopped(keeper, say)
    finally:
        if keeper.poll() is None:
            keeper.terminate()
            keeper.wait()
    # A keeper that is stopped before it listens to signals ends by the signal itself.
    if keeper.returncode != 0 and not (asked and keeper.returncode == -signal.SIGTERM):
        raise CannotStart(
            f"The process that keeps the others ended unasked (status {keeper.returncode}), and "
            f"they with it. Its log is '{conf.home / 'logs' / 'supervisor.log'}'. "
            "Start the office again."
        )
    say("The office is closed.")


def _stopping() -> set[signal.Signals]:
    # Under nohup a hang-up is ignored, and means nothing.
    hang_up = set() if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else {signal.SIGHUP}
    return {signal.SIGINT, signal.SIGTERM} | hang_up


def _hold_signals() -> None:
    # Blocked signals wait until they are asked for, so none is lost between two steps.
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _stopping() | {signal.SIGCHLD})


def _start_keeper(conf: Conf, lock: int) -> subprocess.Popen[bytes]:
    runtime = runtime_directory(conf.home)
    text = supervision.configuration(_programs(), runtime=runtime)
    file = supervision.write(text, runtime)
    parent.keep_children()
    # A session of its own: Ctrl-C reaches the office alone, which hands it on once.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "tinyoffice.keeper", str(file), str(lock), str(conf.home / "logs")],
        cwd=supervision.BASE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[lock],
        start_new_session=True,
    )


def _programs() -> tuple[supervision.Program, ...]:
    complete = availability.state() is availability.State.INSTALLED
    return tuple(
        program for program in supervision.PROGRAMS if program.name != "spark" or not complete
    )


def _wait_until_up(web: WebConf, keeper: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and keeper.poll() is None:
        if signal.sigpending() & _stopping():
            return False
        if _answers(web):
            return True
        time.sleep(0.05)
    return False


def _wait_until_stopped(keeper: subprocess.Popen[bytes], say: Say) -> bool:
    asked = False
    while keeper.poll() is None:
        if signal.sigwait(_stopping() | {signal.SIGCHLD}) == signal.SIGCHLD:
            continue
        if not asked:
            say("Closing: the scheduler, then the queue processor, then the web server.")
        asked = True
        keeper.terminate()
    return asked


def _answers(web: WebConf) -> bool:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(web.host, web.host)  # noqa: S104
    connection = HTTPConnection(host, web.port, timeout=2)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _give_up(conf: Conf, keeper: subprocess.Popen[bytes]) -> None:
    keeper.terminate()
    keeper.wait()
    raise CannotStart(
        f"The web server did not answer within {START_SECONDS} s, so everything was stopped again. "
        f"Its log, '{conf.home / 'logs' / 'web.log'}', says why."
    )


def _welcome(web: WebConf, say: Say) -> None:
    say(f"The office is open at {web.url}")
    if is_private(sys.stdout.fileno()):
        say(f"Log in, once, within ten minutes: {login_link(web)}")
    else:
        say("Log in with the link that `manage.py login_link` prints on a terminal.")
    say("Ctrl-C closes it.")


def is_private(descriptor: int) -> bool:
    """Say whether what is printed there is seen by a person and not kept."""
    return os.isatty(descriptor)
