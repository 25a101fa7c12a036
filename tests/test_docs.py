"""What the docs name exists, and what exists is in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from queue_app import events, queue
from queue_app.faults import ErrorClass
from queue_app.states import MessageStatus, ResponseStatus
from tinyoffice import urls

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OURS = {"tinyoffice", "queue_app", "agents_app", "channels_app"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def first_cells(text: str, heading: str) -> set[str]:
    """Return the words in backquotes in the first column of the table under a heading."""
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def our_commands() -> set[str]:
    return {name for name, app in get_commands().items() if app in OURS}


def test_every_event_is_described_as_the_code_describes_it() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page("events.md"), re.MULTILINE))
    assert rows == events.EVENTS


def test_every_event_is_told_somewhere() -> None:
    source = "".join(
        file.read_text()
        for app in OURS
        for file in (ROOT / app).rglob("*.py")
        if file.name != "events.py"
    )
    assert [name for name in events.EVENTS if f'"{name}"' not in source] == []


def test_every_setting_is_documented() -> None:
    source = (ROOT / "tinyoffice" / "conf.py").read_text()
    read = set(re.findall(r'"((?:TINYAGI|TINYCLAW)_[A-Z_]+|DATABASE_URL)"', source))
    assert first_cells(page("operations.md"), "Settings") == read


def test_every_command_is_documented() -> None:
    assert first_cells(page("operations.md"), "Commands") == our_commands()


def test_every_state_verb_and_error_class_is_documented() -> None:
    text = page("queue.md")
    assert first_cells(text, "States") == {*MessageStatus.values, *ResponseStatus.values}
    assert first_cells(text, "Verbs") == set(queue.__all__)
    named = first_cells(text, "Failures") | set(re.findall(r"`(\w+)`", text))
    assert set(ErrorClass.values) <= named


def test_every_api_route_is_documented() -> None:
    routes = {
        f"/{pattern.pattern}"
        for pattern in urls.urlpatterns
        if re.fullmatch(r"api/[a-z/]+[a-z]", str(pattern.pattern))
    }
    assert routes == set(re.findall(r"`GET (/api/\w+)`", page("api.md")))


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_a_page_names_exists(file: Path) -> None:
    text = file.read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text))
    assert commands <= set(get_commands()), "no such command"
    for script in re.findall(r"(?<![\w/])script/(\w+)", text):
        assert (ROOT / "script" / script).exists(), f"no script/{script}"
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (file.parent / link).exists(), f"broken link {link}"
    if file.parent.name == "decisions":
        return  # a decision may speak of what it decided against
    for path in re.findall(
        r"`((?:tinyoffice|queue_app|agents_app|channels_app|spark|tests)/[\w/.]+)`", text
    ):
        assert (ROOT / path).exists(), f"no {path}"


def test_every_key_of_a_rehearsal_script_is_documented() -> None:
    source = (ROOT / "agents_app" / "rehearsal_program.py").read_text()
    read = set(re.findall(r'script(?:\.get\(|\[)"(\w+)"|"(\w+)" in script', source))
    keys = {one or other for one, other in read}
    told_by_the_office = {"agent", "attempt", "headed"}
    assert first_cells(page("providers.md"), "rehearsal") == keys - told_by_the_office
