"""`draftlight bench sweep`: what the Lab shows: every drafter on every class, in one run, result by result.

Question: how many times faster than mlx-lm's plain loop is each drafter on each kind of prompt, is
its output the same, and what does reading less of a long prompt cost? The measuring is that of
the other benches: plain and drafted answers in turn on one model object (`runs`), conversations
turn by turn (`conversation`), and long prompts (`sweep_reading`). Each drafter answers the first
prompt once unmeasured, to warm up. Gates are held open: the drafter is measured.

Results are written after each, and with `--json` said at once, so a sweep that is stopped leaves
what it found, and the same command goes on with it. Runs that were interrupted are made again (`quiet`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from core.bench.decode.conversation import TurnRuns, converse
from core.bench.grid import OWN_OPTIONS, Configuration, configurations, with_draft_model
from core.bench.model import load_tried
from core.bench.prompts import BenchPrompt, default_prompts, fingerprint, read_prompts
from core.bench.quiet import Quiet, end_with_parent
from core.bench.runs import BenchRun, draftlight, first_difference, mlx_lm
from core.bench.statistic import speed_ratio
from core.bench.sweep.sweep_record import Record
from core.errors import DraftlightError, RequestError
from core.events import failure
from core.events.sweep import SweepCell, SweepPair, SweepResults, SweepTurn
from core.settings import Settings, assign

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

_WARM_UP_TOKENS = 16
_ASKED = ("classes", "set", "grid", "max_prompt_tokens", "draft_model", "draft_layers")
_ASKED_OF_READINGS = ("keep", "keep_tokens", "scorer")


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`; status 1 if it could not be done."""
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
    """The protocol's own copy of fd 1, which is pointed at stderr: no library's print may enter it."""
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
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine

    quiet = Quiet()
    with closing(quiet), tempfile.TemporaryDirectory() as scratch:
        engine = Engine()
        info, environment = load_tried(engine, options.model, blas, quiet=options.quiet or options.json)
        sweep = _Sweep(engine, options, record, quiet, prompts, chosen, Path(scratch))
        readings = None
        if options.keep:
            from core.bench.sweep.sweep_reading import SweepReadings

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
                asked=_asked(options),
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


def _asked(options: argparse.Namespace) -> str:
    """All that decides what is measured, but for what `SweepResults` has a field for."""
    files = ", ".join(f"{path.name} {fingerprint(path)}" for path in options.prompts or [default_prompts()])
    told = {name: vars(options)[name] for name in (*_ASKED, *_ASKED_OF_READINGS)}
    return f"{files}; " + ", ".join(f"{name} {value}" for name, value in told.items())


def _chosen_prompts(options: argparse.Namespace) -> list[BenchPrompt]:
    prompts = [prompt for path in options.prompts or [default_prompts()] for prompt in read_prompts(path)]
    kinds = {prompt.kind for prompt in prompts}
    wanted = set(options.classes) if options.classes != ("all",) else kinds
    if unknown := wanted - kinds:
        raise RequestError(
            f"No prompt is of the class “{sorted(unknown)[0]}”.", f"Choose from {', '.join(sorted(kinds))}."
        )
    return [prompt for prompt in prompts if prompt.kind in wanted]


class _Sweep:
    """All answers: for each prompt, each drafter in turn, so that classes fill up evenly."""

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
        """How many will be given, warm-up not counted."""
        single = sum(not prompt.turns for prompt in self._prompts)
        turns = sum(len(prompt.turns) for prompt in self._prompts)
        return int(2 * len(self._settings) * (single * self._pairs + turns))

    def run(self) -> None:
        """Measure all of it."""
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
        """Whether an earlier run measured it; a conversation is measured whole or again."""
        record = self._record
        if not prompt.turns:
            there = record.has(SweepCell, prompt=number, drafter=name)
        else:
            there = record.has(SweepTurn, kind=prompt.kind, drafter=name, turn=len(prompt.turns))
        if there:
            record.skip(answers=2 * (len(prompt.turns) or self._pairs))
        return there

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
        from core.bench.decode.parity import margin

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
        def talk() -> list[TurnRuns]:
            return list(converse(self._engine, prompt.turns, settings))

        began = time.perf_counter()
        for turn in self._quiet.undisturbed(talk):
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
