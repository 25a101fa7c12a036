"""Who may come in: tokens that are shown once and stored only as a digest.

A token reads `toff_<prefix>_<secret>`: the prefix finds its row, the secret proves it. A login link
carries one with the scope `login`, which opens one page once and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from django.db.models import Q, QuerySet

from queue_app import clock
from tinyoffice.models import Token

LOGIN_LIFETIME = 10 * 60_000
_USE_NOTED_EVERY = 60_000
_SHAPE = re.compile(r"toff_([a-z0-9]{8})_[A-Za-z0-9]{16,128}")


def draw() -> str:
    """Return a new token's clear text, which is stored nowhere yet."""
    return f"toff_{secrets.token_hex(4)}_{secrets.token_hex(24)}"


def is_well_formed(text: str) -> bool:
    """Say whether a text has the shape of a token."""
    return _SHAPE.fullmatch(text) is not None


def make(name: str, scope: str, expires: int | None = None, run_id: int | None = None) -> str:
    """Store a new token and return its clear text, for the only time; `expires` is in ms."""
    text = draw()
    register(text, name=name, scope=scope, expires=expires, run_id=run_id)
    return text


def register(
    text: str, *, name: str, scope: str, expires: int | None = None, run_id: int | None = None
) -> None:
    """Store a given token's digest unless it is known already."""
    Token.objects.get_or_create(
        digest=_digest(text),
        defaults={
            "name": name,
            "prefix": _prefix(text),
            "scope": scope,
            "run_id": run_id,
            "created_at": clock.now(),
            "expires_at": expires,
        },
    )


def verify(text: str) -> Token | None:
    """Return the live token with this text; a login link's is none, for it opens only its page."""
    if not is_well_formed(text):
        return None
    now, digest, found = clock.now(), _digest(text), None
    for token in Token.objects.filter(_live(now), prefix=_prefix(text)).exclude(scope="login"):
        # Every candidate is compared, and whole, so that the time taken tells nothing.
        if secrets.compare_digest(token.digest, digest):
            found = token
    if found is not None:
        _note_use(found, now)
    return found


def make_login(now: int | None = None) -> str:
    """Store a token for a login link that opens once within ten minutes; return its text."""
    at = clock.now() if now is None else now
    Token.objects.filter(scope="login", expires_at__lt=at - LOGIN_LIFETIME).delete()
    return make("login link", "login", expires=at + LOGIN_LIFETIME)


def opens(text: str) -> bool:
    """Say whether a login link is still good, without using it up."""
    return _login(text).exists()


def spend_login(text: str) -> bool:
    """Use a login link up; return False if it was used, has expired or never was."""
    now = clock.now()
    return _login(text).update(revoked_at=now, last_used_at=now) == 1


def _login(text: str) -> QuerySet[Token]:
    return Token.objects.filter(_live(clock.now()), digest=_digest(text), scope="login")


def _live(now: int) -> Q:
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    return unexpired & Q(revoked_at__isnull=True)


def _note_use(token: Token, now: int) -> None:
    unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USE_NOTED_EVERY)
    Token.objects.filter(unnoted, pk=token.pk).update(last_used_at=now)


def _prefix(text: str) -> str:
    return text.split("_", 2)[1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
