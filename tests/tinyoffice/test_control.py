"""What is said when supervisord does not do what it is asked."""

from __future__ import annotations

import xmlrpc.client
from pathlib import Path
from types import SimpleNamespace

import pytest
from supervisor.xmlrpc import Faults

from tinyoffice import control


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(Faults.SHUTDOWN_STATE, "is closing"), (Faults.NO_FILE, "supervisord refused: no")],
)
def test_a_refusal_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, sentence: str
):
    def refuse(*names: str) -> None:
        raise xmlrpc.client.Fault(code, "no")

    supervisor = SimpleNamespace(getAllProcessInfo=refuse, stopProcess=refuse)
    proxy = SimpleNamespace(supervisor=supervisor)
    monkeypatch.setattr(xmlrpc.client, "ServerProxy", lambda *args, **options: proxy)

    with pytest.raises(control.OrderFailed, match=sentence):
        control.kept(tmp_path)
    with pytest.raises(control.OrderFailed, match=sentence):
        control.restart(tmp_path, ["web"])
