"""The login page: a link alone does nothing, its button works once, and the policy is strict."""

from __future__ import annotations

import logging
import re
import sys

import pytest
from django.test import Client

from queue_app import clock
from tinyoffice import credentials, founding
from tinyoffice.headers import POLICY
from tinyoffice.logs import LineFormatter

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    """A browser that is asked for its CSRF token."""
    return Client(enforce_csrf_checks=True, headers={"host": "127.0.0.1"})


def press(browser: Client, token: str, page: str):
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found, page
    return browser.post(f"/login/{token}", {"csrfmiddlewaretoken": found.group(1)})


def test_looking_at_a_link_does_not_spend_it(browser: Client):
    token = credentials.make_login()

    for _ in range(3):
        page = browser.get(f"/login/{token}")
        assert page.status_code == 200
    assert browser.head(f"/login/{token}").status_code == 200

    assert credentials.opens(token)
    assert "no-store" in page.headers["Cache-Control"]
    assert browser.get("/admin/").status_code == 302


def test_the_button_logs_the_owner_in_once(browser: Client):
    token = credentials.make_login()
    other = Client(enforce_csrf_checks=True)
    page, others_page = browser.get(f"/login/{token}").text, other.get(f"/login/{token}").text

    entered = press(browser, token, page)
    refused = press(other, token, others_page)

    assert (entered.status_code, entered.headers["Location"]) == (302, "/admin/")
    assert browser.get("/admin/").status_code == 200
    assert browser.session["_auth_user_id"] == str(founding.ensure_owner().pk)
    assert refused.status_code == 410
    assert other.get("/admin/").status_code == 302


def test_the_spent_link_leads_on_where_the_owner_is_logged_in(browser: Client):
    token = credentials.make_login()
    press(browser, token, browser.get(f"/login/{token}").text)

    again = browser.get(f"/login/{token}")

    assert (again.status_code, again.headers["Location"]) == (302, "/admin/")


def test_a_post_without_the_pages_token_is_refused_and_spends_nothing(browser: Client):
    token = credentials.make_login()

    refused = browser.post(f"/login/{token}")

    assert refused.status_code == 403
    assert credentials.opens(token)


def test_a_foreign_page_cannot_press_the_button(browser: Client):
    token = credentials.make_login()
    page = browser.get(f"/login/{token}").text
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found

    refused = browser.post(
        f"/login/{token}",
        {"csrfmiddlewaretoken": found.group(1)},
        headers={"origin": "http://evil.example"},
    )

    assert refused.status_code == 403
    assert credentials.opens(token)


@pytest.mark.parametrize("token", ["nothing", "toff_12345678_" + "0" * 48])
def test_a_link_that_is_not_good_says_what_to_do(browser: Client, token: str):
    page = browser.get(f"/login/{token}")

    assert page.status_code == 410
    assert "manage.py login_link" in page.text
    assert "<form" not in page.text


def test_a_stale_link_says_what_to_do(browser: Client):
    token = credentials.make_login(clock.now() - credentials.LOGIN_LIFETIME)

    page = browser.get(f"/login/{token}")

    assert page.status_code == 410
    assert "older than ten minutes" in page.text


def test_the_front_door_leads_to_the_admin(browser: Client):
    assert browser.get("/").headers["Location"] == "/admin/"


def test_a_refused_press_does_not_put_the_link_in_the_log(
    browser: Client, caplog: pytest.LogCaptureFixture
):
    token = credentials.make_login()
    browser.post(f"/login/{token}")
    browser.get("/login/" + token[:-1])

    assert len(caplog.records) == 2
    lines = [LineFormatter().format(record) for record in caplog.records]
    assert not any(token[:-1] in line for line in lines)
    assert all("/login/toff" in line for line in lines)


def test_a_traceback_in_the_log_is_masked_too():
    token = credentials.draw()
    try:
        raise ValueError(token)
    except ValueError:
        record = logging.LogRecord(
            "x", logging.ERROR, "x.py", 1, "failed %s", (token,), sys.exc_info()
        )

    line = LineFormatter().format(record)

    assert "ValueError: toff" in line
    assert token not in line


def test_every_page_has_a_strict_policy_and_needs_nothing_inline(browser: Client):
    token = credentials.make_login()
    page = browser.get(f"/login/{token}")
    press(browser, token, page.text)
    pages = [page, *(browser.get(path) for path in ADMIN_PAGES)]

    for shown in pages:
        assert shown.status_code == 200, shown.request["PATH_INFO"]
        assert shown.headers["Content-Security-Policy"] == POLICY
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", shown.text)
        for script in re.findall(r"<script[^>]*>", shown.text):
            assert "src=" in script, f"inline script: {script}"


ADMIN_PAGES = (
    "/admin/",
    "/admin/auth/user/",
    "/admin/auth/user/1/change/",
    "/admin/auth/user/add/",
    "/admin/django_q/schedule/",
    "/admin/django_q/schedule/add/",
    "/admin/password_change/",
)
