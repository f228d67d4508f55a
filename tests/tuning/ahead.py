"""Time to first token of a question about a document that was read before it, against today's default.

    python -m tests.tuning ahead [--ways half,columns] --out DIR

Each pair asks for a number that a generated document states, in another place each time, in each way:

- today: the document was attached before, and nothing of it was read; passages are chosen by the question;
- default: the same after idle time, with all settings at their defaults;
- dense, columns: all was read in idle time, and the answer attends to all of it or to chosen passages;
- restarted dense, restarted columns: the same, after the model session was ended and started again, and what
  was saved was loaded in idle time;
- half: half of it was read, and the rest is read sparsely.

All are in one process on the same model object, every second pair in reverse order. Files are in the system's
page cache, because they were just written. Documents shorter than twice the threshold are read with a lower
threshold and without patience.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from core.bench.answers import load_tried
from core.bench.cases import document_text
from core.bench.runner import Bench, BenchPiece, compare, run_bench, sign_test, table
from core.events import Attachment, Finished, Generate, Message, ReadAheadProgress, Token
from core.events.bench import median
from core.settings import Settings, assign_all

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

Way = Literal["today", "default", "dense", "columns", "restarted dense", "restarted columns", "half"]
WAYS: tuple[Way, ...] = get_args(Way)
_CHAT = "bench"
_ANSWER_TOKENS = 24
# For the question, the stated number and the template.
_AROUND_TOKENS = 80
_OWNERS = ("Yorick", "Zelda", "Quentin", "Ulrike", "Vaclav", "Xenia", "Wanda", "Ottilie")


class Asked(Struct, frozen=True):
    """One answer; `ahead_s`: idle time before it. `right`: it names the number."""

    number: int
    way: Way
    ttft_s: float
    tokens_per_s: float
    reading: str
    read_tokens: int
    reused_tokens: int
    disk_tokens: int
    ahead_s: float
    right: bool

    @property
    def key(self) -> tuple[int, Way]:
        return self.number, self.way


def run(options: argparse.Namespace) -> int:
    """Measure and write `ahead.jsonl` and `ahead.md`."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine
    from core.kv.saved_files import SavedFiles

    with tempfile.TemporaryDirectory() as scratch:
        progress: list[ReadAheadProgress] = []
        say = lambda event: progress.append(event) if isinstance(event, ReadAheadProgress) else None  # noqa: E731
        engine = Engine(say=say, saved_files=SavedFiles(Path(scratch)))
        info, environment = load_tried(engine, options.model, blas, quiet=options.quiet)
        asking = _Asking(engine, progress, options.tokens, options.pairs)
        ways = tuple(way for way in WAYS if way in ("today", *options.ways))
        pieces = [
            BenchPiece((number, way), partial(asking.ask, number, way))
            for number in range(options.pairs)
            for way in (ways if number % 2 == 0 else ways[::-1])
        ]
        title = f"A document of {options.tokens:,} tokens read before its question, {info.name}"
        conditions = (info.name, options.tokens, options.pairs, ways)
        bench = Bench("ahead", title, environment, conditions, Asked, options.out)
        _, done = run_bench(bench, pieces, _line, report, quiet=options.quiet)
        engine.close()
    return done.status(True)


