"""Checksums of the two downloads: written once, never changed, and never guessed."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from bundle.supplies.runtime import TOML, DownloadsError, pin, unpinned

BARE = '[paths]\nsupport_revision = 8\nstub_binary_revision = 13\nicon = "a.icns"\n'


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "briefcase.toml"
    path.write_text(BARE)
    return path


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    folder = tmp_path / "downloads"
    for name, content in (("support/Python-3.11.tar.gz", b"cpython"), ("stub/GUI-Stub.zip", b"launcher")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(content)
    return folder


def test_the_first_build_writes_what_it_got_and_the_next_nothing(toml: Path, downloads: Path) -> None:
    assert unpinned(toml) == ["support_package_hash", "stub_binary_hash"]
    assert len(pin(downloads, toml)) == 2
    paths = tomllib.loads(toml.read_text())["paths"]
    assert paths["support_package_hash"] == f"sha256:{hashlib.sha256(b'cpython').hexdigest()}"
    assert paths["stub_binary_hash"] == f"sha256:{hashlib.sha256(b'launcher').hexdigest()}"
    assert (paths["support_revision"], paths["stub_binary_revision"]) == (8, 13)
    before = toml.read_text()
    (downloads / "stub" / "GUI-Stub.zip").write_bytes(b"another")
    assert pin(downloads, toml) == []
    assert toml.read_text() == before


def test_what_is_not_there_or_not_alone_is_not_guessed(toml: Path, downloads: Path) -> None:
    (downloads / "stub" / "GUI-Stub-old.zip").write_bytes(b"older")
    with pytest.raises(DownloadsError, match="one file"):
        pin(downloads, toml)
    assert unpinned(toml) == ["stub_binary_hash"]
    with pytest.raises(DownloadsError, match="nothing"):
        pin(downloads / "empty", toml)


def test_the_template_has_one_place_for_each() -> None:
    text = TOML.read_text("utf-8")
    assert text.count("support_revision = ") == text.count("stub_binary_revision = ") == 1
