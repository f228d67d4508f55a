"""Saved caches of chats: damaged files, kills while saving, two processes, and a disk that takes no more.

A good file is made of a chat with each kind of cache: full, sliding window, recurrent, and read sparsely. A
case damages it (flipped bytes, cut or grown, zeros, a lying header or tensor with checksums that are right,
another model's stamp, a folder in its place), kills a process while it replaces the file, lets another one
replace it over and over, or lets the write fail at some byte. Then the chat's next question is asked. Its
answer must be that of a cold start; a damaged file must be gone, and what was not damaged must be used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import struct
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from core.kv.saved_files import SavedFiles
from core.settings import Settings, assign_all
from core.settings.prefill import Prefill
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.damage import DAMAGES, flips

_SLOW_S = 20.0
_MOST_BYTES = 300 * 2**20
_CHAT = "chat"
_PROMPT_TOKENS = {False: 300, True: 700}  # for a dense and a sparse reading
_KINDS = (("llama", False), ("gemma3_text", False), ("qwen3_5", False), ("llama", True), ("qwen3_5", True))
_KILL_EVERY = 40
_TWO_EVERY = 20
_FULL_EVERY = 8
# Tracing allocations takes as long as the rest of the case.
_TRACE_EVERY = 20


class _Chat:
    """A model with a chat that was saved, and its next question."""

    def __init__(self, name: str, sparse: bool, folder: Path) -> None:
        from mlx_lm.utils import load_tokenizer

        from core.engine.engine import Engine
        from tests.core.engine.test_saved_chats import long_model, run, started
        from tests.core.engine.test_sparse_session import prompt_of
        from tests.core.toy import write_toy_model

        self.name = f"{name}{', sparse' if sparse else ''}"
        toy = folder.parent / "toy"
        if not toy.exists():
            write_toy_model(toy)
        self._run, self._started = run, started
        self.loaded = long_model(name, load_tokenizer(toy), toy)
        self.files = SavedFiles(folder)
        self.settings = settings(sparse)
        prompt = prompt_of(41, _PROMPT_TOKENS[sparse])
        engine = started(self.loaded, self.files)
        first, _ = run(engine, prompt, self.settings, _CHAT)
        self.follow = [*prompt, *first, *prompt_of(42, 30)]
        engine.unload()
        (self.path,) = folder.glob("*.safetensors")
        self.good = self.path.read_bytes()
        # A cold start of a sparse chat has no earlier turn: the first turn is repeated.
        engine = Engine()
        engine.use(self.loaded)
        run(engine, prompt, self.settings, "")
        self.expected, finished = run(engine, self.follow, self.settings, "")
        engine.forget()
        self.cold = self.expected if not sparse else run(engine, self.follow, self.settings, "")[0]
        self.engine = started(self.loaded, self.files)
        self.skipped = finished.stats.skipped_tokens

    def ask(self) -> tuple[list[int], int]:
        """The next question after a restart: the answer and the tokens that came from disk."""
        self.engine.forget()
        answer, finished = self._run(self.engine, self.follow, self.settings, _CHAT)
        self.engine.saved_chats.open("", Prefill())
        self.engine.forget()
        return answer, finished.stats.disk_tokens

    def fault(self, *, is_good: bool) -> str:
        """What is wrong with the next answer; `is_good`: the file on the disk is one that was saved."""
        answer, disk_tokens = self.ask()
        if is_good:
            if not disk_tokens:
                return "a good file was not used"
            return "" if answer == self.expected else "the answer is not that of before"
        if disk_tokens:
            return "a damaged file was used"
        if answer != self.cold:
            return "the answer is not that of a cold start"
        return "the damaged file is still there" if self.path.is_file() else ""


def settings(sparse: bool) -> Settings:
    """Greedy, with drafts."""
    values: dict[str, object] = {
        "prefill.mode": "on" if sparse else "off",
        "prefill.scorer": "lexical",
        "prefill.passages": "fixed",
        "prefill.keep_pct": 7,
        "drafting.drafter": "ngram-simple",
        "sampling.max_tokens": 8,
        "tables.learn": False,
    }
    return assign_all(Settings(), values.items())


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    from core.models.runtime import prepare

    prepare()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        chats: dict[int, _Chat] = {}
        for case in cases:
            kind = case % len(_KINDS)
            if kind not in chats:
                chats[kind] = _Chat(*_KINDS[kind], folder / f"contexts-{kind}")
            yield _case(seed, case, chats[kind])


def _case(seed: int, case: int, chat: _Chat) -> Outcome:
    rng = case_random("caches", seed, case)
    if chat.path.is_dir():
        chat.path.rmdir()
    chat.path.write_bytes(chat.good)
    what = "kill" if case % _KILL_EVERY == 7 else "two processes" if case % _TWO_EVERY == 9 else ""
    what = what or ("full disk" if case % _FULL_EVERY == 3 else "")
    traced = case // len(_KINDS) % _TRACE_EVERY == 0
    if traced:
        tracemalloc.start()
    started = time.perf_counter()
    try:
        if what:
            fault = {"kill": _killed, "two processes": _two, "full disk": _full}[what](chat, rng)
        else:
            way = rng.choice(_WAYS)
            what = way.__name__.strip("_")
            damaged = way(chat.good, rng)
            chat.path.unlink()
            if damaged is None:
                chat.path.mkdir()
            else:
                chat.path.write_bytes(damaged)
            fault = chat.fault(is_good=damaged == chat.good)
    except BaseException as error:
        return Outcome(case, f"{chat.name}, {what}: {type(error).__name__}: {error}")
    finally:
        took_s, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if not fault and took_s > _SLOW_S:
        fault = f"it took {took_s:.1f} s"
    if not fault and peak > _MOST_BYTES:
        fault = f"it took {peak:,} bytes of memory"
    return Outcome(
        case, f"{chat.name}, {what}: {fault}" if fault else "", {what: 1.0}, {"case_ms": took_s * 1000}
    )


# ---- processes and disks


def _replace(path: Path, content: bytes, pieces: int = 17) -> None:
    """Replace `path` by `content` as a chat is saved, and die after so many sixteenths. Runs in a child."""
    files = SavedFiles(path.parent)
    assert files.reserve(path, len(content), 1 << 40) == ""
    with files.writing(path) as file:
        step = len(content) // 16 + 1
        for number in range(min(pieces, 16)):
            file.write(content[number * step : (number + 1) * step])
            file.flush()
        if pieces <= 16:
            os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def _child(work: Callable[[], None], *, wait: bool) -> Iterator[None]:
    """A forked process that does `work`, which only writes files; it is killed at the end, or waited for."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        if not wait:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _killed(chat: _Chat, rng: random.Random) -> str:
    pieces = rng.randrange(18)
    with _child(lambda: _replace(chat.path, chat.good, pieces), wait=True):
        pass
    if chat.path.read_bytes() != chat.good:
        return "the killed process changed the file"
    fault = chat.fault(is_good=True)
    chat.files.erase([_CHAT])
    left = [path.name for path in chat.files.folder.iterdir()]
    return fault or (f"{left} is left after erasing" if left else "")


