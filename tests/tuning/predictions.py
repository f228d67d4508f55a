"""How well the time left of a prefill is predicted, and how long the displayed words stand still.

    python -m tests.tuning predictions --out DIR

Halfway through each reading (half of its real time) the predicted time left, counted on from the last event
as displays do, is compared with the time that it then took. Half of the readings have the machine to
themselves, half share it with a process that computes without pause. All are in one process on one model:

- dense, sparse: a first question about an attachment; *embedded*: its vectors are on the disk;
- second: a second question, with an attachment of its own;
- unmeasured: nothing was measured on this machine before, neither the model nor the scorer.

Settings are the defaults, but *dense* reads all. A folder of its own holds measurements and vectors.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from msgspec import Struct

from core.bench.answers import load_tried
from core.bench.cases import document_text
from core.bench.runner import Bench, BenchPiece, run_bench, table
from core.events import Attachment, Finished, Generate, Message, PrefillProgress
from core.settings import Settings, assign_all
from core.system.children import absolute_reference
from core.system.paths import cache_dir
from tests.core.prefill.played import left_at, longest_unchanged_s, ratio_at

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

Kind = Literal["dense", "sparse", "embedded", "second", "unmeasured dense", "unmeasured sparse"]
Load = Literal["quiet", "busy"]
# Tokens of the attachments. Unmeasured readings come last, because they erase what was measured.
_READINGS: dict[Kind, tuple[int, ...]] = {
    "dense": (500, 600, 800, 1000, 1300, 1600, 2000, 3000),
    "sparse": (2300, 2600, 3000, 4000, 9000),
    "embedded": (2500, 3500),
    "second": (500, 700, 1000, 1500),
    "unmeasured dense": (600, 1200, 2400),
    "unmeasured sparse": (2400, 3000),
}
# Read before the others, so that the machine is measured; and before a second question.
_WARM_TOKENS = (1000, 2300)
_EARLIER_TOKENS = 400
_WITHIN = 0.3


class Predicted(Struct, frozen=True):
    """One reading and its events."""

    kind: Kind
    tokens: int
    load: Load
    reading: str
    events: tuple[PrefillProgress, ...]

    @property
    def key(self) -> tuple[Kind, int, Load]:
        return self.kind, self.tokens, self.load

    @property
    def total_s(self) -> float:
        return self.events[-1].time_s

    @property
    def is_within(self) -> bool:
        return abs(ratio_at(self.events) - 1) <= _WITHIN


def run(options: argparse.Namespace) -> int:
    """Measure and write `predictions.jsonl` and `predictions.md`."""
    from core.models.runtime import prepare

    reference = absolute_reference(options.model)
    blas = prepare()
    from core.engine.engine import Engine

    with tempfile.TemporaryDirectory(prefix="draftlight-predictions-") as home:
        os.environ["DRAFTLIGHT_HOME"] = home
        engine = Engine()
        info, environment = load_tried(engine, reference, blas, quiet=options.quiet)
        reader = _Reader(engine)
        sizes = {kind: [size for size in each if size <= options.most] for kind, each in _READINGS.items()}
        keys = [
            (kind, size, load)
            for measured in (True, False)
            for load in ("quiet", "busy")
            for kind, each in sizes.items()
            for size in each
            if kind.startswith("unmeasured") is not measured
        ]
        pieces = [BenchPiece(key, partial(reader.read, *key)) for key in keys]
        title = f"Predicted time left halfway through {len(pieces)} readings, {info.name}"
        bench = Bench("predictions", title, environment, (info.name,), Predicted, options.out)
        _, done = run_bench(bench, pieces, _line, report, quiet=options.quiet)
        engine.close()
    return done.status(True)


class _Reader:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_warm = False

    def read(self, kind: Kind, tokens: int, load: Load) -> Predicted:
        engine, message = self._engine, self._question(tokens, f"{kind} {load}")
        is_measured = not kind.startswith("unmeasured")
        if is_measured and not self._is_warm:
            self._is_warm = True
            for size, mode in zip(_WARM_TOKENS, ("off", "on")):
                self._events((self._question(size, "warm"),), mode)
        if not is_measured:
            for path in (cache_dir() / "profiles").glob("pace-*.json"):
                path.unlink()
            engine.use(engine.loaded)
        engine.forget()
        before: tuple[Message, ...] = ()
        if kind == "second":
            first = self._question(_EARLIER_TOKENS, f"earlier {tokens} {load}")
            self._events((first,), "off")
            before = first, Message("assistant", "I do not know.")
        if kind == "embedded":
            engine.embedding.add("bench", message.attachments[0].text)
            while engine.embedding.piece():
                pass
        with _busy() if load == "busy" else _quiet():
            events = self._events((*before, message), "off" if kind.endswith("dense") else "auto")
        finished = events[-1]
        assert isinstance(finished, Finished)
        progress = tuple(event for event in events if isinstance(event, PrefillProgress))
        return Predicted(kind, tokens, load, finished.effective.reading, progress)

    def _events(self, messages: tuple[Message, ...], mode: str) -> list[object]:
        values = {
            "drafting.drafter": "off",
            "sampling.temperature": 0.0,
            "sampling.max_tokens": 1,
            "tables.learn": False,
            "prefill.mode": mode,
        }
        return list(
            self._engine.generate(Generate("bench", messages, assign_all(Settings(), values.items())))
        )

    def _question(self, tokens: int, name: str) -> Message:
        """A question about a text of its own, which answers it in its middle."""
        tokenizer = self._engine.loaded.tokenizer
        text = document_text(crc32(f"{name} {tokens}".encode()), tokens)
        ids = tokenizer.encode(text, add_special_tokens=False)
        text = tokenizer.decode(ids[:tokens])
        place = text.find("\n", len(text) // 2) + 1
        text = f"{text[:place]}The locker of Yorick opens with the number 4711.\n{text[place:]}"
        question = "Which number opens the locker of Yorick?"
        return Message("user", question, (Attachment("minutes", text),))


@contextmanager
def _busy() -> Iterator[None]:
    """Another process computes without pause."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def _quiet() -> Iterator[None]:
    yield


