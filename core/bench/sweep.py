"""`draftlight bench sweep`, which the window's Lab runs: every drafter on every class of prompts.

It measures each drafter's speed relative to mlx-lm's plain loop, whether its output is equal, and the effect
of sparse prefill on a long prompt. Plain and drafted answers alternate on one model object, conversations
turn by turn. Each drafter answers its first prompt once unmeasured to warm up. The gate is off, so the
drafter itself is measured.

Every result is written as soon as it is measured and, with `--json`, sent on stdout, so an interrupted sweep
keeps its results and the same command continues it. Main thread only.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from core.bench.cases import (
    OWN_OPTIONS,
    BenchPrompt,
    Configuration,
    configurations,
    default_prompts,
    file_label,
    read_prompts,
    with_draft_model,
)
from core.bench.harness import Journal, speed_ratio
from core.bench.runs import (
    BenchRun,
    TurnRuns,
    converse,
    draftlight,
    draftlight_chat,
    first_difference,
    margin,
    mlx_lm,
    start_engine,
)
from core.bench.sweep_record import Record
from core.errors import DraftlightError, RequestError
from core.events import Message, failure
from core.events.sweep import SweepCell, SweepLikeness, SweepPair, SweepReading, SweepResults, SweepTurn
from core.settings import Settings, assign, assign_all

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.bench.quality import Trial
    from core.bench.quality_readers import Reader
    from core.engine.engine import Engine

T = TypeVar("T")

_WARM_UP_TOKENS = 16
_CONDITION_OPTIONS = ("classes", "set", "grid", "max_prompt_tokens", "draft_model", "draft_layers")
_READING_OPTIONS = ("keep", "keep_tokens", "scorer")
# Kinds of `core.bench.cases` that differ from each other and are long enough.
_KINDS = ("minutes", "code")
_CONTINUATION_TOKENS = 64
_READING_WARM_UP_TOKENS = 256
_ALL = 100.0
# A running forward ends before the process does.
_GRACE_S = 10.0
ENDED = 143  # 128 + SIGTERM


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`. Exit status 1 on failure."""
    record = Record(options.out, _channel() if options.json else None, quiet=options.quiet)
    try:
        return _run(options, record)
    except DraftlightError as error:
        if not options.json:
            raise
        record.say(failure(error, command="sweep"))
    except (RuntimeError, MemoryError) as error:  # what MLX raises when memory is exhausted
        if not options.json:
            raise
        record.say(failure(error, command="sweep"))
    return 1


