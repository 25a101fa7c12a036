"""The rules of the house, read from the source: who may import whom, who writes a status, one SQLite."""

from __future__ import annotations

import ast
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.backends.sqlite3.base import DatabaseWrapper

from tinyoffice import sqlite_library

ROOT = Path(__file__).resolve().parent.parent
APPS = ("tinyoffice", "queue_app", "agents_app", "channels_app", "spark")
LONGEST_MODULE = 350

# From the left to the right: a file may import what stands left of it, in its own row, and nothing else.
QUEUE_LAYERS = (
    {"clock", "ids", "states", "errors", "masking", "shepherd", "connections"},
    {"limits", "faults"},
    {"values", "batches"},
    {"retries", "notices"},
    {"models"},
    {"sql", "audit", "holders", "wakeup"},
    {"events"},
    {"queue"},
    {"pulse", "watch", "status", "traces", "progress", "results"},
    {"maintenance", "processor"},
)
EDGES = {"admin", "api", "apps", "management", "migrations"}


def sources() -> list[Path]:
    return [
        file
        for app in APPS
        for file in sorted((ROOT / app).rglob("*.py"))
        if "migrations" not in file.parts
    ]


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def part_of(file: Path) -> str:
    """Return the module or package directly below the app."""
    return file.relative_to(ROOT).parts[1].removesuffix(".py")


@pytest.mark.parametrize("file", sources(), ids=name_of)
def test_apps_import_only_to_their_left(file: Path) -> None:
    app = file.relative_to(ROOT).parts[0]
    if part_of(file) in EDGES or app == "tinyoffice":
        return
    forbidden = {
        "queue_app": ("agents_app", "channels_app", "spark"),
        "agents_app": ("channels_app", "spark"),
        "channels_app": ("spark",),
        "spark": ("queue_app", "agents_app", "channels_app", "tinyoffice", "django"),
    }[app]
    assert not [name for name in imported(file) if name.split(".")[0] in forbidden]


@pytest.mark.parametrize("file", sorted((ROOT / "queue_app").rglob("*.py")), ids=name_of)
def test_the_queue_core_imports_only_to_its_left(file: Path) -> None:
    layers = {part: rank for rank, parts in enumerate(QUEUE_LAYERS) for part in parts}
    part = part_of(file)
    if part in EDGES or part == "__init__":
        return
    assert part in layers, f"give {name_of(file)} its place in QUEUE_LAYERS"
    mine = [name.split(".")[1] for name in imported(file) if name.startswith("queue_app.")]
    wrong = {other for other in mine if layers.get(other, 99) > layers[part]}
    assert not wrong, f"{name_of(file)} imports to its right: {wrong}"


def test_start_up_values_depend_on_nothing() -> None:
    found = {name.split(".")[0] for name in imported(ROOT / "tinyoffice" / "conf.py")}
    assert found - set(sys.stdlib_module_names) == {"tinyoffice"}


@pytest.mark.parametrize("file", sources(), ids=name_of)
def test_only_the_queue_writes_a_status(file: Path) -> None:
    if name_of(file).startswith("queue_app/queue/"):
        return
    writes = [f"line {node.lineno}" for node in ast.walk(parse(file)) if writes_status(node)]
    text = file.read_text().upper()
    if not name_of(file).startswith("queue_app/sql/") and "SET STATUS" in text:
        writes.append("SQL that sets a status")
    assert not writes


def writes_status(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        writing = {"update", "create", "bulk_create", "get_or_create", "update_or_create"}
        return node.func.attr in writing and any(word.arg == "status" for word in node.keywords)
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Attribute) and target.attr == "status" for target in targets)


def test_only_the_queue_uses_the_statements_that_move_rows() -> None:
    moving = {"HOLD_MESSAGES", "COMPLETE_HELD", "RETURN_HELD", "BURY_HELD", "INSERT_MESSAGE"}
    for file in sources():
        if name_of(file).startswith(("queue_app/queue/", "queue_app/sql/")):
            continue
        used = {node.attr for node in ast.walk(parse(file)) if isinstance(node, ast.Attribute)}
        assert not used & moving, name_of(file)


def test_one_sqlite_library_in_the_process() -> None:
    assert DatabaseWrapper.Database is sqlite3.dbapi2 or (
        DatabaseWrapper.Database.__name__ == sqlite3.dbapi2.__name__
    )
    assert sqlite_library.wal_is_safe(), "the tests must run on a library that is safe in WAL mode"
    for file in sources():
        if name_of(file) == "tinyoffice/sqlite_library.py":
            continue
        others = {"pysqlite3", "apsw", "_sqlite3", "aiosqlite"}
        assert not others & {name.split(".")[0] for name in imported(file)}, name_of(file)


def test_nobody_opens_the_database_file_as_a_file() -> None:
    opening = {"open", "read_bytes", "write_bytes", "read_text", "copyfile", "copy2", "copyfileobj"}
    for file in sources():
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                assert not (called in opening and "database_file" in ast.unparse(node)), (
                    f"{name_of(file)}:{node.lineno} opens the database: its locks would be dropped"
                )


@pytest.mark.parametrize("file", sources(), ids=name_of)
def test_no_error_is_swallowed(file: Path) -> None:
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.ExceptHandler):
            silent = all(isinstance(line, ast.Pass) for line in node.body)
            assert not silent, f"line {node.lineno} swallows an error"
            assert node.type is not None, f"line {node.lineno} catches everything"


def test_modules_stay_small_and_say_why_they_exist() -> None:
    for file in sources():
        lines = file.read_text().splitlines()
        assert len(lines) <= LONGEST_MODULE, f"{name_of(file)} has {len(lines)} lines"
        assert not lines or ast.get_docstring(parse(file)), f"{name_of(file)} has no docstring"
        assert file.stem not in {"utils", "helpers", "common_utils", "misc", "services"}
