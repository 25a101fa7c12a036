"""What an office has before its port opens: an owner, the owner's token, and an agent who answers."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth.models import User

from agents_app.models import Agent
from queue_app import clock
from queue_app.models import Lane
from tinyoffice import credentials, storage

OWNER = "owner"
DEFAULT_AGENT = "tinyagi"


def found(home: Path) -> None:
    """Make what is missing of owner, token and default agent; leave alone what is there."""
    ensure_owner()
    ensure_token(home / "token")
    ensure_agent()


def ensure_owner() -> User:
    """Return the owner's account, made without a password: the login link opens the door."""
    owner, made = User.objects.get_or_create(
        username=OWNER, defaults={"is_staff": True, "is_superuser": True}
    )
    if made:
        owner.set_unusable_password()
        owner.save(update_fields=["password"])
    return owner


def ensure_token(file: Path) -> None:
    """Keep the owner's token in a file of mode 0600 and its digest in the database."""
    text = storage.secret(file, credentials.draw)
    if not credentials.is_well_formed(text):
        raise storage.StorageUnusable(
            f"'{file}' should hold the owner's token (toff_…) and holds something else. "
            "Remove the file and start again: a new token is made."
        )
    file.chmod(0o600)
    credentials.register(text, name="the owner's first", scope="owner")


def ensure_agent() -> None:
    """Give an office without agents the one that answers with no model, key or network."""
    if Agent.objects.exists():
        return
    now = clock.now()
    Agent.objects.get_or_create(
        id=DEFAULT_AGENT,
        defaults={
            "name": "TinyAGI",
            "provider": "rehearsal",
            "created_at": now,
            "updated_at": now,
        },
    )
    Lane.objects.get_or_create(name=f"agent:{DEFAULT_AGENT}")
