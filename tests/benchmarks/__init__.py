"""How fast it is, asked of real files with the real settings; run by script/bench, never by the tests."""

from __future__ import annotations
