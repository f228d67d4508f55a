"""Saved sequences: a `CachedSequence` as one safetensors file, and back.

A file holds the token ids, the positions of the columns, the arrays of every cache entry and of every
snapshot, the head's rows of the same tokens, and last the SHA-256 of the header and of each tensor.
Arrays of appending entries are written without their spare columns. The header's metadata names what the
arrays depend on (`Stamp`) and every number that is not an array.

A file is used only if it equals, byte for byte, the file that this version would write: the header is
rebuilt from the metadata and compared, which covers names, dtypes, shapes, offsets and the file's size, and
every tensor is compared with its SHA-256 before it is used. Anything else raises `UnusableFileError`; nothing
is guessed. Tensors are read by ordinary reads instead of MLX's lazy loading, because a read that fails there
later ends the process or leaves the array undefined.

Writing and reading are generators that yield after each tensor, so that a question waits for one at most.
Worker's main thread.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import Any, BinaryIO

import mlx.core as mx
import msgspec
import numpy as np
from mlx_lm.models.cache import ArraysCache, ChunkedKVCache, KVCache, QuantizedKVCache, RotatingKVCache
from msgspec import Struct
from msgspec.structs import replace

from core.events import FIRST_IMAGE_ROW
from core.kv.cached_sequence import CachedSequence, reusable
from core.kv.mlx_lm_caches import (
    Cache,
    KvQuantisation,
    LanguageModel,
    Snapshot,
    group_size,
    is_appending,
    leaves,
    parts,
    quantise,
    restore,
    take_snapshot,
)
from core.kv.positions import Columns
from core.system.prepared import prepared

# Changes with the meaning of the content; files of other formats are not used.
_FORMAT = 3
_METADATA = "draftlight"
_LONGEST_HEADER_BYTES = 16 << 20
_MOST_SNAPSHOTS = 64
_DIGEST_BYTES = 32
_BITS = (8, 4)
# Dtypes by their names in safetensors: MLX's, and numpy's for the same bytes.
_DTYPES: dict[str, tuple[mx.Dtype, type[np.generic]]] = {
    "F32": (mx.float32, np.float32),
    "F16": (mx.float16, np.float16),
    "BF16": (mx.bfloat16, np.uint16),
    "U32": (mx.uint32, np.uint32),
    "I32": (mx.int32, np.int32),
    "U8": (mx.uint8, np.uint8),
}
_NAMES = {dtype: name for name, (dtype, _) in _DTYPES.items()}
# The numbers of each kind of entry that change, and those that a model fixes.
_NUMBERS: dict[type, tuple[str, ...]] = {
    KVCache: ("offset",),
    QuantizedKVCache: ("offset",),
    RotatingKVCache: ("offset", "_idx"),
    ChunkedKVCache: ("offset", "start_position"),
    ArraysCache: (),
}
_FIXED: dict[type, tuple[str, ...]] = {
    QuantizedKVCache: ("group_size", "bits"),
    RotatingKVCache: ("max_size", "keep"),
    ChunkedKVCache: ("chunk_size",),
}


class UnusableFileError(Exception):
    """The file is damaged, or belongs to another model, version or machine."""


class Shape(Struct, frozen=True, array_like=True):
    """An array of an entry: its dtype in safetensors, and its shape with −1 for the columns."""

    dtype: str
    sizes: tuple[int, ...]


class Layout(Struct, frozen=True, array_like=True):
    """An entry's class, fixed numbers and arrays."""

    kind: str
    fixed: tuple[int, ...]
    arrays: tuple[Shape, ...]


