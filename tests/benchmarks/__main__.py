"""The door script/bench knocks at: sets Django up, then runs the benchmark that was asked for."""

from __future__ import annotations

import importlib
import os
import sys

import django

BENCHMARKS = ("queue", "processor")
PARTS = ("listener", "sleeper", "postgres")  # other processes that a benchmark starts


def main(arguments: list[str]) -> int:
    """Run the named benchmark; its module is imported only after Django is ready."""
    name = arguments[0] if arguments else ""
    if name not in BENCHMARKS + PARTS:
        sys.exit(f"usage: script/bench {'|'.join(BENCHMARKS)} [--help]")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tinyoffice.settings")
    django.setup()
    module = importlib.import_module(f"tests.benchmarks.{name}")
    return int(module.main(arguments[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
