"""Name → provider: the sole list."""

from __future__ import annotations

from agents_app.providers.base import Provider
from agents_app.providers.rehearsal import Rehearsal

PROVIDERS: dict[str, Provider] = {provider.name: provider for provider in (Rehearsal(),)}
