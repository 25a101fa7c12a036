"""The web process: daphne, which serves tinyoffice.asgi on the configured address."""

from __future__ import annotations

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server

from queue_app import holders
from queue_app.pulse import Pulse
from tinyoffice import parent
from tinyoffice.asgi import application
from tinyoffice.conf import Conf
from tinyoffice.office import CannotStart


def serve(conf: Conf) -> None:
    """Serve until stopped; raise CannotStart if the address cannot be listened on."""
    parent.end_with_parent(grace=10.0)
    # No access log: paths of login links are secrets.
    server = Server(
        application,
        endpoints=build_endpoint_description_strings(host=conf.web.host, port=conf.web.port),
        server_name="tinyoffice",
    )
    pulse = Pulse(holders.become("web", conf.home))
    pulse.start()
    try:
        server.run()
    finally:
        pulse.stop()
    if not server.listening_addresses:
        raise CannotStart(
            f"The web server could not listen on {conf.web.host} port {conf.web.port}. "
            "End the program that does, or choose another port with TINYAGI_API_PORT."
        )
