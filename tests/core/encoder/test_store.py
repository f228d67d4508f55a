"""Vectors on the disk, and the Embedder that uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from core.encoder.encoder import TextVectors
from core.encoder.store import Embedder, VectorStore, text_key
from core.errors import EncoderUnavailableError
from core.machine.profile import finished
from tests.core.encoder.texts import SENTENCES, passages_of, shipped_encoder

TEXT, PASSAGES = passages_of(SENTENCES)


def _vectors(seed: int = 0, count: int = len(PASSAGES)) -> TextVectors:
    means = np.random.default_rng(seed).normal(size=(count, 384)).astype(np.float16)
    return TextVectors(means, np.full(count, 30, np.int32), 0.25, 1.5)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_written_vectors_are_read_again_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors")
    assert store.read(TEXT, PASSAGES) is None
    store.write(TEXT, PASSAGES, _vectors())
    found = store.read(TEXT, PASSAGES)
    assert found is not None
    assert (found.means == _vectors().means).all()
    assert (found.counts.tolist(), found.unknown, found.pieces_per_word) == ([30] * 6, 0.25, 1.5)
    (path,) = _files(tmp_path / "vectors")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "cat" not in path.name


def test_other_text_and_other_passages_have_other_vectors(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.write(TEXT, PASSAGES, _vectors())
    assert store.read(TEXT + " ", PASSAGES) is None
    assert store.read(TEXT, PASSAGES + 1) is None


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_files_are_ignored_and_removed(tmp_path: Path, damage: bytes | None) -> None:
    store = VectorStore(tmp_path)
    store.write(TEXT, PASSAGES, _vectors())
    (path,) = _files(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"\x01" + content[-8:] if damage is None else damage)
    assert store.read(TEXT, PASSAGES) is None
    assert not _files(tmp_path)


def test_the_least_recently_used_file_goes_where_the_limit_is_passed(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, limit_bytes=16_000)
    for number in range(3):
        store.write(f"text {number}", PASSAGES, _vectors(number))
        for age, path in enumerate(sorted(_files(tmp_path), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(path, ns=(age, age))
    assert store.read("text 0", PASSAGES) is not None  # used now
    store.write("text 3", PASSAGES, _vectors(3))
    held = [number for number in range(4) if store.read(f"text {number}", PASSAGES) is not None]
    assert held == [0, 2, 3]
    with pytest.raises(OSError, match="larger"):
        store.write("large", PASSAGES, _vectors(count=100))
    assert store.read("large", PASSAGES) is None


def test_erasing_a_text_leaves_the_others(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    for text, passages in ((TEXT, PASSAGES), (TEXT, PASSAGES[1:]), ("other", PASSAGES)):
        store.write(text, passages, _vectors(count=len(passages)))
    store.erase(text_key(TEXT))
    assert len(_files(tmp_path)) == 1
    assert store.read("other", PASSAGES) is not None
    store.erase_all()
    assert not _files(tmp_path)


def test_a_second_embedding_is_read_from_the_disk(tmp_path: Path) -> None:
    opener = Mock(side_effect=shipped_encoder)
    first = finished(Embedder(VectorStore(tmp_path), opener).vectors(TEXT, PASSAGES))
    second = finished(Embedder(VectorStore(tmp_path), opener).vectors(TEXT, PASSAGES))
    assert opener.call_count == 1
    assert (first.means == second.means).all()


def test_an_abandoned_embedding_goes_on_where_it_stopped(tmp_path: Path) -> None:
    text, passages = passages_of(SENTENCES * 24)
    embedder = Embedder(VectorStore(tmp_path), shipped_encoder)
    work = embedder.vectors(text, passages)
    done = 0
    while done == 0:
        done = next(work)
    work.close()
    assert not _files(tmp_path)
    again = embedder.vectors(text, passages)
    assert next(again) > done
    again.close()
    embedder.erase(text_key(text))
    assert next(embedder.vectors(text, passages)) == 0


def test_a_failure_is_remembered_and_typed(tmp_path: Path) -> None:
    opener = Mock(side_effect=EncoderUnavailableError("The sentence encoder is damaged."))
    embedder = Embedder(VectorStore(tmp_path), opener)
    for _ in range(2):
        with pytest.raises(EncoderUnavailableError):
            finished(embedder.vectors(TEXT, PASSAGES))
        with pytest.raises(EncoderUnavailableError):
            embedder.query("Who?")
    assert opener.call_count == 1


def test_a_full_disk_costs_no_vectors(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    embedder = Embedder(VectorStore(tmp_path / "file"), shipped_encoder)
    assert finished(embedder.vectors(TEXT, PASSAGES)).counts.sum() > 0
    assert "cannot be kept" in embedder.failure


def test_the_first_use_after_unloading_opens_the_encoder(tmp_path: Path) -> None:
    opener = Mock(side_effect=shipped_encoder)
    embedder = Embedder(VectorStore(tmp_path), opener)
    embedder.query("Who waits?")
    embedder.unload()
    assert embedder.query("Who waits?").shape == (384,)
    assert opener.call_count == 2


def test_an_unused_embedder_loads_nothing() -> None:
    program = (
        "import sys; from core.encoder.store import Embedder; Embedder();"
        "names = 'mlx.core', 'tokenizers', 'core.encoder.encoder', 'core.encoder.encoder';"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