def _line(each: Predicted) -> str:
    left_s = left_at(each.events, each.total_s / 2)
    left = "nothing" if left_s is None else f"{left_s:.1f} s"
    return (
        f"{each.kind}, {each.tokens:,} tokens, {each.load}: {each.total_s:.1f} s; at the half {left}"
        f" predicted, ratio {ratio_at(each.events):.2f}"
    )


def report(found: Sequence[Predicted]) -> list[str]:
    """Each reading; the share of good predictions, by load and by kind; the longest standstill."""
    if not found:
        return ["No reading."]
    rows = []
    for each in found:
        known = (event.time_s for event in each.events if event.seconds_left is not None)
        first_s = next(known, float("inf"))
        left_s = left_at(each.events, each.total_s / 2)
        rows.append(
            f"{each.kind} | {each.load} | {each.reading} | {each.tokens:,} | {each.total_s:.1f}"
            f" | {first_s:.1f} | {'–' if left_s is None else f'{left_s:.1f}'} | {ratio_at(each.events):.2f}"
            f" | {longest_unchanged_s(each.events):.1f}"
        )
    columns = "question | machine | reading | tokens | real total, s | first time after, s"
    columns += " | predicted left at the half, s | ÷ real | words unchanged, s"
    groups = {"all": found}
    groups |= {load: [each for each in found if each.load == load] for load in ("quiet", "busy")}
    groups |= {kind: [each for each in found if each.kind == kind] for kind in _READINGS}
    shares = [
        f"{name} | {len(group)} | {sum(each.is_within for each in group) / len(group):.0%}"
        f" | {median(ratio_at(each.events) for each in group):.2f}"
        for name, group in groups.items()
        if group
    ]
    longest_s = max(longest_unchanged_s(each.events) for each in found)
    return [
        *table(columns, rows, right_from=3),
        "",
        *table(f"readings | count | within {_WITHIN:.0%} | median ratio", shares, right_from=1),
        "",
        f"The words of a display stood still for {longest_s:.1f} s at most while work was left.",
    ]
