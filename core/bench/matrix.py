"""`draftlight bench`: cases × configurations × repeats, each paired with mlx-lm's loop. The Lab runs it, too.

Both answers of a pair are measured in turn in one process on the same model object, and every second round
begins with the other one, so that drift of the machine favours none; in a conversation mlx-lm answers first,
because its answer is the history of both. Every configuration answers once unmeasured before. Prefix caches
and learned tables are cleared before each pair. The gate is off, so the drafter itself is measured, and
documents are read sparsely; with `--model-defaults` both stay as the model's and Draftlight's defaults say.

Greedy outputs after a dense prefill must be equal; a difference is explained by the margins of both tokens at
width 1 and at the mean width of the answer's blocks. Main thread only.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec
from msgspec.structs import replace

from core.bench.answers import (
    BenchRun,
    BothRuns,
    converse,
    draftlight,
    draftlight_chat,
    first_difference,
    margin,
    mlx_lm,
    sampled_as,
    start_engine,
)
from core.bench.cases import (
    BUNDLED,
    Case,
    Configuration,
    configurations,
    fitted_ids,
    question_about,
    read_cases,
    truncated_copy,
    with_draft_model,
)
from core.bench.report import report
from core.bench.runner import Bench, BenchPiece, file_label, run_bench
from core.decoding.repetition import repeated_share
from core.drafting.registry import DRAFTERS
from core.errors import DraftlightError, RequestError
from core.events import Message, failure
from core.events.bench import BenchEnded, BenchEvent, BenchStarted, Difference, Pair, Record
from core.settings import Settings, assign, read

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine

T = TypeVar("T")

ALL_DRAFTERS = ("all",)
_WARM_UP_TOKENS = 1024
# A running forward ends before the process does.
_GRACE_S = 10.0
ENDED = 143  # 128 + SIGTERM


def run(options: argparse.Namespace) -> int:
    """Measure and write `bench.jsonl` and `bench.md`. Exit status 1 if not all is as requested."""
    channel = _channel() if options.json else None

    def say(event: BenchEvent) -> None:
        if channel is not None:
            line = memoryview(msgspec.json.encode(event) + b"\n")
            while line:
                line = line[channel.write(line) or 0 :]

    try:
        return _run(options, say)
    except (DraftlightError, RuntimeError, MemoryError) as error:  # the last two if memory is exhausted
        if channel is None:
            raise
        say(failure(error, command="bench"))
    return 1


def _run(options: argparse.Namespace, say: Callable[[BenchEvent], None]) -> int:
    cases = read_cases(options.cases, options.prompt_tokens, options.each, options.seed)
    _configurations(options)  # report errors before a model is loaded
    began = time.perf_counter()
    with closing(Quiet()) as quiet, tempfile.TemporaryDirectory() as scratch:
        engine, info, environment = start_engine(options.model, quiet=options.quiet or options.json)
        for case in cases:
            if case.tokens and case.tokens + options.max_tokens > info.context_tokens:
                raise RequestError(
                    f"A prompt of {case.tokens:,} tokens and an answer of {options.max_tokens:,} exceed the"
                    f" context of {info.name}, {info.context_tokens:,} tokens.",
                    "Choose less --prompt-tokens.",
                )
        defaults = [(each.key, read(info.settings, each.key)) for each in info.defaults]
        chosen = _configurations(options, defaults if options.model_defaults else ())
        if any(each.settings.decoding.exactness == "exact" for each in chosen):
            engine.exactness_profile(complete=True)
        copy = partial(truncated_copy, Path(info.path), options.draft_layers, Path(scratch) / "draft")
        matrix = _Matrix(engine, with_draft_model(chosen, options.draft_model, copy), options.seed)
        pieces = [
            BenchPiece(
                (case.id, each.name, repeat),
                partial(quiet.undisturbed, partial(matrix.record, case, each.name, repeat)),
            )
            for repeat in range(1, options.pairs + 1)
            for case in cases
            for each in chosen
        ]
        say(BenchStarted(info.name, environment.line, len(pieces)))

        def line(record: Record) -> str:
            say(record)
            return _line(record)

        conditions = (
            *(
                info.name,
                *map(_label, options.cases),
                f"seed {options.seed}, {options.max_tokens} new tokens",
            ),
            f"draft model {options.draft_model or f'of {options.draft_layers} layers'}",
            *(["the model's own sampling"] if options.model_defaults else []),
        )
        bench = Bench("bench", "Draftlight and mlx-lm", environment, conditions, Record, options.out)
        describe = partial(report, heading="; ".join(conditions))
        records, progress = run_bench(bench, pieces, line, describe, quiet=options.quiet or options.json)
        engine.close()
    if progress.whole:
        say(BenchEnded(time.perf_counter() - began))
    return progress.status(all(_is_good(pair) for record in records for pair in record.pairs))


def _is_good(pair: Pair) -> bool:
    """Whether the outputs are equal, and a document was read sparsely as requested."""
    return pair.equal and all(change.setting != "prefill.mode" for change in pair.changes)


def _label(name: str) -> str:
    """A value of `--cases`, with a fingerprint of its file."""
    path = BUNDLED.get(name, Path(name))
    return file_label(path) if path.exists() else name


def _configurations(
    options: argparse.Namespace, defaults: Sequence[tuple[str, object]] = ()
) -> list[Configuration]:
    """The configurations that the options ask for. Raises `SettingError`."""
    drafters = options.drafters
    if drafters == ALL_DRAFTERS:
        own = ("", "draft model") if options.draft_model else ("",)
        drafters = [name for name, spec in DRAFTERS.items() if spec.needs_proposer in own]
    common = [("sampling.max_tokens", options.max_tokens), *defaults]
    if not options.model_defaults:
        common += [("gate.mode", "always")]
        common += [("prefill.mode", "on")]
    return configurations(drafters, common, options.set)


def _line(record: Record) -> str:
    """A line about one record, for the terminal."""
    pairs = []
    for pair in record.pairs:
        speed = f"{pair.ratio:.2f}×" if pair.ratio else f"first token after {pair.stats.ttft_s:.2f} s"
        pairs.append(f"{speed}{'' if pair.equal else ' DIFFERENT'}")
    return f"{record.case}, {record.configuration}: {', '.join(pairs)}"


# ---- measuring


class _Matrix:
    """Measures records. `settings`: of each configuration by name; `seed` of the padding of prompts."""

    def __init__(self, engine: Engine, settings: dict[str, Settings], seed: int) -> None:
        self._engine = engine
        self._settings = settings
        self._warm: set[str] = set()
        tokenizer = engine.loaded.tokenizer
        self._ids = cache(lambda case: fitted_ids(tokenizer, case, seed))
        self._messages = cache(lambda case: question_about(tokenizer, case))

    def record(self, case: Case, name: str, repeat: int) -> Record:
        """Both sides' answers to a case, with the configuration `name`."""
        settings = self._settings[name]
        if not case.document:  # token ids alone have no passages
            settings = assign(settings, "prefill.mode", "off")
        if name not in self._warm:
            self._warm.add(name)
            self._warm_up(case, settings)
        began = time.perf_counter()
        pairs = tuple(self._pair(runs, settings) for runs in self._both(case, settings, repeat))
        return Record(case.id, case.kind, name, repeat, pairs, time.perf_counter() - began)

    def _both(self, case: Case, settings: Settings, repeat: int) -> Iterator[BothRuns]:
        engine = self._engine
        if case.turns:
            yield from converse(engine, case.turns, settings)
            return
        messages: tuple[Message, ...] = ()
        if case.document:
            messages = self._messages(case)
            ids = _rendered(engine, messages)
            _prepare_vectors(messages, attached=case.attached)
        else:
            ids = self._ids(case)
        own: BenchRun | None = None
        for side in ("plain", "own") if repeat % 2 else ("own", "plain"):
            if side == "plain":
                engine.forget(tables=True)
                plain = mlx_lm(engine, ids, settings.sampling.max_tokens, **sampled_as(settings.sampling))
            elif messages:
                own = draftlight_chat(engine, messages, settings)
            else:
                own = draftlight(engine, ids, settings)
        assert own is not None
        yield BothRuns(ids, plain, own, self._two_models(ids, settings))

    def _two_models(self, ids: Sequence[int], settings: Settings) -> BenchRun | None:
        """mlx-lm's speculative path with the draft model that Draftlight just used."""
        proposer = self._engine.proposer
        if settings.drafting.drafter != "draft-model" or proposer is None:
            return None
        models = {"draft_model": proposer.loaded.model, "num_draft_tokens": settings.draft_model.k}
        return mlx_lm(self._engine, ids, settings.sampling.max_tokens, **models)

    def _warm_up(self, case: Case, settings: Settings) -> None:
        """An unmeasured answer of each side to the end of the case's prompt."""
        engine = self._engine
        if case.turns:
            ids = _rendered(engine, (Message("user", case.turns[0]),))
        elif case.document:
            ids = _rendered(engine, self._messages(case))
        else:
            ids = self._ids(case)
        ids = ids[-_WARM_UP_TOKENS:]
        mlx_lm(engine, ids, settings.sampling.max_tokens)
        draftlight(engine, ids, settings)

    def _pair(self, runs: BothRuns, settings: Settings) -> Pair:
        own, plain = runs.own, runs.plain
        assert own.stats is not None
        assert own.effective is not None
        compared = not settings.sampling.temperature and own.effective.reading == "dense"
        index = first_difference(plain.tokens, own.tokens) if compared else None
        return Pair(
            own.stats,
            len(plain.tokens),
            plain.ttft_s,
            plain.tokens_per_s,
            plain.peak_bytes,
            own.peak_bytes,
            compared=compared,
            difference=None if index is None else self._difference(runs, index),
            changes=own.effective.changes,
            reading=own.effective.reading,
            reading_reason=own.effective.reading_reason,
            two_models_per_s=runs.two_models.tokens_per_s if runs.two_models else 0.0,
            repeated=repeated_share(own.tokens),
        )

    def _difference(self, runs: BothRuns, index: int) -> Difference:
        plain, own, stats = runs.plain.tokens, runs.own.tokens, runs.own.stats
        assert stats is not None
        decode = self._engine.loaded.tokenizer.decode
        found = Difference(index, decode(plain[index : index + 1]), decode(own[index : index + 1]))
        if index >= min(len(plain), len(own)):
            return found
        # The mean width of the drafted steps.
        width = max(2, round(1 + stats.drafted / max(1, stats.bonus)))
        one, wide = (margin(self._engine, runs.ids, plain, own, index, w) for w in (1, width))
        noise = 2.0 * self._engine.exactness_profile().noise
        explained = min(abs(one), abs(wide)) <= noise
        return replace(found, width=width, margin=one, margin_at_width=wide, explained=explained)


def _rendered(engine: Engine, messages: Sequence[Message]) -> list[int]:
    from core.prompt import render

    return render(engine.loaded.tokenizer, messages).ids


def _prepare_vectors(messages: Sequence[Message], *, attached: bool) -> None:
    """Compute or erase the vectors of the documents' passages; prompts hold their texts stripped."""
    from core.encoder.store import Embedder, text_key
    from core.prefill.passages import cut

    embedder = Embedder()
    for text in (each.text.strip() for message in messages for each in message.attachments):
        embedder.erase(text_key(text))
        if attached:
            for _ in embedder.vectors(text, cut(text)):
                pass
    embedder.unload()


# ---- the process of the Lab


def _channel() -> BinaryIO:
    """A copy of file descriptor 1 for events. Descriptor 1 then points at stderr, for prints of libraries."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    return out


def _end_with_parent() -> None:
    """Ends this process when its stdin closes, which means that the parent process has exited."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(ENDED)


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


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(ENDED)
