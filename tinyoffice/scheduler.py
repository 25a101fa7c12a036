"""The scheduler process: django-q2's cluster, with a pulse."""

from __future__ import annotations

import sys

from django.db import connections
from django_q.cluster import Cluster

from queue_app import holders
from queue_app.pulse import Pulse
from tinyoffice import parent
from tinyoffice.conf import Conf


def run(conf: Conf) -> None:
    """Run what is due until stopped; exit non-zero if the cluster died."""
    parent.end_with_parent(grace=70.0, forks_too=True)
    # The cluster forks: no database connection and no lock of ours may be handed to its processes.
    connections.close_all()
    cluster = Cluster()
    cluster.start()
    pulse = Pulse(holders.become("scheduler", conf.home))
    pulse.start()
    cluster.sentinel.join()
    pulse.stop()
    if status := cluster.sentinel.exitcode:
        sys.exit(f"tinyoffice: the scheduler's cluster ended with status {status}.")
