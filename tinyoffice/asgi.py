"""The web process: requests are served by threads that keep their database connection.

Django's own ASGI handler opens a fresh thread, and so a fresh connection, per request; behind
a2wsgi the same pages cost less than half.
"""

from __future__ import annotations

from a2wsgi import WSGIMiddleware

from tinyoffice.wsgi import application as pages

REQUEST_THREADS = 4

application = WSGIMiddleware(pages, workers=REQUEST_THREADS)  # type: ignore[arg-type]