def _two(chat: _Chat, rng: random.Random) -> str:
    """Another process saves the same chat over and over while the question is asked, until it is killed."""

    def save() -> None:
        while True:
            _replace(chat.path, chat.good)

    with _child(save, wait=False):
        time.sleep(rng.random() / 50)
        fault = chat.fault(is_good=True)
    if not fault and chat.path.read_bytes() != chat.good:
        fault = "the two processes changed the file"
    chat.files.erase([_CHAT])
    return fault


def _full(chat: _Chat, rng: random.Random) -> str:
    """The file may grow to some byte only while the chat is saved again."""
    engine = chat.engine
    engine.forget()
    chat.path.unlink()
    chat._run(engine, chat.follow, chat.settings, _CHAT)
    chat.path.write_bytes(chat.good)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (rng.randrange(len(chat.good)), hard))
    try:
        engine.saved_chats.open("another", Prefill())
        while engine.saved_chats.piece():
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if chat.path.read_bytes() != chat.good:
        return "the failed write changed the file"
    if left := list(chat.files.folder.glob(".*.tmp")):
        return f"{left[0].name} is left"
    engine.saved_chats.open("", Prefill())
    return chat.fault(is_good=True)


# ---- damage


_LIES = (0, -1, 1, 2**31, 2**63 - 1, 2**70, 1.5, None, "", "x" * 5000, [], [[]], {}, True)