def _channel() -> Any:
    """A copy of file descriptor 1 for events. Descriptor 1 then points at stderr, for prints of libraries."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    end_with_parent()
    return out


def _run(options: argparse.Namespace, record: Record) -> int:
    prompts = _chosen_prompts(options)
    chosen = configurations(
        options.drafters,
        [
            ("gate.mode", "always"),
            ("decoding.exactness", options.exactness),
            ("sampling.max_tokens", options.max_tokens),
        ],
        sets=options.set,
        grids=options.grid,
        own_options={**OWN_OPTIONS, "decoding.exactness": "--exactness"},
    )
    quiet = Quiet()
    with closing(quiet), tempfile.TemporaryDirectory() as scratch:
        engine, info, environment = start_engine(options, quiet=options.json)
        sweep = _Sweep(engine, options, record, quiet, prompts, chosen, Path(scratch))
        readings = None
        if options.keep:
            readings = SweepReadings(engine, options, options.keep, record, quiet)
        record.begin(
            SweepResults(
                "sweep",
                info.name,
                environment.line,
                tuple(each.name for each in chosen),
                options.exactness,
                options.pairs,
                options.max_tokens,
                time.time(),
                reference=options.model,
                noise=engine.exactness_profile(complete=options.exactness == "exact").noise,
                asked=_conditions(options),
            ),
            sweep.answers,
            readings.count if readings else 0,
        )
        sweep.run()
        if readings:
            readings.run()
        engine.close()
    record.end()
    return 0


def _conditions(options: argparse.Namespace) -> str:
    """The options that affect the results and have no field in `SweepResults`."""
    files = ", ".join(map(file_label, options.prompts or [default_prompts()]))
    values = {name: vars(options)[name] for name in (*_CONDITION_OPTIONS, *_READING_OPTIONS)}
    return f"{files}; " + ", ".join(f"{name} {value}" for name, value in values.items())


def _chosen_prompts(options: argparse.Namespace) -> list[BenchPrompt]:
    prompts = [prompt for path in options.prompts or [default_prompts()] for prompt in read_prompts(path)]
    kinds = {prompt.kind for prompt in prompts}
    wanted = set(options.classes) if options.classes != ("all",) else kinds
    if unknown := wanted - kinds:
        raise RequestError(
            f"No prompt has the class “{sorted(unknown)[0]}”.", f"Choose from {', '.join(sorted(kinds))}."
        )
    return [prompt for prompt in prompts if prompt.kind in wanted]


class _Sweep:
    """The answers of a sweep, prompt by prompt and for each prompt every drafter."""

    def __init__(
        self,
        engine: Engine,
        options: argparse.Namespace,
        record: Record,
        quiet: Quiet,
        prompts: Sequence[BenchPrompt],
        chosen: Sequence[Configuration],
        scratch: Path,
    ) -> None:
        self._engine = engine
        self._record = record
        self._quiet = quiet
        self._pairs = options.pairs
        self._prompts = prompts
        folder = Path(engine.loaded.info.path)
        drafted = with_draft_model(options, chosen, folder, scratch)
        self._settings = {each.name: settings for each, settings in drafted}
        encode = engine.loaded.tokenizer.encode
        self._ids = [
            encode(prompt.prompt)[: options.max_prompt_tokens] if prompt.prompt else [] for prompt in prompts
        ]

    @property
    def answers(self) -> int:
        """Number of answers, without warm-up."""
        single = sum(not prompt.turns for prompt in self._prompts)
        turns = sum(len(prompt.turns) for prompt in self._prompts)
        return int(2 * len(self._settings) * (single * self._pairs + turns))

    def run(self) -> None:
        """Measure everything that the record does not have."""
        warm: set[str] = set()
        for number, prompt in enumerate(self._prompts):
            for name, settings in self._settings.items():
                self._record.doing(f"{prompt.kind}, {name}")
                if self._skipped(number, prompt, name):
                    continue
                if name not in warm:
                    warm.add(name)
                    ids = self._ids[number] or self._engine.loaded.tokenizer.encode(prompt.turns[0])
                    self._warm_up(ids, settings)
                if prompt.turns:
                    self._converse(prompt, name, settings)
                else:
                    self._record.add(self._cell(number, name, settings))

    def _skipped(self, number: int, prompt: BenchPrompt, name: str) -> bool:
        """Whether an earlier run measured it. An incomplete conversation is measured again."""
        record = self._record
        if not prompt.turns:
            measured = record.has(SweepCell, prompt=number, drafter=name)
        else:
            measured = record.has(SweepTurn, kind=prompt.kind, drafter=name, turn=len(prompt.turns))
        if measured:
            record.skip(answers=2 * (len(prompt.turns) or self._pairs))
        return measured

    def _warm_up(self, ids: Sequence[int], settings: Settings) -> None:
        mlx_lm(self._engine, ids, _WARM_UP_TOKENS)
        draftlight(self._engine, ids, assign(settings, "sampling.max_tokens", _WARM_UP_TOKENS))

    def _cell(self, number: int, name: str, settings: Settings) -> SweepCell:
        ids = self._ids[number]
        pairs = []
        last: BenchRun | None = None
        for _ in range(self._pairs):
            began = time.perf_counter()
            plain, last = self._quiet.undisturbed(lambda: self._pair(ids, settings))
            self._record.answered(2, time.perf_counter() - began)
            pairs.append(self._compared(ids, plain, last))
        assert last is not None
        assert last.stats is not None
        assert last.effective is not None
        return SweepCell(
            self._prompts[number].kind,
            number,
            name,
            len(ids),
            len(last.tokens),
            last.stats.acceptance,
            last.stats.mean_per_step,
            last.stats.positions,
            tuple(pairs),
            last.effective.changes,
        )

    def _pair(self, ids: Sequence[int], settings: Settings) -> tuple[BenchRun, BenchRun]:
        return mlx_lm(self._engine, ids, settings.sampling.max_tokens), draftlight(
            self._engine, ids, settings
        )

    def _compared(self, ids: Sequence[int], plain: BenchRun, drafted: BenchRun) -> SweepPair:
        difference = first_difference(plain.tokens, drafted.tokens)
        pair = SweepPair(
            speed_ratio(drafted.tokens_per_s, plain.tokens_per_s),
            drafted.tokens_per_s,
            plain.tokens_per_s,
            drafted.ttft_s,
            plain.ttft_s,
        )
        return pair if difference is None else self._differing(pair, ids, plain, drafted, difference)

    def _differing(
        self, pair: SweepPair, ids: Sequence[int], plain: BenchRun, drafted: BenchRun, difference: int
    ) -> SweepPair:
        by: float | None = None
        if difference < min(len(plain.tokens), len(drafted.tokens)):
            by = margin(self._engine, ids, plain.tokens, drafted.tokens, difference, 1)
        noise = 2.0 * self._engine.exactness_profile().noise
        decode = self._engine.loaded.tokenizer.decode
        return replace(
            pair,
            difference=difference,
            margin=by,
            close_call=by is not None and abs(by) <= noise,
            plain_text=decode(plain.tokens),
            drafted_text=decode(drafted.tokens),
        )

    def _converse(self, prompt: BenchPrompt, name: str, settings: Settings) -> None:
        def all_turns() -> list[TurnRuns]:
            return list(converse(self._engine, prompt.turns, settings))

        began = time.perf_counter()
        for turn in self._quiet.undisturbed(all_turns):
            self._record.add(
                SweepTurn(
                    prompt.kind,
                    name,
                    turn.turn,
                    turn.prompt_tokens,
                    turn.candidate.tokens_per_s,
                    turn.baseline.tokens_per_s,
                    first_difference(turn.baseline.tokens, turn.candidate.tokens) is None,
                )
            )
        self._record.answered(2 * len(prompt.turns), time.perf_counter() - began)


# ---- sparse prefill


class SweepReadings:
    """Sparse prefill of long prompts at `keeps` percent: time to first token, agreement with dense prefill.

    At 100% everything is read. Times are single cold runs, after one dense run of mlx-lm. Agreement is the
    share of next tokens on generated documents that equal those after dense prefill.
    """

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
                f"A prompt of {options.keep_tokens:,} tokens exceeds the limit of {limit:,} tokens for"
                f" {engine.loaded.info.name}.",
                f"Choose --keep-tokens of at most {limit:,}.",
            )
        from core.prefill.scorers import SCORERS

        if SCORERS[options.scorer].needs_draft:
            others = " or ".join(spec.name for spec in SCORERS.values() if not spec.needs_draft)
            raise RequestError(
                f"A sweep does not support the scorer “{options.scorer}”.", f"Choose --scorer {others}."
            )
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
        """Number of long prompts to read."""
        return len(self._keeps) + 1 + len(_KINDS) * (len(self._sparse) + 1)

    def run(self) -> None:
        """Measure everything that the record does not have, times first."""
        keeps = [keep for keep in self._keeps if not self._record.has(SweepReading, keep_pct=keep)]
        self._record.skip(readings=len(self._keeps) - len(keeps) if keeps else len(self._keeps) + 1)
        if keeps:
            self._times(keeps)
        if all(self._record.has(SweepLikeness, keep_pct=keep) for keep in self._sparse):
            self._record.skip(readings=self.count - len(self._keeps) - 1)
        else:
            self._agreements()

    def _times(self, keeps: Sequence[float]) -> None:
        from core.bench.prefill import messages_of
        from core.models.prompt import render

        engine = self._engine
        wanted = argparse.Namespace(tokens=self._tokens, document=None, kind="minutes", seed=1)
        messages = messages_of(engine, wanted)
        prompt = render(engine.loaded.tokenizer, messages).ids
        step = Settings().prefill.chunk_tokens
        mlx_lm(engine, prompt[:_READING_WARM_UP_TOKENS], 1, prefill_step_size=step)
        draftlight(engine, prompt[:_READING_WARM_UP_TOKENS], self._settings(_ALL))
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

    def _agreements(self) -> None:
        """Read each document densely once, then at each percentage."""
        from core.bench.quality import Trial, try_readers
        from core.bench.quality_readers import document_probe, readers

        loaded = self._engine.loaded
        chosen: list[Reader] = []
        for keep in self._sparse:
            settings = self._settings(keep).prefill
            dense, scored = readers([self._scorer], loaded, settings, None)
            scored.name = f"{keep:g}"
            chosen += [scored] if chosen else [dense, scored]
        if not self._record.resumed:
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


# ---- signals


class Quiet:
    """Repeats measurements during which the process was suspended; `close()` restores the signal handlers.

    The time of a measurement is wrong if the process was stopped with SIGSTOP and continued with SIGCONT
    meanwhile. SIGTERM raises `SystemExit`, so that `finally` clauses remove scratch files.
    """

    def __init__(self) -> None:
        self._suspended = False
        self._before = {number: signal.getsignal(number) for number in (signal.SIGCONT, signal.SIGTERM)}
        signal.signal(signal.SIGCONT, self._continued)
        signal.signal(signal.SIGTERM, _exit)

    def close(self) -> None:
        """Restore the previous signal handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def undisturbed(self, measure: Callable[[], T]) -> T:
        """Call `measure` until it runs without being suspended, and return its result."""
        while True:
            self._suspended = False
            found = measure()
            if not self._suspended:
                return found

    def _continued(self, number: int, frame: FrameType | None) -> None:
        self._suspended = True


def end_with_parent() -> None:
    """End this process when its stdin closes, which means that the parent process has exited."""
    threading.Thread(target=_watch, name="parent", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(ENDED)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(ENDED)
