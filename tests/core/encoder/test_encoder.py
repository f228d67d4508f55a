"""The encoder that ships: its files, and its hidden states against float32 NumPy."""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from safetensors.numpy import load_file

from core.encoder.encoder import LAYERS, SHIPPED, WIDTH, open_encoder, text_vectors
from core.errors import EncoderUnavailableError
from core.system.paths import resources_dir
from tests.core.encoder.texts import shipped_encoder

FOLDER = resources_dir() / "encoder"
_erf = np.vectorize(math.erf, otypes=[np.float32])


def _reference(ids: list[int]) -> np.ndarray:
    """BERT's last hidden states of one row of ids, float32 [ids, 384], from the expanded rows."""
    stored = load_file(FOLDER / "encoder.safetensors")

    def matrix(name: str) -> Any:
        return stored[name].astype(np.float32) * stored[f"{name}.scales"][:, None]

    def linear(name: str, x: Any) -> Any:
        return x @ matrix(name).T + stored[f"{name}.bias"]

    def norm(name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * stored[f"{name}.weight"] + stored[f"{name}.bias"]

    x = norm("norm", matrix("words")[ids] + stored["positions"][: len(ids)])
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        q, k, v = (
            part.reshape(-1, 12, 32).swapaxes(0, 1) for part in np.split(linear(f"{name}.qkv", x), 3, -1)
        )
        scores = q @ k.swapaxes(1, 2) / math.sqrt(32)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(ids), WIDTH)
        x = norm(f"{name}.attended.norm", x + linear(f"{name}.attended", attended))
        up = linear(f"{name}.up", x)
        gelu = up * 0.5 * (1 + _erf(up / math.sqrt(2)))
        x = norm(f"{name}.down.norm", x + linear(f"{name}.down", gelu))
    return np.asarray(x)


def test_states_equal_a_float32_reference_with_and_without_padding() -> None:
    encoder = shipped_encoder()
    long, _ = encoder.pieces("The pilot of berth seven waits for the tide. " * 10)
    short, _ = encoder.pieces("Rain is expected; carry an umbrella (or two)!")
    states = np.array(encoder.states([long[:126], short]))
    for row, ids in zip(states, (long[:126], short)):
        expected = _reference([101, *ids.tolist(), 102])
        found = row[: len(ids) + 2]
        cosines = (
            (found * expected).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)
        )
        assert cosines.min() >= 0.9999
        assert np.abs(found - expected).max() < 1e-3


@pytest.mark.sweep
def test_vectors_of_texts_are_the_normalised_means_of_all_states_of_the_first_256_tokens() -> None:
    encoder = shipped_encoder()
    texts = ["A ferry.", "The pilot of berth seven waits for the tide. " * 60, "x" * 90_000, "Rain?"]
    vectors, tokens, truncated = text_vectors(encoder, texts)
    for text, vector, count in zip(texts, vectors, tokens.tolist()):
        ids = encoder.pieces(text)[0][:254].tolist()
        expected = _reference([101, *ids, 102]).mean(0)
        assert count == len(ids) + 2
        assert vector @ expected / np.linalg.norm(expected) >= 0.9999
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert truncated.tolist() == [False, True, False, False]
    assert tokens[1] == 256


@pytest.mark.sweep
@pytest.mark.parametrize(
    "text", [" " * 9_000 + "tide " * 400, "supercalifragilistic " * 500, "潮" * 5_000, "naïve-ish " * 900]
)
def test_the_beginning_of_a_long_text_has_the_pieces_of_the_whole(text: str) -> None:
    encoder = shipped_encoder()
    states = np.array(encoder.states([encoder.pieces(text)[0][:254]]))[0].mean(0)
    vectors, _, _ = text_vectors(encoder, [text])
    assert vectors[0] @ states / np.linalg.norm(states) >= 0.99999


def test_the_shipped_files_have_the_hashes_that_the_code_expects() -> None:
    for name, expected in SHIPPED.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected
        assert expected in (FOLDER / "README.md").read_text("utf-8")


def test_pieces_have_character_ranges_in_the_text() -> None:
    text = "Größe: naïve 7.5 €\nmax_tokens 😀 終わり"
    ids, ranges = shipped_encoder().pieces(text)
    assert len(ids) == len(ranges) > 10
    pieces = [text[start:end] for start, end in ranges.tolist()]
    assert pieces[0] == "Größe"[: len(pieces[0])]
    assert {"max", "_", "7", "終"} <= set(pieces)


@pytest.mark.parametrize("name", list(SHIPPED))
@pytest.mark.parametrize("damage", ["missing", "changed", "cut"])
def test_missing_and_damaged_files_are_refused(tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(FOLDER, folder)
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "changed":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(EncoderUnavailableError, match=name) as caught:
        open_encoder(folder)
    assert "Install Draftlight again" in caught.value.hint


@pytest.mark.sweep
def test_memory_stays_within_60_mb_after_an_embedding() -> None:
    """Measured in a process of its own, where MLX, which every worker holds, is loaded beforehand."""
    program = """
import gc, os
from pathlib import Path
from core.models.runtime import prepare
prepare()
import mlx.core as mx, numpy as np
mx.eval(mx.random.normal((512, 512)) @ mx.random.normal((512, 512)))

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before = resident()
from core.encoder.store import Embedder
embedder = Embedder()
text = "The harbour pilot waits for the tide, and the ferry waits for the pilot. " * 80
work = embedder.vectors(text, np.array([[i, i + 130] for i in range(0, 5200, 130)], np.int32))
for _ in work:
    pass
embedder.query("Who waits?")
gc.collect()
loaded = resident() - before
embedder.unload()
print(loaded, mx.get_active_memory())
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("resident memory is read from /proc")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, held_after_unloading = map(int, done.stdout.split())
    assert 20e6 < loaded <= 60e6
    assert held_after_unloading < 1e6


def test_weights_stay_quantised() -> None:
    encoder = shipped_encoder()
    before = mx.get_active_memory()
    mx.eval(encoder.states([np.arange(1000, 1100, dtype=np.int32)]))
    assert mx.get_active_memory() - before < 1e6
    assert encoder.nbytes < 23.2e6
