"""Start-up values: read once from the environment into frozen values; a bad one stops the start."""

from __future__ import annotations

import ipaddress
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from tinyoffice.errors import TinyOfficeError

T = TypeVar("T")


class BadSetting(TinyOfficeError):
    """An environment variable holds a value the office cannot start with."""

    code = "bad_setting"

    def __init__(self, variable: str, value: str, accepted: str) -> None:
        super().__init__(
            f"{variable} is '{_without_password(value)}', which the office cannot use. Accepted: {accepted}. "
            f"Change or unset {variable} and start again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresConf:
    """Where the PostgreSQL of a scaled-out office is."""

    name: str
    user: str
    password: str
    host: str
    port: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConf:
    """Where the office listens, and for whom."""

    host: str
    port: int
    behind_tls: bool
    public_url: str | None

    @property
    def is_loopback(self) -> bool:
        """Say whether only this machine can reach the address."""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        """Return the address a browser opens."""
        if self.public_url:
            return self.public_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConf:
    """How patient the queue is; times in milliseconds."""

    max_attempts: int
    retry_waits: tuple[int, ...]
    beat_every: int
    lost_after: int
    starved_after: int
    blocked_for_at_most: int = 24 * 3_600_000
    stale_after: int = 10 * 60_000
    max_conversation_messages: int = 50
    max_hops: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorConf:
    """How many runs a processor has at once and how patient it is with them; times in milliseconds."""

    slots: int
    drain: int
    run_for: int
    silent_for: int
    after_result: int = 30_000
    stuck_after: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConf:
    """How long maintenance keeps finished rows; times in milliseconds."""

    finished: int = 24 * 3_600_000
    events: int = 24 * 3_600_000
    progress: int = 3_600_000
    intakes: int = 30 * 24 * 3_600_000
    unserved: int = 3_600_000
    conversation_idle: int = 30 * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """Everything the office is started with."""

    home: Path
    workspace: Path
    web: WebConf
    postgres: PostgresConf | None
    queue: QueueConf
    processor: ProcessorConf
    retention: RetentionConf

    @property
    def database_file(self) -> Path:
        """Return the SQLite file of an office that keeps everything in one file."""
        return self.home / "tinyagi.db"


class _Environment:
    """Reads variables, each with the parser that names what it accepts."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    def read(self, variable: str, parse: Callable[[str], T], accepted: str, default: T) -> T:
        text = self.environ.get(variable, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError:
            raise BadSetting(variable, text, accepted) from None

    def renamed(self, variable: str, older: str) -> str:
        """Return which of the two names is set; an older one counts, with a warning."""
        if self.environ.get(variable, "").strip() or not self.environ.get(older, "").strip():
            return variable
        warnings.warn(f"{older} is the old name of {variable}; set {variable}.", stacklevel=3)
        return older


def load(environ: Mapping[str, str]) -> Conf:
    """Read every start-up value; raise BadSetting for the first one that cannot be used."""
    env = _Environment(environ)
    user_home = Path(environ.get("HOME") or os.path.expanduser("~"))
    return Conf(
        home=env.read(
            env.renamed("TINYAGI_HOME", "TINYCLAW_HOME"),
            _directory,
            "an absolute directory, or one that begins with ~",
            user_home / ".tinyagi",
        ),
        workspace=env.read(
            "TINYAGI_WORKSPACE",
            _directory,
            "an absolute directory, or one that begins with ~",
            user_home / "tinyagi-workspace",
        ),
        web=_web(env),
        postgres=env.read(
            "DATABASE_URL",
            _postgres,
            "postgres://user:password@host:port/name (leave it unset for SQLite in home)",
            None,
        ),
        queue=_queue(env),
        processor=_processor(env),
        retention=RetentionConf(),
    )


def _web(env: _Environment) -> WebConf:
    return WebConf(
        host=env.read("TINYAGI_API_HOST", _host, "localhost or an IP address", "127.0.0.1"),
        port=env.read(
            env.renamed("TINYAGI_API_PORT", "TINYCLAW_API_PORT"),
            _whole(1, 65_535),
            "a whole number from 1 to 65535",
            3777,
        ),
        behind_tls=env.read("TINYAGI_BEHIND_TLS", _flag, "0 or 1", False),
        public_url=env.read(
            "TINYAGI_PUBLIC_URL", _origin, "https://name or https://name:port, without a path", None
        ),
    )


def _queue(env: _Environment) -> QueueConf:
    seconds = "seconds, more than 0 and at most 86400"
    beat = env.read("TINYAGI_BEAT_SECONDS", _seconds, seconds, 5_000)
    lost = env.read("TINYAGI_LOST_AFTER_SECONDS", _seconds, seconds, 20_000)
    if lost < 2 * beat:
        raise BadSetting(
            "TINYAGI_LOST_AFTER_SECONDS",
            f"{lost / 1000:g}",
            f"at least twice TINYAGI_BEAT_SECONDS, which is {beat / 1000:g}",
        )
    return QueueConf(
        max_attempts=env.read(
            "TINYAGI_MAX_ATTEMPTS", _whole(1, 100), "a whole number from 1 to 100", 5
        ),
        retry_waits=env.read(
            "TINYAGI_RETRY_WAITS",
            _waits,
            "seconds separated by commas, as in 1,5,30,120",
            (1_000, 5_000, 30_000, 120_000),
        ),
        beat_every=beat,
        lost_after=lost,
        starved_after=lost * 3 // 4,
    )


def _without_password(text: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", text)


def _processor(env: _Environment) -> ProcessorConf:
    seconds = "seconds, more than 0 and at most 86400"
    return ProcessorConf(
        slots=env.read(
            "TINYAGI_MAX_RUNS", _whole(1, 1000), "a whole number from 1 to 1000", _default_slots()
        ),
        drain=env.read("TINYAGI_DRAIN_SECONDS", _seconds, seconds, 30_000),
        run_for=env.read("TINYAGI_RUN_SECONDS", _seconds, seconds, 60 * 60_000),
        silent_for=env.read("TINYAGI_SILENCE_SECONDS", _seconds, seconds, 10 * 60_000),
    )


def _default_slots() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(8, (os.cpu_count() or 1) * 2, memory // 2**30))


def _directory(text: str) -> Path:
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # the `~name` of nobody here
        raise ValueError(text) from error
    if not path.is_absolute() or "\0" in text:
        raise ValueError(text)
    return path


def _host(text: str) -> str:
    return text if text == "localhost" else str(ipaddress.ip_address(text))


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return parse


def _origin(text: str) -> str:
    url = urlsplit(text)
    if (
        url.scheme != "https"
        or not url.hostname
        or url.path.strip("/")
        or url.username
        or url.query
    ):
        raise ValueError(text)
    return f"https://{url.netloc.lower()}"


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _seconds(text: str) -> int:
    seconds = float(text)
    if not 0.001 <= seconds <= 86_400:
        raise ValueError(text)
    return round(seconds * 1000)


def _waits(text: str) -> tuple[int, ...]:
    return tuple(_seconds(part) for part in text.split(","))


def _postgres(text: str) -> PostgresConf:
    url: SplitResult = urlsplit(text)
    if url.scheme not in ("postgres", "postgresql") or len(url.path) < 2:
        raise ValueError(text)
    # A socket directory is given percent-encoded in the place of the host.
    return PostgresConf(
        name=unquote(url.path[1:]),
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        host=unquote(url.hostname or ""),
        port=str(url.port or ""),
    )