class _Asking:
    def __init__(self, engine: Engine, progress: list[ReadAheadProgress], tokens: int, pairs: int) -> None:
        self._engine = engine
        self._progress = progress
        self._tokens = tokens
        self._pairs = pairs

    def ask(self, number: int, way: Way) -> Asked:
        engine = self._engine
        engine.saved_chats.erase([], everything=True)
        engine.use(engine.loaded)
        question, code = self._question(number, way)
        unwritten = replace(question, messages=(replace(question.messages[0], content=""),))
        engine.embedding.add("bench", question.messages[0].attachments[0].text)
        self._idle()
        begun_s = time.perf_counter()
        if way != "today":
            engine.read_ahead(unwritten)
            self._idle(half=way == "half")
        ahead_s = time.perf_counter() - begun_s
        if way.startswith("restarted"):
            engine.use(engine.loaded)
            engine.read_ahead(unwritten)
            self._idle()
        *events, finished = engine.generate(question)
        assert isinstance(finished, Finished)
        stats = finished.stats
        text = "".join(event.text for event in events if isinstance(event, Token))
        return Asked(
            number,
            way,
            stats.ttft_s,
            stats.tokens_per_s,
            finished.effective.reading,
            stats.read_tokens,
            stats.reused_tokens,
            stats.disk_tokens,
            ahead_s,
            code in text,
        )

    def _question(self, number: int, way: Way) -> tuple[Generate, str]:
        """The question, and the number that answers it."""
        tokenizer = self._engine.loaded.tokenizer
        ids = tokenizer.encode(document_text(number + 1, self._tokens), add_special_tokens=False)
        text = tokenizer.decode(ids[: max(0, self._tokens - _AROUND_TOKENS)])
        owner, code = _OWNERS[number % len(_OWNERS)], str(4711 + 137 * number)
        place = text.find("\n", round(len(text) * (number + 0.5) / self._pairs)) + 1
        text = f"{text[:place]}The locker of {owner} opens with the number {code}.\n{text[place:]}"
        words = f"Which number opens the locker of {owner}?"
        message = Message("user", words, (Attachment("minutes", text),))
        return Generate("bench", (message,), self._settings(way), chat=_CHAT), code

    def _settings(self, way: Way) -> Settings:
        values: dict[str, object] = {
            "drafting.drafter": "off",
            "sampling.temperature": 0.0,
            "sampling.max_tokens": _ANSWER_TOKENS,
            "tables.learn": False,
        }
        if way not in ("today", "default"):
            values["prefill.read_ahead"] = "on"
        if way.endswith("dense"):
            values["prefill.mode"] = "off"
        if self._tokens < 2 * Settings().prefill.threshold_tokens:
            values |= {"prefill.threshold_tokens": max(64, self._tokens // 4), "prefill.patience_s": 0.0}
        return assign_all(Settings(), values.items())

    def _idle(self, *, half: bool = False) -> None:
        """All idle work that a question profits from, or until half of the document was read."""
        engine = self._engine
        del self._progress[:]
        while engine.saved_chats.piece() or engine.embedding.piece() or self._reads():
            last = self._progress[-1] if self._progress else None
            if half and last is not None and 2 * last.done_tokens >= last.total_tokens:
                break

    def _reads(self) -> bool:
        return self._engine._ahead.piece(self._engine._session, self._engine._guard)


def _line(each: Asked) -> str:
    return f"{each.number + 1}, {each.way}: {each.reading}, first token after {each.ttft_s:.2f} s"


def report(measured: Sequence[Asked]) -> list[str]:
    """Medians of the complete pairs."""
    held = {each.key: each for each in measured}
    numbers = dict.fromkeys(each.number for each in measured)
    ways = [way for way in WAYS if any(each.way == way for each in measured)]
    whole = [number for number in numbers if all((number, way) in held for way in ways)]
    if not whole:
        return ["No complete pair."]
    rows = []
    for way in ways:
        found, base = ([held[number, each] for number in whole] for each in (way, "today"))
        times, before = ([each.ttft_s for each in group] for group in (found, base))
        rows.append(
            f"{way} | {', '.join(dict.fromkeys(each.reading for each in found))} | {median(times):.2f}"
            f" | {min(times):.2f} to {max(times):.2f} | {median(times) / median(before):.2f}"
            f" | {sign_test(*compare(times, before)):.2f} | {median(each.read_tokens for each in found):,.0f}"
            f" | {median(each.disk_tokens for each in found):,.0f} | {sum(each.right for each in found)}"
            f" | {median(each.tokens_per_s for each in found):.1f}"
            f" | {median(each.ahead_s for each in found):.1f}"
        )
    return [
        f"{len(whole)} questions about as many documents, in one process; medians. *Read*: tokens read with"
        " the question; *right*: answers that name the number; *idle*: seconds of reading before it.",
        "",
        *table(
            "way | reading | first token, s | from to | ÷ today | p | read | from disk | right | tokens/s"
            " | idle, s",
            rows,
            right_from=2,
        ),
    ]