class Stamp(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything besides the tokens on which a cache depends. `model`: identity of the model's files.

    `bits`: how the cache is quantised (`KvQuantisation`); 0 if it is not.
    """

    model: str
    mlx: str
    mlx_lm: str
    device: str
    layout: tuple[Layout, ...]
    bits: int = 0

    def kv(self, bits: int) -> KvQuantisation | None:
        """How a cache of this layout, which is not quantised, is quantised; None if that is impossible."""
        groups = tuple(_group_of(each) for each in self.layout)
        return KvQuantisation(bits, groups) if bits in _BITS and any(groups) else None

    def quantised(self, kv: KvQuantisation) -> Stamp:
        pairs = zip(self.layout, kv.groups, strict=True)
        layout = tuple(_quantised(each, kv.bits, group) for each, group in pairs)
        return replace(self, layout=layout, bits=kv.bits)


class _Entry(Struct, frozen=True, array_like=True):
    """An entry's changing numbers, and the number of columns of its arrays (0 without columns)."""

    numbers: tuple[int, ...]
    columns: int


class _Held(Struct, frozen=True, array_like=True):
    """A snapshot: its length and the entries that cannot be trimmed."""

    length: int
    entries: tuple[_Entry, ...]


class _Head(Struct, frozen=True, array_like=True):
    """`CachedSequence.head` and the hidden states for it.

    `known` are the positions of the sequence's state and of those of its snapshots; −1: it has none. `layout`
    is empty for a head without a cache.
    """

    source: str
    layout: tuple[Layout, ...]
    tokens: int
    columns: int
    runs: int
    entries: tuple[_Entry, ...]
    state: Shape
    known: tuple[int, ...]


class _Header(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    stamp: Stamp
    tokens: int
    columns: int
    runs: int
    entries: tuple[_Entry, ...]
    snapshots: tuple[_Held, ...]
    head: _Head | None = None


class _Tensor(Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * int(_DTYPES[self.dtype][0].size)


def stamp_of(model: LanguageModel, new_cache: Callable[[], Cache], identity: str) -> Stamp | None:
    """The stamp of `model`, whose files have this `identity`; None if its caches cannot be saved.

    The layout is that of a cache after a forward pass of two tokens.
    """
    cache = new_cache()
    if any(type(entry) not in _NUMBERS for entry in leaves(cache)):
        return None
    mx.eval(model(mx.array([[1, 2]]), cache=cache))
    layout = _layout(cache)
    if layout is None:
        return None
    device = "GPU" if mx.default_device() == mx.gpu else "CPU"
    version = importlib.metadata.version
    return Stamp(identity, version("mlx"), version("mlx-lm"), device, layout)


class SavedSequence:
    """The content of the file for `sequence`, which must not change until the last byte is written.

    `stamp` is that of the model. Raises `ValueError` if the sequence cannot be saved under `stamp`.
    """

    def __init__(self, sequence: CachedSequence, new_cache: Callable[[], Cache], stamp: Stamp) -> None:
        if sequence.kv is not None:
            stamp = stamp.quantised(sequence.kv)
        if sequence.is_mirrored or not sequence.tokens or _layout(sequence.cache) != stamp.layout:
            raise ValueError("The cache has another layout than the model's.")
        runs = sequence.columns.runs()
        snapshots = [each for each in sequence.snapshots if each.length <= len(sequence.tokens)]
        snapshots = [] if sequence.keeps_all else snapshots[-_MOST_SNAPSHOTS:]
        caches: list[tuple[Cache, bool]] = [(sequence.cache, False)]
        for each in snapshots:
            restored = new_cache()
            restore(restored, each)
            caches.append((restored, True))
        entries = [_entries(cache, held) for cache, held in caches]
        head, of_head = _head_of(sequence, snapshots)
        self._header = _Header(
            _FORMAT,
            stamp,
            len(sequence.tokens),
            sequence.columns.count,
            runs.shape[1],
            entries[0],
            tuple(_Held(each.length, held) for each, held in zip(snapshots, entries[1:])),
            head,
        )
        self._arrays = [mx.array(np.asarray(sequence.tokens, np.int32)), mx.array(runs)]
        for (cache, held), known in zip(caches, entries):
            chosen = [entry for entry in leaves(cache) if not (held and is_appending(entry))]
            for entry, numbers in zip(chosen, known, strict=True):
                self._arrays += _arrays(entry, numbers.columns)
        self._arrays += of_head
        self._start = _start(self._header)
        expected = [(each.dtype, each.shape) for each in _tensors(self._header)[:-1]]
        if [(_NAMES.get(each.dtype, ""), each.shape) for each in self._arrays] != expected:
            raise ValueError("The cache's arrays are not those that its layout names.")
        _check(self._header, sequence.columns)

    @property
    def nbytes(self) -> int:
        return _size(self._header, self._start)

    def write(self, file: BinaryIO) -> Iterator[None]:
        """Writes the file; yields after each tensor. Raises `OSError`."""
        file.write(self._start)
        sums = [hashlib.sha256(self._start).digest()]
        for array in self._arrays:
            content = _bytes(array)
            sums.append(hashlib.sha256(content).digest())
            file.write(content)
            del content
            yield
        file.write(b"".join(sums))


def begins_with(file: BinaryIO, tokens: np.ndarray[Any, Any]) -> bool:
    """Whether the saved token ids seem to begin with `tokens`, int32; two short reads that verify nothing.

    `file` is at its beginning. Raises `OSError`.
    """
    first = file.read(8)
    length = struct.unpack("<Q", first)[0] if len(first) == 8 else _LONGEST_HEADER_BYTES + 1
    if length > _LONGEST_HEADER_BYTES:
        return False
    file.seek(length, os.SEEK_CUR)  # the ids are the first tensor
    return file.read(tokens.nbytes) == tokens.tobytes()


class SavedFile:
    """An open file with its tokens and positions; `read` gives the sequence.

    `stamp` is that of the model; `kv`: how the saved cache is quantised, None if it is not. Raises
    `UnusableFileError` and `OSError`. Does not close `file`.
    """

    def __init__(self, file: BinaryIO, stamp: Stamp, vocabulary: int) -> None:
        self._file = file
        start, self._header = _read_start(file)
        saved = self._header.stamp
        self.kv = stamp.kv(saved.bits)
        if saved != (stamp if self.kv is None else stamp.quantised(self.kv)):
            raise UnusableFileError("it belongs to another model or version")
        tensors = _tensors(self._header)
        sums = self._read_sums(start, len(tensors))
        offsets = accumulate((each.nbytes for each in tensors), initial=len(start))
        # The last tensor, which holds the sums, is not read again.
        self._places = {each.name: (each, at, sum_) for each, at, sum_ in zip(tensors, offsets, sums[1:])}
        self.tokens: list[int] = self._read("tokens").tolist()
        if not all(0 <= token < vocabulary or token >= FIRST_IMAGE_ROW for token in self.tokens):
            raise UnusableFileError("it has token ids that the model does not have")
        try:
            self.columns = Columns.of_runs(self._read("runs"), self._header.columns)
            _check(self._header, self.columns)
        except ValueError as error:
            raise UnusableFileError(str(error)) from None

    @property
    def lengths(self) -> list[int] | None:
        """Lengths that the cache can return to; None: any."""
        kept = all(each.kind in ("KVCache", "QuantizedKVCache") for each in self._header.stamp.layout)
        return None if kept else [each.length for each in self._header.snapshots]

    def shared_as(self, kv: KvQuantisation | None, prompt: Sequence[int], *, whole: bool) -> int:
        """`CachedSequence.shared_as` of the saved sequence."""
        return reusable(self.tokens, self.columns, self.lengths, prompt, whole=whole, held=self.kv, wanted=kv)

    def nbytes_of(self, length: int) -> int:
        """About the size of the sequence of the first `length` tokens."""
        size_bytes = sum(tensor.nbytes for tensor, _, _ in self._places.values())
        return size_bytes * length // len(self.tokens)

    def read(self, new_cache: Callable[[], Cache], length: int) -> Generator[None, None, CachedSequence]:
        """Reads the sequence of the first `length` tokens: all, or as many as `shared_as` returns.

        Yields after each array. Arrays that a prefix does not need are not read. Raises `UnusableFileError`
        and `OSError`.
        """
        header, is_prefix = self._header, length < len(self.tokens)
        layouts = header.stamp.layout
        columns = self.columns.fork(length)
        cache = new_cache()
        if self.kv is not None:
            quantise(cache, self.kv)
        for number, (entry, layout, known) in enumerate(zip(leaves(cache), layouts, header.entries)):
            if is_appending(entry):
                known = _Entry((columns.count,), columns.count)
            elif is_prefix:
                continue
            yield from self._fill(entry, f"{number}", layout, known)
        snapshots: list[Snapshot] = []
        for each in header.snapshots:
            if each.length > length:
                break
            other = new_cache()
            held = (entry for entry in leaves(other) if not is_appending(entry))
            for number, (entry, layout, known) in enumerate(zip(held, _held(layouts), each.entries)):
                yield from self._fill(entry, f"at{each.length}.{number}", layout, known)
            newest = self._state(len(snapshots) + 1, each.length)
            snapshots.append(take_snapshot(other, each.length, newest))
        if is_prefix and _held(layouts):
            restore(cache, snapshots[-1])
        tokens = self.tokens[:length]
        sequence = CachedSequence.restored(new_cache, cache, tokens, columns, snapshots, self.kv)
        if header.head is not None:
            yield from self._read_head(sequence, header.head, length)
            is_cut = is_prefix and _held(layouts)
            sequence.state = snapshots[-1].newest if is_cut else self._state(0, length)
        return sequence

    def _read_head(self, sequence: CachedSequence, head: _Head, length: int) -> Iterator[None]:
        """Sets what the model's head has of the first `length` tokens."""
        sequence.head_source = head.source
        if not head.layout:
            return
        tokens = self.tokens[: min(length, head.tokens)]
        columns = Columns.of_runs(self._read("head.runs"), head.columns).fork(len(tokens))

        def new_cache() -> Cache:
            return [KVCache() for _ in head.layout]

        cache = new_cache()
        for number, (entry, layout) in enumerate(zip(cache, head.layout)):
            yield from self._fill(entry, f"head.{number}", layout, _Entry((columns.count,), columns.count))
        sequence.head = CachedSequence.restored(new_cache, cache, tokens, columns, ())

    def _state(self, number: int, length: int) -> tuple[int, mx.array] | None:
        """The state of the sequence (0) or of a snapshot (from 1), if it is of the first `length` tokens."""
        head = self._header.head
        if head is None or not 0 <= head.known[number] < length:
            return None
        row = sum(position >= 0 for position in head.known[:number])
        state = self._array("states", None)[row : row + 1] + 0
        mx.eval(state)
        return head.known[number], state

    def _fill(self, entry: Any, name: str, layout: Layout, known: _Entry) -> Iterator[None]:
        """Sets `entry` from the tensors of `name`; of an appending one as many columns as it is to have."""
        kind = type(entry)
        columns = known.columns if is_appending(entry) else None
        arrays = []
        for index in range(len(layout.arrays)):
            arrays.append(self._array(f"{name}.{index}", columns))
            yield
        if kind is ArraysCache:
            entry.cache = arrays
        elif kind is QuantizedKVCache:
            entry.keys, entry.values = tuple(arrays[:3]), tuple(arrays[3:])
        else:
            entry.keys, entry.values = arrays
        for attribute, number in zip(_NUMBERS[kind], known.numbers, strict=True):
            setattr(entry, attribute, number)

    def _array(self, name: str, columns: int | None) -> mx.array:
        """The array `name`, or its first `columns`."""
        content = self._read(name)
        array = mx.array(content if columns is None else content[..., :columns, :])
        if _DTYPES[self._places[name][0].dtype][0] == mx.bfloat16:
            array = array.view(mx.bfloat16)
        mx.eval(array)
        return array

    def _read(self, name: str) -> np.ndarray[Any, Any]:
        """The tensor `name`; bfloat16 as uint16."""
        tensor, offset, expected = self._places[name]
        content = np.empty(tensor.nbytes, np.uint8)
        self._file.seek(offset)
        if self._file.readinto(content.data) != tensor.nbytes:  # type: ignore[attr-defined]
            raise UnusableFileError("it is cut off")
        if hashlib.sha256(content.data).digest() != expected:
            raise UnusableFileError(f"its tensor {name} is damaged")
        return content.view(_DTYPES[tensor.dtype][1]).reshape(tensor.shape)

    def _read_sums(self, start: bytes, count: int) -> list[bytes]:
        """The SHA-256 of `start` and of each of `count` tensors but the last."""
        length = _DIGEST_BYTES * count
        self._file.seek(_size(self._header, start) - length)
        content = self._file.read(length)
        sums = [content[at : at + _DIGEST_BYTES] for at in range(0, len(content), _DIGEST_BYTES)]
        if len(content) != length or sums[0] != hashlib.sha256(start).digest():
            raise UnusableFileError("its header is damaged")
        return sums


def _read_start(file: BinaryIO) -> tuple[bytes, _Header]:
    """The file up to its first tensor, and its metadata; the file is exactly as long as they say."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    first = file.read(8)
    length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
    if not 2 <= length <= min(_LONGEST_HEADER_BYTES, size - 8):
        raise UnusableFileError("it is not a safetensors file")
    content = first + file.read(length)
    try:
        metadata = msgspec.json.decode(content[8:], type=dict[str, Any])["__metadata__"][_METADATA]
        header = msgspec.json.decode(metadata, type=prepared(_Header))
        # Before anything is computed with its numbers.
        if header.format != _FORMAT or not _is_bounded(header, size):
            raise UnusableFileError("it has another format")
        if _start(header) != content or _size(header, content) != size:
            raise UnusableFileError("its header does not describe it")
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, ValueError, UnicodeError) as error:
        raise UnusableFileError(f"its header cannot be read ({error})") from None
    return content, header


def _is_bounded(header: _Header, size: int) -> bool:
    """Whether no number of `header` exceeds what a file of `size` bytes can describe."""
    layouts = header.stamp.layout
    entries = [*header.entries, *(entry for each in header.snapshots for entry in each.entries)]
    numbers = [header.tokens, header.columns, header.runs, *(each.length for each in header.snapshots)]
    numbers += [header.stamp.bits]
    if (head := header.head) is not None:
        entries += head.entries
        layouts = (*layouts, *head.layout, Layout("", (), (head.state,)))
        numbers += [head.tokens, head.columns, head.runs, *(position + 1 for position in head.known)]
    numbers += [number for entry in entries for number in (*entry.numbers, entry.columns)]
    sizes = [abs(number) for each in layouts for array in each.arrays for number in array.sizes]
    return (
        all(0 <= number <= size for number in numbers)
        and all(number <= size for number in sizes)
        and all(array.dtype in _DTYPES for each in layouts for array in each.arrays)
        and len(header.entries) == len(header.stamp.layout)
        and all(len(each.entries) == len(_held(header.stamp.layout)) for each in header.snapshots)
        and (head is None or len(head.entries) == len(head.layout))
    )


def _check(header: _Header, columns: Columns) -> None:
    """Raises `ValueError` if the numbers of the entries contradict the tokens."""
    if header.tokens < 1 or columns.next != header.tokens or columns.count != header.columns:
        raise ValueError("The positions are not those of the tokens.")
    _check_entries(header.stamp.layout, header.entries, columns.count)
    lengths = [each.length for each in header.snapshots]
    if lengths != sorted(set(lengths)) or any(not 0 < each <= header.tokens for each in lengths):
        raise ValueError("The snapshots are not in order.")
    for each in header.snapshots:
        _check_entries(_held(header.stamp.layout), each.entries, columns.fork(each.length).count)
    if (head := header.head) is not None:
        if any(each.kind != "KVCache" for each in head.layout) or len(head.known) != len(lengths) + 1:
            raise ValueError("The head's cache is of another kind.")
        if any(each >= length for each, length in zip(head.known, (header.tokens, *lengths))):
            raise ValueError("The head's states are not those of the tokens.")
        _check_entries(head.layout, head.entries, head.columns)


def _check_entries(layouts: Sequence[Layout], entries: Sequence[_Entry], count: int) -> None:
    """Raises `ValueError` unless `entries` are those of a cache with `count` columns read."""
    for layout, entry in zip(layouts, entries, strict=True):
        if layout.kind == "ArraysCache":
            sound = entry == _Entry((), 0)
        elif layout.kind in ("KVCache", "QuantizedKVCache"):
            sound = entry == _Entry((count,), count)
        elif layout.kind == "RotatingKVCache":
            sound = entry.numbers[0] == count and 0 < entry.numbers[1] <= entry.columns
        else:
            held = count - entry.numbers[1]
            sound = entry.numbers[0] == count and 0 <= held <= entry.columns
        if not sound:
            raise ValueError(f"A {layout.kind} does not hold the tokens.")


# ---- entries


def _layout(cache: Sequence[Any]) -> tuple[Layout, ...] | None:
    """The layout of a cache that is not empty; None if it cannot be saved."""
    found = []
    for entry in leaves(cache):
        kind: type = type(entry)
        arrays = _held_arrays(entry)
        if arrays is None or any(array.dtype not in _NAMES for array in arrays):
            return None
        if kind is ArraysCache:
            shapes = [array.shape for array in arrays]
        else:
            shapes = [(*array.shape[:-2], -1, array.shape[-1]) for array in arrays]
        fixed = tuple(int(getattr(entry, name)) for name in _FIXED.get(kind, ()))
        shaped = (Shape(_NAMES[each.dtype], shape) for each, shape in zip(arrays, shapes))
        found.append(Layout(kind.__name__, fixed, tuple(shaped)))
    return tuple(found)


def _group_of(layout: Layout) -> int:
    """The group size of an entry with this layout; 0 if it keeps its precision."""
    return group_size(*(array.sizes[-1] for array in layout.arrays)) if layout.kind == "KVCache" else 0


def _quantised(layout: Layout, bits: int, group: int) -> Layout:
    """The layout of such an entry once it is quantised: codes, scales and biases of keys and of values."""
    if not group:
        return layout
    arrays: list[Shape] = []
    for each in layout.arrays:
        *sizes, last = each.sizes
        scales = Shape(each.dtype, (*sizes, last // group))
        arrays += [Shape("U32", (*sizes, last * bits // 32)), scales, scales]
    return Layout("QuantizedKVCache", (group, bits), tuple(arrays))


def _held_arrays(entry: Any) -> list[mx.array] | None:
    """The arrays of an entry; None if it is empty or cannot be saved."""
    if type(entry) not in _NUMBERS:
        return None
    if type(entry) is ArraysCache:
        is_batch = entry.left_padding is not None or entry.lengths is not None
        arrays = list(entry.cache)
        return None if is_batch or any(each is None for each in arrays) else arrays
    return None if entry.keys is None else [*parts(entry.keys), *parts(entry.values)]


def _entries(cache: Sequence[Any], held: bool) -> tuple[_Entry, ...]:
    """The numbers of the entries of `cache`; with `held` only of those that cannot be trimmed."""
    found = []
    for entry in leaves(cache):
        if held and is_appending(entry):
            continue
        numbers = tuple(int(getattr(entry, name)) for name in _NUMBERS[type(entry)])
        arrays = _held_arrays(entry)
        if not arrays:
            raise ValueError("The cache has an empty entry.")
        columns = 0 if type(entry) is ArraysCache else int(arrays[0].shape[-2])
        # Spare columns of an appending entry are not kept.
        found.append(_Entry(numbers, numbers[0] if is_appending(entry) else columns))
    return tuple(found)


def _arrays(entry: Any, columns: int) -> list[mx.array]:
    arrays = _held_arrays(entry) or []
    return [array[..., :columns, :] for array in arrays] if is_appending(entry) else arrays


def _held(layouts: Sequence[Layout]) -> list[Layout]:
    """The layouts of the entries that snapshots hold."""
    return [each for each in layouts if each.kind not in ("KVCache", "QuantizedKVCache")]


def _head_of(sequence: CachedSequence, snapshots: Sequence[Snapshot]) -> tuple[_Head | None, list[mx.array]]:
    """The head's record of `sequence`, and its arrays; None if nothing can be saved."""
    own, states = sequence.head, [sequence.state, *(each.newest for each in snapshots)]
    known = [state for state in states if state is not None]
    arrays: list[mx.array] = []
    layout: tuple[Layout, ...] = ()
    entries: tuple[_Entry, ...] = ()
    tokens = columns = runs = 0
    if own is not None and own.tokens:
        found = _layout(own.cache)
        if found is None or any(each.kind != "KVCache" for each in found):
            return None, []
        layout, entries = found, _entries(own.cache, False)
        arrays.append(mx.array(own.columns.runs()))
        for entry, numbers in zip(leaves(own.cache), entries, strict=True):
            arrays += _arrays(entry, numbers.columns)
        tokens, columns, runs = len(own.tokens), own.columns.count, int(arrays[0].shape[1])
    if not sequence.head_source or not (layout or known):
        return None, []
    shape = Shape("F32", (0,))
    if known:
        arrays.append(mx.concatenate([state for _, state in known]))
        shape = Shape(_NAMES.get(arrays[-1].dtype, ""), arrays[-1].shape[1:])
    positions = tuple(-1 if state is None else state[0] for state in states)
    head = _Head(sequence.head_source, layout, tokens, columns, runs, entries, shape, positions)
    return head, arrays


# ---- bytes


def _tensors(header: _Header) -> list[_Tensor]:
    found = [_Tensor("tokens", "I32", (header.tokens,)), _Tensor("runs", "I32", (2, header.runs))]
    layouts = header.stamp.layout
    groups = [("", layouts, header.entries)]
    groups += [(f"at{each.length}.", tuple(_held(layouts)), each.entries) for each in header.snapshots]
    if (head := header.head) is not None and head.layout:
        groups.append(("head.", head.layout, head.entries))
    for prefix, shapes, entries in groups:
        if prefix == "head." and head is not None:
            found.append(_Tensor("head.runs", "I32", (2, head.runs)))
        for number, (layout, entry) in enumerate(zip(shapes, entries, strict=True)):
            for index, array in enumerate(layout.arrays):
                shape = tuple(entry.columns if size == -1 else size for size in array.sizes)
                found.append(_Tensor(f"{prefix}{number}.{index}", array.dtype, shape))
    if head is not None and (count := sum(position >= 0 for position in head.known)):
        found.append(_Tensor("states", head.state.dtype, (count, *head.state.sizes)))
    return [*found, _Tensor("sums", "U8", (len(found) + 1, _DIGEST_BYTES))]


def _start(header: _Header) -> bytes:
    """The first bytes of a file: the header's length, and the header, padded to a multiple of 8."""
    entries: dict[str, Any] = {"__metadata__": {_METADATA: msgspec.json.encode(header).decode()}}
    offset = 0
    for tensor in _tensors(header):
        offsets = (offset, offset + tensor.nbytes)
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        offset = offsets[1]
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _size(header: _Header, start: bytes) -> int:
    return len(start) + sum(tensor.nbytes for tensor in _tensors(header))


def _bytes(array: mx.array) -> memoryview:
    """The content of an array, row by row; MLX is not called again while it is written."""
    array = mx.contiguous(array)
    if array.dtype == mx.bfloat16:
        array = array.view(mx.uint16)
    mx.eval(array)
    return np.asarray(array).reshape(-1).view(np.uint8).data
