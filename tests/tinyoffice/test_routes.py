"""What a stranger gets: health, the login pages and static files, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern

from tinyoffice import credentials

pytestmark = pytest.mark.django_db

OPEN = {"/api/health", "/admin/login/"}
REFUSED = {400, 401, 403, 404, 405, 410}


def paths(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    for entry in resolver.url_patterns:
        part = _sample(entry)
        if isinstance(entry, URLResolver):
            yield from paths(entry, prefix + part)
        else:
            yield prefix + part


def _sample(entry: URLPattern | URLResolver) -> str:
    if isinstance(entry.pattern, RegexPattern):
        return next(sample for start, sample in REGEXES if entry.pattern._regex.startswith(start))
    return re.sub(r"<(?:\w+:)?\w+>", "1", str(entry.pattern))


# A regular expression among the routes that is not here is to be looked at by whoever adds it.
REGEXES = (
    ("^api(?:/.*)?$", "api/anything/at/all"),
    ("^(?P<app_label>", "auth/"),
    ("(?P<url>.*)$", "anything"),
)


def test_a_stranger_gets_nothing_but_health_login_and_static():
    stranger = Client(enforce_csrf_checks=True)
    walked = sorted(set(paths(get_resolver())))
    assert len(walked) > 20

    for path in walked:
        for method in ("get", "head", "post", "put", "patch", "delete", "options"):
            answer = getattr(stranger, method)(path)
            if path in OPEN and answer.status_code == 200:
                continue
            assert answer.status_code in REFUSED or _leads_to_login(answer), (
                f"{method} {path} answered {answer.status_code}"
            )


def _leads_to_login(answer) -> bool:
    target = answer.headers.get("Location", "")
    return answer.status_code in (301, 302) and (
        target.startswith("/admin/login/") or target == "/admin/"
    )


@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/nothing", "/api/health/x", "/api/queue/status"]
)
@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_the_api_refuses_strangers_as_json(method: str, path: str):
    answer = getattr(Client(enforce_csrf_checks=True), method)(path)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthorized"
    assert "manage.py login_link" in answer.json()["error"]


@pytest.mark.parametrize("scope", ["owner", "operator", "viewer"])
def test_an_unknown_path_is_told_to_those_who_may_ask(scope: str):
    token = credentials.make("x", scope)

    answer = Client().get("/api/nothing", headers={"authorization": f"Bearer {token}"})

    assert answer.status_code == 404
    assert answer.json() == {
        "error": "There is nothing at '/api/nothing'. "
        "Look for the path in the documentation of the API.",
        "code": "unknown_path",
    }


def test_health_says_ok_and_nothing_else():
    seen = Client().get("/api/health")

    assert seen.content == b'{"ok":true}'
    assert seen.headers["Content-Type"] == "application/json"
    assert Client().head("/api/health").status_code == 200
    assert Client(enforce_csrf_checks=True).post("/api/health").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"]
)
def test_a_foreign_host_name_is_refused(host: str):
    for path in ("/api/health", "/admin/", "/login/x"):
        assert Client().get(path, headers={"host": host}).status_code == 400


def test_static_files_are_served():
    with closing(Client().get("/static/css/login.css")) as served:
        assert served.status_code == 200
        assert b"color-scheme" in b"".join(served.streaming_content)

    assert Client().get("/static/../tinyoffice/settings.py").status_code == 404
    assert Client().get("/static/%2e%2e/tinyoffice/settings.py").status_code == 404
