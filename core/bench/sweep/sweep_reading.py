"""The part of a sweep that is about long prompts: what reading less saves, and what it changes.

Seconds to the first token are those of `bench prefill`, one cold run each with one dense run of
mlx-lm before them; agreement is that of `bench quality` on documents. Worker's main thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from core.bench.journal import Journal
from core.bench.prefill.prefill import messages_of
from core.bench.quality.probes import document_probe
from core.bench.quality.quality import try_readers
from core.bench.quality.readers import Reader, readers
from core.bench.quality.trial import Trial
from core.bench.quiet import Quiet
from core.bench.runs import BenchRun, draftlight, draftlight_chat, mlx_lm
from core.bench.sweep.sweep_record import Record
from core.errors import RequestError
from core.events import Message
from core.events.sweep import SweepLikeness, SweepReading
from core.models.prompt import render
from core.prefill.scorers.registry import SCORERS
from core.settings import Settings, assign_all

if TYPE_CHECKING:
    from core.engine.engine import Engine

# Of `core.bench.documents`: unlike each other, and each long enough.
_KINDS = ("minutes", "code")
_CONTINUATION_TOKENS = 64
_WARM_UP_TOKENS = 256
_ALL = 100.0


class SweepReadings:
    """`keeps` are percentages; 100 stands for reading everything."""

    def __init__(
        self,
        engine: Engine,
        options: argparse.Namespace,
        keeps: Sequence[float],
        record: Record,
        quiet: Quiet,
    ) -> None:
        limit = engine.loaded.info.context_tokens - _CONTINUATION_TOKENS - 1
        if options.keep_tokens > limit:
            raise RequestError(
                f"A prompt of {options.keep_tokens:,} tokens is more than {engine.loaded.info.name} takes"
                f" ({limit:,}).",
                f"Choose --keep-tokens of at most {limit:,}.",
            )
        if SCORERS[options.scorer].needs_draft:
            others = " or ".join(spec.name for spec in SCORERS.values() if not spec.needs_draft)
            raise RequestError(f"“{options.scorer}” cannot be swept.", f"Choose --scorer {others}.")
        self._engine = engine
        self._scorer = options.scorer
        self._tokens = options.keep_tokens
        self._keeps = sorted(keeps)
        self._sparse = [keep for keep in self._keeps if keep < _ALL]
        self._record = record
        self._quiet = quiet
        self._trials = options.out / "trials.jsonl"

    @property
    def count(self) -> int:
        """How many long prompts will be read."""
        return len(self._keeps) + 1 + len(_KINDS) * (len(self._sparse) + 1)

    def run(self) -> None:
        """Measure all that no earlier run left: seconds first."""
        keeps = [keep for keep in self._keeps if not self._record.has(SweepReading, keep_pct=keep)]
        self._record.skip(readings=len(self._keeps) - len(keeps) if keeps else len(self._keeps) + 1)
        if keeps:
            self._seconds(keeps)
        if all(self._record.has(SweepLikeness, keep_pct=keep) for keep in self._sparse):
            self._record.skip(readings=self.count - len(self._keeps) - 1)
        else:
            self._likeness()

    def _seconds(self, keeps: Sequence[float]) -> None:
        engine = self._engine
        wanted = argparse.Namespace(tokens=self._tokens, document=None, kind="minutes", seed=1)
        messages = messages_of(engine, wanted)
        prompt = render(engine.loaded.tokenizer, messages).ids
        step = Settings().prefill.chunk_tokens
        mlx_lm(engine, prompt[:_WARM_UP_TOKENS], 1, prefill_step_size=step)
        draftlight(engine, prompt[:_WARM_UP_TOKENS], self._settings(_ALL))
        self._record.doing("reading everything")
        dense = self._timed(lambda: mlx_lm(engine, prompt, 1, prefill_step_size=step))
        for keep in keeps:
            self._record.doing(f"reading {keep:g}%")
            settings = self._settings(keep)
            self._record.add(self._reading(keep, self._cold(messages, settings), dense))

    def _cold(self, messages: tuple[Message, ...], settings: Settings) -> BenchRun:
        return self._timed(lambda: draftlight_chat(self._engine, messages, settings))

    def _timed(self, read: Callable[[], BenchRun]) -> BenchRun:
        began = time.perf_counter()
        found = self._quiet.undisturbed(read)
        self._record.read(time.perf_counter() - began)
        return found

    def _settings(self, keep: float) -> Settings:
        return assign_all(
            Settings(),
            [
                ("drafting.drafter", "off"),
                ("sampling.max_tokens", 1),
                ("prefill.mode", "on" if keep < _ALL else "off"),
                ("prefill.scorer", self._scorer),
                ("prefill.keep_pct", keep),
            ],
        )

    def _reading(self, keep: float, run: BenchRun, dense: BenchRun) -> SweepReading:
        assert run.stats is not None
        assert run.effective is not None
        return SweepReading(
            self._scorer,
            keep,
            run.stats.prompt_tokens,
            run.stats.read_tokens,
            run.ttft_s,
            dense.ttft_s,
            run.effective.reading,
            run.effective.reading_reason,
        )

    def _likeness(self) -> None:
        """Each document is read densely once, then by each keep."""
        loaded = self._engine.loaded
        chosen: list[Reader] = []
        for keep in self._sparse:
            settings = self._settings(keep).prefill
            dense, scored = readers([self._scorer], loaded, settings, None)
            scored.name = f"{keep:g}"
            chosen += [scored] if chosen else [dense, scored]
        if not self._record.goes_on:
            self._trials.unlink(missing_ok=True)
        trials = Journal(self._trials, self._record.results.asked, Trial)
        for kind in _KINDS:
            self._record.doing(f"agreement, {kind}")
            probe = document_probe(loaded, kind, 1, self._tokens, _CONTINUATION_TOKENS)
            began = time.perf_counter()
            for trial in try_readers(probe, chosen, trials):
                trials.add(trial)
                self._record.read(time.perf_counter() - began)
                began = time.perf_counter()
        for keep in self._sparse:
            if self._record.has(SweepLikeness, keep_pct=keep):
                continue
            self._record.add(self._agreement(keep, trials.all))

    def _agreement(self, keep: float, trials: Sequence[Trial]) -> SweepLikeness:
        named = [trial.top1_agreement for trial in trials if trial.reader == f"{keep:g}"]
        own = [agreement for agreement in named if agreement is not None]
        return SweepLikeness(
            self._scorer, keep, len(own), len(own) * _CONTINUATION_TOKENS, sum(own) / len(own)
        )
