"""Time to first token of a chat after a restart, saved against cold.

    python -m tests.tuning reopen --out DIR

A chat with a long document is saved. Each pair restarts the model session four times and asks the same next
question: cold, without a file; at once, so that loading the file is part of the time; and after the chat was
opened and loaded in idle time, as in the window. A fourth run asks the question in a new chat with the same
messages, which loads the prefix of the saved chat's file. All runs are in one process on the same model
object, every second pair in reverse order. The file is in the system's page cache, because it was just
written.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from core.bench.answers import load_tried
from core.bench.cases import Case, document_text, question_about
from core.bench.runner import Bench, BenchPiece, run_bench, table
from core.errors import RequestError
from core.events import Finished, Generate, Message, Token
from core.events.bench import median
from core.settings import Prefill, Settings, assign_all

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

Way = Literal["cold", "at once", "opened", "new chat"]
_WAYS: tuple[Way, ...] = ("cold", "at once", "opened", "new chat")
# Of the cold time to first token, for a chat that was opened before its question.
TARGET_SHARE = 0.08
_CHAT = "bench"
_NEW_CHAT = "new"
_ANSWER_TOKENS = 16
_NEXT = "And what was decided before that?"
# For the answer and the next question.
_SPARE_TOKENS = 128


class Reopening(Struct, frozen=True):
    """One answer to the next question. `load_s`: the time of loading before it."""

    tokens: int
    number: int
    way: Way
    ttft_s: float
    disk_tokens: int
    answer: tuple[int, ...]
    file_bytes: int
    load_s: float = 0.0

    @property
    def key(self) -> tuple[int, int, Way]:
        return self.tokens, self.number, self.way


def run(options: argparse.Namespace) -> int:
    """Measure and write `reopen.jsonl` and `reopen.md`. Exit status 1 if answers differ."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine
    from core.kv.saved_files import SavedFiles

    with tempfile.TemporaryDirectory() as scratch:
        engine = Engine(saved_files=SavedFiles(Path(scratch)))
        info, environment = load_tried(engine, options.model, blas, quiet=options.quiet)
        limit = info.context_tokens - _SPARE_TOKENS
        if max(options.tokens) > limit:
            raise RequestError(
                f"A chat of {max(options.tokens):,} tokens exceeds the limit of {info.name} ({limit:,}).",
                f"Choose --tokens of at most {limit:,}.",
            )
        chats = _Chats(engine, Path(scratch))
        pieces = [
            BenchPiece((tokens, number, way), partial(chats.reopen, tokens, number, way))
            for tokens in options.tokens
            for number in range(options.pairs)
            for way in (_WAYS if number % 2 == 0 else _WAYS[::-1])
        ]
        title = f"The next question of a chat after a restart, {info.name}"
        bench = Bench(
            "reopen", title, environment, (info.name, "documents of seed 1"), Reopening, options.out
        )
        measured, progress = run_bench(bench, pieces, _line, report, quiet=options.quiet)
        engine.saved_chats.erase([], everything=True)
        engine.close()
    equal = (len({each.answer for each in measured if each.tokens == n}) <= 1 for n in options.tokens)
    return progress.status(all(equal))


