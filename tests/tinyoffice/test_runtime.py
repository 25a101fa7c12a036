"""The directory for sockets: private, short, and nobody else's."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyoffice.runtime import LONGEST_SOCKET_PATH, RuntimeUnsafe, runtime_directory


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short directory that XDG_RUNTIME_DIR names."""
    with tempfile.TemporaryDirectory(prefix="x") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)


def test_each_home_has_a_private_directory_of_its_own(base: Path):
    one, other = runtime_directory(Path("/srv/one")), runtime_directory(Path("/srv/other"))

    assert one != other
    assert one == runtime_directory(Path("/srv/one"))
    assert one.parent == base
    assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_a_directory_that_lost_its_privacy_gets_it_back(base: Path):
    directory = runtime_directory(Path("/srv/one"))
    directory.chmod(0o777)

    assert stat.S_IMODE(runtime_directory(Path("/srv/one")).stat().st_mode) == 0o700


def test_a_link_in_its_place_is_refused(base: Path, tmp_path: Path):
    directory = runtime_directory(Path("/srv/one"))
    directory.rmdir()
    directory.symlink_to(tmp_path)

    with pytest.raises(RuntimeUnsafe, match="it is a link or belongs to user"):
        runtime_directory(Path("/srv/one"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_refused(base: Path):
    os.chown(runtime_directory(Path("/srv/one")), 65_534, 65_534)

    with pytest.raises(RuntimeUnsafe, match="belongs to user 65534"):
        runtime_directory(Path("/srv/one"))


def test_a_place_with_a_long_name_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    long = tmp_path / ("deep" * 20)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    directory = runtime_directory(Path("/srv/" + "long" * 100))

    assert directory.parent == Path("/tmp")  # noqa: S108
    assert len(os.fsencode(directory / "12345678-abcd.bell")) <= LONGEST_SOCKET_PATH
    directory.rmdir()
