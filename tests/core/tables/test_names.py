"""A family's name comes over the wire, and files are called by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import DownloadError, TableError
from core.folders.download import discard
from core.tables.files import TableFolder, TableKey


@pytest.mark.parametrize("family", ["", "a\0b", "../outside", "/etc", "A" * 64, "f" * 65, "\ud83d"])
def test_what_is_no_fingerprint_names_no_file(tmp_path: Path, family: str) -> None:
    folder = TableFolder(tmp_path / "tables")
    with (
        pytest.raises(TableError, match="is not the fingerprint of a tokenizer family"),
        folder.hold_lock(family),
    ):
        pass
    assert folder.read(TableKey(family, 3, 64))[0] is None
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("model", ["", "a\0b/c", "../outside", "/etc/x"])
def test_what_is_no_model_of_a_hub_is_not_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    with pytest.raises(DownloadError, match="is not a hub name"):
        discard(model)
    assert list(tmp_path.iterdir()) == []
