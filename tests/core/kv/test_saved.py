"""Saved sequences: what is read equals what was written, on every kind of cache, and nothing else is used."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, QuantizedKVCache, make_prompt_cache
from msgspec.structs import replace
from safetensors import safe_open

from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import KvQuantisation
from core.kv.saved import SavedFile, SavedSequence, Stamp, UnusableFileError, begins_with, stamp_of
from core.machine.profile import finished
from tests.core.architectures import ARCHITECTURES, VOCABULARY, tiny

# Full, sliding, recurrent and chunked caches.
ONE_OF_EACH = ("llama", "gemma3_text", "qwen3_5", "llama4")
IDS = [random.Random(5).randrange(4, VOCABULARY) for _ in range(120)]


class Model:
    """A tiny model with its stamp and sequences."""

    def __init__(self, name: str, dtype: mx.Dtype = mx.float32) -> None:
        self.model: Any = tiny(name)
        self.model.set_dtype(dtype)
        found = stamp_of(self.model, self.new_cache, f"files of {name}")
        assert found is not None
        self.stamp = found

    def new_cache(self) -> list[Any]:
        return list(make_prompt_cache(self.model))

    def feed(self, sequence: CachedSequence, tokens: list[int]) -> mx.array:
        logits: mx.array = self.model(mx.array(tokens)[None], cache=sequence.cache)
        mx.eval(logits)
        sequence.settle()
        sequence.append(tokens)
        return logits

    def sequence(self, *, sparse: bool = False) -> CachedSequence:
        """A prompt in chunks across the wrap of windows, snapshots, and tokens one by one."""
        sequence = CachedSequence(self.new_cache)
        self.feed(sequence, IDS[:30])
        sequence.snapshot()
        if sparse:
            sequence.skip(IDS[30:36])
        self.feed(sequence, IDS[36:60])
        sequence.snapshot()
        for token in IDS[60:71]:
            self.feed(sequence, [token])
        return sequence

    def saved(self, sequence: CachedSequence) -> bytes:
        file = io.BytesIO()
        saving = SavedSequence(sequence, self.new_cache, self.stamp)
        for _ in saving.write(file):
            pass
        assert len(file.getvalue()) == saving.nbytes
        return file.getvalue()

    def read(
        self, content: bytes, path: Path, stamp: Stamp | None = None, length: int | None = None
    ) -> CachedSequence:
        path.write_bytes(content)
        with path.open("rb") as file:
            saved = SavedFile(file, stamp or self.stamp, VOCABULARY)
            return finished(saved.read(self.new_cache, length or len(saved.tokens)))


@cache
def model_of(name: str, dtype: mx.Dtype = mx.float32) -> Model:
    return Model(name, dtype)


def assert_equal(model: Model, one: CachedSequence, other: CachedSequence) -> None:
    """Both hold the same and compute the same bits, for a block, single tokens, and back at a snapshot."""
    assert one.tokens == other.tokens
    assert np.array_equal(one.columns.runs(), other.columns.runs())
    assert (one.columns.count, one.columns.whole) == (other.columns.count, other.columns.whole)
    lengths = [each.length for each in one.snapshots]
    assert lengths == [each.length for each in other.snapshots]
    for tokens in ([1, 2, 3, 4], [5], [6], [7, 8]):
        assert mx.array_equal(model.feed(one, tokens), model.feed(other, tokens)).item()
    for length in [40] if one.keeps_all else reversed(lengths):
        one.truncate(length)
        other.truncate(length)
        for tokens in ([9, 10], [11]):
            assert mx.array_equal(model.feed(one, tokens), model.feed(other, tokens)).item()


@pytest.mark.sweep
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_read_continues_bit_by_bit(name: str, sparse: bool, tmp_path: Path) -> None:
    model = model_of(name)
    sequence = model.sequence(sparse=sparse)
    content = model.saved(sequence)
    # Saving changes nothing: the same bytes again, and the sequence goes on.
    assert model.saved(sequence) == content
    other = model.read(content, tmp_path / "saved")
    assert other.skipped == sequence.skipped == (6 if sparse else 0)
    for length in [50, 60] if sequence.keeps_all else [each.length for each in sequence.snapshots]:
        assert_equal(model, sequence.fork(length), model.read(content, tmp_path / "saved", length=length))
    assert_equal(model, sequence, other)


def test_a_file_says_by_two_reads_with_which_ids_it_begins() -> None:
    model = model_of("llama")
    sequence = model.sequence()
    content, ids = model.saved(sequence), np.array(sequence.tokens, np.int32)

    def begins(content: bytes, tokens: np.ndarray[Any, Any]) -> bool:
        return begins_with(io.BytesIO(content), tokens)

    for count in (1, 40, len(ids)):
        assert begins(content, ids[:count])
        assert not begins(content, ids[:count] + np.arange(1, count + 1, dtype=np.int32)[::-1] // count)
    for cut in (0, 7, 8, len(content) // 100):
        assert not begins(content[:cut], ids[:1])
    for length in (10**9, 2**63):  # of the header, after which no ids are searched
        assert not begins(struct.pack("<Q", length) + content[8:], ids[:1])


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_file_is_reused_as_far_as_its_sequence(name: str, tmp_path: Path) -> None:
    model, rng = model_of(name), random.Random(name)
    sequence = model.sequence(sparse=True)
    path = tmp_path / "saved"
    path.write_bytes(model.saved(sequence))
    with path.open("rb") as file:
        saved = SavedFile(file, model.stamp, VOCABULARY)
        shares = set()
        for length in (0, 29, 30, 31, 59, 60, 70, 71):
            for whole in (False, True):
                prompt = [*sequence.tokens[:length], *(rng.randrange(4, VOCABULARY) for _ in range(3))]
                shares.add(saved.shared_as(None, prompt, whole=whole))
                assert saved.shared_as(None, prompt, whole=whole) == sequence.shared(prompt, whole=whole)
        assert len(shares) > 2
        assert saved.shared_as(KvQuantisation(8, (32,)), sequence.tokens, whole=False) == 0


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "qwen3_5"])
def test_half_precision_keeps_its_bits(name: str, tmp_path: Path) -> None:
    model = model_of(name, mx.bfloat16)
    sequence = model.sequence()
    assert_equal(model, sequence, model.read(model.saved(sequence), tmp_path / "saved"))


def test_quantised_caches(tmp_path: Path) -> None:
    model = Model.__new__(Model)

    def new_cache() -> list[Any]:
        return [QuantizedKVCache(group_size=32, bits=4) for _ in range(2)]

    model.new_cache = new_cache  # type: ignore[method-assign]
    sequence = CachedSequence(new_cache)
    keys = mx.random.normal((1, 2, 40, 64))
    for entry in sequence.cache:
        entry.update_and_fetch(keys, -keys)  # type: ignore[attr-defined]
    sequence.append(IDS[:40])
    stamp = Stamp("x", "", "", "CPU", _layout_of(sequence))
    file = io.BytesIO()
    for _ in SavedSequence(sequence, new_cache, stamp).write(file):
        pass
    other = model.read(file.getvalue(), tmp_path / "saved", stamp)
    for mine, yours in zip(sequence.cache, other.cache):
        for one, two in zip((mine.keys, mine.values), (yours.keys, yours.values)):  # type: ignore[attr-defined]
            assert all(mx.array_equal(a[..., :40, :], b).item() for a, b in zip(one, two))
        again = (each.update_and_fetch(keys, keys) for each in (mine, yours))  # type: ignore[attr-defined]
        (one, _), (two, _) = again
        assert all(mx.array_equal(a, b).item() for a, b in zip(one, two))


def _layout_of(sequence: CachedSequence) -> Any:
    from core.kv import saved

    layout = saved._layout(sequence.cache)
    assert layout is not None
    return layout


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    model = model_of("llama")
    path = tmp_path / "saved.safetensors"
    path.write_bytes(model.saved(model.sequence()))
    with safe_open(path, "np") as file:
        assert file.get_tensor("tokens").tolist() == model.sequence().tokens
        assert file.get_tensor("0.0").shape == (1, 2, 65, 8)


def test_another_model_version_or_layout_is_not_used(tmp_path: Path) -> None:
    model = model_of("gemma3_text")
    content = model.saved(model.sequence())
    stamp = model.stamp
    wider = replace(stamp.layout[0], fixed=(32, 0))
    for other in (
        replace(stamp, model="updated"),
        replace(stamp, mlx="0.0.1"),
        replace(stamp, mlx_lm="0.0.1"),
        replace(stamp, device="GPU"),
        replace(stamp, layout=(wider, *stamp.layout[1:])),
        model_of("llama").stamp,
    ):
        with pytest.raises(UnusableFileError):
            model.read(content, tmp_path / "saved", other)
    model.read(content, tmp_path / "saved")


def test_ids_outside_the_vocabulary_are_not_used(tmp_path: Path) -> None:
    model = model_of("llama")
    sequence = model.sequence()
    sequence.tokens[3] = VOCABULARY
    with pytest.raises(UnusableFileError, match="token ids"):
        model.read(model.saved(sequence), tmp_path / "saved")


def test_a_sequence_that_contradicts_its_cache_is_not_saved() -> None:
    model = model_of("qwen3_5")
    sequence = model.sequence()
    sequence.tokens.append(5)
    with pytest.raises(ValueError, match="positions"):
        model.saved(sequence)
    with pytest.raises(ValueError, match="layout"):
        model.saved(CachedSequence(model.new_cache))
    llama = model_of("llama")
    sequence = llama.sequence()
    entry: Any = sequence.cache[0]
    assert type(entry) is KVCache
    entry.offset -= 1
    with pytest.raises(ValueError, match="KVCache"):
        llama.saved(sequence)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    rng = random.Random(1)
    for name in ONE_OF_EACH:
        model = model_of(name)
        content = model.saved(model.sequence(sparse=True))
        end = 8 + struct.unpack("<Q", content[:8])[0]
        places = [*rng.sample(range(end), 15), *rng.sample(range(end, len(content)), 15), len(content) - 1]
        for at in places:
            bad = bytearray(content)
            bad[at] ^= 1 << rng.randrange(8)
            with pytest.raises(UnusableFileError):
                model.read(bytes(bad), tmp_path / "saved")
        for length in (0, 7, 8, end - 1, end, len(content) - 1, rng.randrange(len(content))):
            with pytest.raises(UnusableFileError):
                model.read(content[:length], tmp_path / "saved")
        with pytest.raises(UnusableFileError):
            model.read(content + b"\0", tmp_path / "saved")


def _with_header(content: bytes, change: Any) -> bytes:
    """`content` with a changed JSON header, whose checksum is right."""
    length = struct.unpack("<Q", content[:8])[0]
    sums = len(content) - 32 * (3 + content.count(b'"dtype":"F32"'))
    header = json.loads(content[8 : 8 + length])
    notes = json.loads(header["__metadata__"]["draftlight"])
    change(header, notes)
    header["__metadata__"]["draftlight"] = json.dumps(notes, separators=(",", ":"))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    start = struct.pack("<Q", len(text)) + text
    digest = hashlib.sha256(start).digest()
    return start + content[8 + length : sums] + digest + content[sums + 32 :]


HOSTILE: dict[str, Any] = {
    "a missing tensor": lambda header, notes: header.pop("1.0"),
    "another tensor": lambda header, notes: header.update(x=header["1.0"]),
    "another dtype": lambda header, notes: header["0.0"].update(dtype="I32"),
    "another shape": lambda header, notes: header["0.0"].update(shape=[1, 2, 8, 65]),
    "an offset into the header": lambda header, notes: header["0.0"].update(data_offsets=[-8, 8]),
    "huge tensors": lambda header, notes: header["0.0"].update(shape=[1, 2, 1 << 60, 8]),
    "huge counts": lambda header, notes: notes.update(tokens=1 << 62),
    "negative counts": lambda header, notes: notes.update(columns=-1),
    "other counts": lambda header, notes: notes.update(tokens=notes["tokens"] - 1),
    "no entries": lambda header, notes: notes.update(entries=[]),
    "too many snapshots": lambda header, notes: notes.update(snapshots=[[1, []]] * 100000),
    "a later format": lambda header, notes: notes.update(format=4),
    "an unknown field": lambda header, notes: notes.update(more=1),
    "a text for a number": lambda header, notes: notes.update(tokens="71"),
    "nothing": lambda header, notes: (header.clear(), header.update(__metadata__={})),
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_headers(what: str, tmp_path: Path) -> None:
    model = model_of("llama")
    content = model.saved(model.sequence())
    assert _with_header(content, lambda header, notes: None) == content
    with pytest.raises(UnusableFileError):
        model.read(_with_header(content, HOSTILE[what]), tmp_path / "saved")


@pytest.mark.parametrize(
    "text", [b"{" * 50_000, b"[]", b"\xff" * 64, b'{"__metadata__":{"draftlight":"{}"}}']
)
def test_headers_that_are_none(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError):
        model_of("llama").read(struct.pack("<Q", len(text)) + text + b"\0" * 64, tmp_path / "saved")
