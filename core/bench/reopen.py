"""`draftlight bench reopen`: time to first token of a chat after a restart, saved against cold.

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

from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    conditions,
    measure,
    median,
    publish,
    table,
)
from core.bench.prefill import messages_of
from core.errors import RequestError
from core.events import Finished, Generate, Message, Token
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
    prompt_tokens: int
    answer: tuple[int, ...]
    file_bytes: int
    load_s: float = 0.0

    @property
    def key(self) -> tuple[int, int, Way]:
        return self.tokens, self.number, self.way


class ReopenCell(Struct, frozen=True):
    """A chat of `tokens` tokens. Times are medians; `equal`: all answers have the same token ids."""

    tokens: int
    pairs: int
    cold_s: float
    at_once_s: float
    opened_s: float
    new_chat_s: float
    load_s: float
    disk_tokens: int
    file_bytes: int
    equal: bool

    @property
    def share(self) -> float:
        """Time to first token of the opened chat, relative to cold."""
        return self.opened_s / self.cold_s

    @property
    def met(self) -> bool:
        return self.equal and self.disk_tokens > 0 and self.share <= TARGET_SHARE


class ReopenResults(Struct, frozen=True):
    """The content of `results.json`. `written_bytes`: of all files, which were written once per size."""

    bench: str
    environment: Environment
    model: str
    written_bytes: int
    cells: tuple[ReopenCell, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `reopenings.jsonl`, `results.json` and `report.md`.

    Exit status 1 if answers differ.
    """
    from core.models.runtime import prepare

    blas = prepare()
    from core.bench.runs import load_tried
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
        journal = Journal(
            options.out / "reopenings.jsonl",
            conditions(environment, info.name, "documents of seed 1"),
            Reopening,
        )
        chats = _Chats(engine, Path(scratch))
        pieces = [
            BenchPiece((tokens, number, way), partial(chats.reopen, tokens, number, way))
            for tokens in options.tokens
            for number in range(options.pairs)
            for way in (_WAYS if number % 2 == 0 else _WAYS[::-1])
        ]
        measured, progress = measure(journal, pieces, lambda each: [_line(each)], quiet=options.quiet)
        cells = tuple(cell for tokens in options.tokens if (cell := _cell(tokens, measured)))
        engine.saved_chats.erase([], everything=True)
        engine.close()
    written_bytes = sum(cell.file_bytes for cell in cells)
    results = ReopenResults("reopen", environment, info.name, written_bytes, cells, progress)
    publish(options.out, results, write_report(results))
    return progress.status(all(cell.equal for cell in cells))


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
            *(tokens, number, way, stats.ttft_s, stats.disk_tokens, stats.prompt_tokens),
            answer=tuple(token.id for token in answer),
            file_bytes=self._size_bytes(tokens),
            load_s=load_s,
        )

    def _saved(self, tokens: int) -> tuple[Message, ...]:
        """The messages up to the next question of a chat that is on disk."""
        if tokens not in self._next:
            engine = self._engine
            given = argparse.Namespace(tokens=tokens, document=None, kind="minutes", seed=1)
            first = messages_of(engine, given)
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


def _cell(tokens: int, measured: Sequence[Reopening]) -> ReopenCell | None:
    """The medians of the complete pairs of one size; None without any."""
    of_size = [each for each in measured if each.tokens == tokens]
    numbers = {each.number for each in of_size}
    whole = [n for n in numbers if sum(each.number == n for each in of_size) == len(_WAYS)]
    found = [each for each in of_size if each.number in whole]
    if not found:
        return None
    ttft_s = {way: median(each.ttft_s for each in found if each.way == way) for way in _WAYS}
    loaded = [each for each in found if each.way != "cold"]
    return ReopenCell(
        *(tokens, len(whole), ttft_s["cold"], ttft_s["at once"], ttft_s["opened"]),
        new_chat_s=ttft_s["new chat"],
        load_s=median(each.load_s for each in found if each.way == "opened"),
        disk_tokens=min(each.disk_tokens for each in loaded),
        file_bytes=max(each.file_bytes for each in found),
        equal=len({each.answer for each in found}) == 1,
    )


def _line(each: Reopening) -> str:
    return f"{each.tokens:,} tokens, {each.way}: first token after {each.ttft_s:.2f} s"


def write_report(results: ReopenResults) -> str:
    """The results as Markdown."""
    lines = ["# The next question of a chat after a restart", "", *results.progress.lines]
    lines += [
        f"{results.model}; medians of pairs in one process. *At once*: the time to first token includes"
        " loading. *Opened*: the chat was loaded in idle time before the question; “load” is that time. *New"
        " chat*: another chat asks, and loads the prefix."
        f" Target: opened at most {TARGET_SHARE:.0%} of cold, with equal answers."
        f" {results.written_bytes / 1e6:,.0f} MB were written.",
        "",
        results.environment.line,
        "",
        *table(
            "chat | pairs | cold s | at once s | opened s | new chat s | load s | opened ÷ cold"
            " | at once ÷ cold | from disk | file MB | answers | met",
            (
                f"{c.tokens:,} | {c.pairs} | {c.cold_s:.2f} | {c.at_once_s:.2f} | {c.opened_s:.3f}"
                f" | {c.new_chat_s:.2f} | {c.load_s:.2f} | **{c.share:.1%}** | {c.at_once_s / c.cold_s:.1%}"
                f" | {c.disk_tokens:,}"
                f" | {c.file_bytes / 1e6:,.0f} | {'equal' if c.equal else '**differ**'}"
                f" | {'yes' if c.met else '**no**'}"
                for c in results.cells
            ),
        ),
    ]
    return "\n".join(lines) + "\n"
