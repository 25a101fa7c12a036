"""Django's settings, made from the start-up values of tinyoffice.conf."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tinyoffice import conf, sqlite_library, storage

BASE_DIR = Path(__file__).resolve().parent.parent
TINYOFFICE = conf.load(os.environ)

if TINYOFFICE.postgres is None:
    storage.refuse_foreign(TINYOFFICE.database_file)
storage.prepare_home(TINYOFFICE.home)
SECRET_KEY = storage.secret(TINYOFFICE.home / "secret_key")
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", TINYOFFICE.web.host]
CSRF_TRUSTED_ORIGINS: list[str] = []
if TINYOFFICE.web.public_url:
    ALLOWED_HOSTS.append(str(urlsplit(TINYOFFICE.web.public_url).hostname))
    CSRF_TRUSTED_ORIGINS.append(TINYOFFICE.web.public_url)

INSTALLED_APPS = [
    "tinyoffice",
    "queue_app",
    "agents_app",
    "channels_app",
    "django_q",
    "rest_framework",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "tinyoffice.headers.strict_headers",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "tinyoffice.urls"
WSGI_APPLICATION = "tinyoffice.wsgi.application"
ASGI_APPLICATION = "tinyoffice.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

SQLITE_PRAGMAS = (
    f"PRAGMA journal_mode={'WAL' if sqlite_library.wal_is_safe() else 'DELETE'};"
    "PRAGMA synchronous=FULL;"
    "PRAGMA journal_size_limit=67108864;"
    "PRAGMA temp_store=MEMORY;" + ("PRAGMA fullfsync=1;" if sys.platform == "darwin" else "")
)


def _database() -> dict[str, Any]:
    # The tests' database has the name of the real one, so that child processes of a test find it.
    if (postgres := TINYOFFICE.postgres) is not None:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": postgres.name,
            "USER": postgres.user,
            "PASSWORD": postgres.password,
            "HOST": postgres.host,
            "PORT": postgres.port,
            "CONN_MAX_AGE": None,
            "TEST": {"NAME": postgres.name},
        }
    return {
        "ENGINE": "tinyoffice.sqlite",
        "NAME": TINYOFFICE.database_file,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": SQLITE_PRAGMAS,
        },
        "TEST": {"NAME": TINYOFFICE.database_file},
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

Q_CLUSTER = {
    "name": "tinyoffice",
    "orm": "default",
    "workers": 1,
    "poll": 1,
    "timeout": 60,
    "retry": 120,
    "catch_up": False,
    "max_attempts": 3,
    "save_limit": 250,
    "ack_failures": True,
    "label": "Clock",
}

AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/admin/login/"
SESSION_COOKIE_NAME = f"tinyoffice_{TINYOFFICE.web.port}"
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = TINYOFFICE.web.behind_tls
CSRF_COOKIE_NAME = f"tinyoffice_csrf_{TINYOFFICE.web.port}"
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_SECURE = TINYOFFICE.web.behind_tls
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "tinyoffice.logs.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.server": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "daphne": {"level": "WARNING"},
        # A request for a foreign host is refused; a traceback for each would fill the disk.
        "django.security.DisallowedHost": {"handlers": [], "propagate": False},
        "django-q": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}