def _lying_metadata(data: bytes, rng: random.Random) -> bytes:
    """A field of another value, at any depth, with a checksum that is right."""

    def change(header: dict[str, Any], notes: dict[str, Any]) -> None:
        held: Any = notes
        while True:
            keys = list(held) if isinstance(held, dict) else list(range(len(held)))
            key = rng.choice(keys)
            if isinstance(held[key], dict | list) and held[key] and rng.random() < 0.7:
                held = held[key]
                continue
            lies = [lie for lie in _LIES if lie != held[key] or type(lie) is not type(held[key])]
            held[key] = rng.choice(lies)
            return

    return _rewritten(data, change)


def _lying_tensor(data: bytes, rng: random.Random) -> bytes:
    """A tensor of another shape, dtype or place, missing, or one too many."""

    def change(header: dict[str, Any], notes: dict[str, Any]) -> None:
        name = rng.choice([each for each in header if each != "__metadata__"])
        entry = header[name]
        match rng.randrange(6):
            case 0:
                del header[name]
            case 1:
                header["another"] = entry
            case 2:
                entry["dtype"] = rng.choice(["F64", "I64", "BOOL", "F8", "", "BF16" * 100])
            case 3:
                entry["shape"] = [*entry["shape"][:-1], rng.choice([0, -1, 2**62])]
            case 4:
                entry["data_offsets"] = rng.choice([[0, 2**62], [-8, 8], [8, 0], []])
            case _:
                entry["shape"] = [*reversed(entry["shape"]), 1]

    return _rewritten(data, change)


def _other_stamp(data: bytes, rng: random.Random) -> bytes:
    def change(header: dict[str, Any], notes: dict[str, Any]) -> None:
        key = rng.choice(["model", "mlx", "mlx_lm", "device"])
        notes["stamp"][key] = notes["stamp"][key][::-1] + "1"

    return _rewritten(data, change)


def _swapped(data: bytes, rng: random.Random) -> bytes:
    """Two tensors of the same size exchanged; the header stays."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    spans = [value["data_offsets"] for key, value in header.items() if key not in ("__metadata__", "sums")]
    one = rng.choice(spans)
    same = [each for each in spans if each != one and each[1] - each[0] == one[1] - one[0]]
    if not same:
        return flips(data, rng)
    other = rng.choice(same)
    changed = bytearray(data)
    start = 8 + length
    for to, source in ((one, other), (other, one)):
        changed[start + to[0] : start + to[1]] = data[start + source[0] : start + source[1]]
    return bytes(changed) if bytes(changed) != data else flips(data, rng)


_WAYS: tuple[Callable[[bytes, random.Random], bytes | None], ...] = (
    *DAMAGES,
    *(_lying_metadata, _lying_metadata, _lying_tensor, _lying_tensor, _other_stamp, _swapped),
)


def _rewritten(data: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """The file with a changed header, whose checksum is right."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    notes = json.loads(header["__metadata__"]["draftlight"])
    sums = 8 + length + header["sums"]["data_offsets"][0]
    change(header, notes)
    header["__metadata__"]["draftlight"] = json.dumps(notes, separators=(",", ":"))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    start = struct.pack("<Q", len(text)) + text
    digest = hashlib.sha256(start).digest()
    return start + data[8 + length : sums] + digest + data[sums + len(digest) :]


CAMPAIGN = Campaign(
    "caches",
    "A chat whose saved cache is damaged, is being replaced by another process, perhaps killed, or met a full"
    " disk answers as from a cold start, and a good file is used",
    60,
    2_000,
    _run,
)