class _Chats:
    """Saved chats of several sizes, each made at its first use."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._settings = assign_all(
            Settings(),
            [
                ("drafting.drafter", "off"),
                ("sampling.max_tokens", _ANSWER_TOKENS),
                ("sampling.temperature", 0.0),
                ("prefill.mode", "off"),
                ("tables.learn", False),
            ],
        )
        self._next: dict[int, tuple[Message, ...]] = {}

    def reopen(self, tokens: int, number: int, way: Way) -> Reopening:
        """Restart the session and ask the next question of the chat with `tokens` tokens."""
        messages, chat = self._saved(tokens), f"{_CHAT}-{tokens}"
        engine = self._engine
        engine.use(engine.loaded)
        load_s = 0.0
        if way == "opened":
            begun_s = time.perf_counter()
            engine.saved_chats.open(chat, Prefill())
            while engine.saved_chats.piece():
                pass
            load_s = time.perf_counter() - begun_s
        answer, finished = self._ask(messages, {"cold": "", "new chat": _NEW_CHAT}.get(way, chat))
        if way == "new chat":
            engine.saved_chats.erase([_NEW_CHAT])
        engine.saved_chats.open("", Prefill())
        stats = finished.stats
        return Reopening(
            tokens,
            number,
            way,
            stats.ttft_s,
            stats.disk_tokens,
            answer=tuple(token.id for token in answer),
            file_bytes=self._size_bytes(tokens),
            load_s=load_s,
        )

    def _saved(self, tokens: int) -> tuple[Message, ...]:
        """The messages up to the next question of a chat that is on disk."""
        if tokens not in self._next:
            engine = self._engine
            case = Case("chat", "chat", document=document_text(1, tokens), tokens=tokens)
            first = question_about(engine.loaded.tokenizer, case)
            answer, _ = self._ask(first, f"{_CHAT}-{tokens}")
            engine.saved_chats.open("another", Prefill())  # leaves the chat, which is saved now
            while engine.saved_chats.piece():
                pass
            engine.saved_chats.open("", Prefill())
            text = "".join(token.text for token in answer)
            self._next[tokens] = (*first, Message("assistant", text), Message("user", _NEXT))
        return self._next[tokens]

    def _size_bytes(self, tokens: int) -> int:
        from core.kv.saved_files import SavedFiles

        files = SavedFiles(self._folder)
        return files.size_bytes(files.path(f"{_CHAT}-{tokens}", self._engine.loaded.info.path))

    def _ask(self, messages: tuple[Message, ...], chat: str) -> tuple[list[Token], Finished]:
        events = list(self._engine.generate(Generate("bench", messages, self._settings, chat=chat)))
        finished = events[-1]
        assert isinstance(finished, Finished)
        return [event for event in events if isinstance(event, Token)], finished


def _line(each: Reopening) -> str:
    return f"{each.tokens:,} tokens, {each.way}: first token after {each.ttft_s:.2f} s"


def report(measured: Sequence[Reopening]) -> list[str]:
    """Medians of the complete pairs of each size."""
    rows = []
    for tokens in dict.fromkeys(each.tokens for each in measured):
        of_size = [each for each in measured if each.tokens == tokens]
        counts = {each.number: sum(other.number == each.number for other in of_size) for each in of_size}
        found = [each for each in of_size if counts[each.number] == len(_WAYS)]
        if not found:
            continue
        cold_s, at_once_s, opened_s, new_chat_s = (
            median(each.ttft_s for each in found if each.way == way) for way in _WAYS
        )
        load_s = median(each.load_s for each in found if each.way == "opened")
        disk_tokens = min(each.disk_tokens for each in found if each.way != "cold")
        equal = len({each.answer for each in found}) == 1
        met = equal and disk_tokens and opened_s <= TARGET_SHARE * cold_s
        rows.append(
            f"{tokens:,} | {len(found) // len(_WAYS)} | {cold_s:.2f} | {at_once_s:.2f} | {opened_s:.3f}"
            f" | {new_chat_s:.2f} | {load_s:.2f} | **{opened_s / cold_s:.1%}** | {disk_tokens:,}"
            f" | {max(each.file_bytes for each in found) / 1e6:,.0f} | {'equal' if equal else '**differ**'}"
            f" | {'yes' if met else '**no**'}"
        )
    return [
        "Medians of pairs in one process. *At once*: the time to first token includes loading. *Opened*: the"
        " chat was loaded in idle time before the question; “load” is that time. *New chat*: another chat"
        " asks, and loads the prefix."
        f" Target: opened at most {TARGET_SHARE:.0%} of cold, with equal answers.",
        "",
        *table(
            "chat | pairs | cold s | at once s | opened s | new chat s | load s | opened ÷ cold | from disk"
            " | file MB | answers | met",
            rows,
        ),
    ]
