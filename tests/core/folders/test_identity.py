"""The identity of a model folder changes with what its caches depend on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.folders.folder import identity_of
from tests.core.toy import write_toy_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_toy_model(tmp_path / "model")
    return tmp_path / "model"


def test_it_stays_while_nothing_changes(folder: Path) -> None:
    before = identity_of(folder)
    assert len(before) == 64
    (folder / "README.md").write_text("More about it.")
    assert identity_of(folder) == before


def test_it_changes_with_weights_of_the_same_size_and_time(folder: Path) -> None:
    before, weights = identity_of(folder), folder / "model.safetensors"
    stat = weights.stat()
    write_toy_model(folder, seed=1)
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert weights.stat().st_size == stat.st_size
    assert identity_of(folder) != before


def test_it_changes_with_the_time_and_the_config(folder: Path) -> None:
    before = identity_of(folder)
    os.utime(folder / "model.safetensors", ns=(1, 1))
    later = identity_of(folder)
    assert later != before
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("10000.0", "20000.0"))
    assert identity_of(folder) not in (before, later)


def test_a_folder_that_cannot_be_read_has_none(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"short")
    assert identity_of(folder) == ""
    (folder / "model.safetensors").unlink()
    assert identity_of(folder) == identity_of(folder / "missing") == ""
