"""`draftlight bench prefill`: time to first token of a long document with sparse prefill, against mlx-lm.

The baseline is mlx-lm's dense prefill of the same prompt (`stream_generate` with its defaults). Baseline and
configurations run in rounds in one process on the same model object, every second round in reverse order, so
that drift of the machine favours none. The reported ratio is the median over the rounds. Every run is cold
and without stored vectors of the document's passages; for a scorer name that ends with “-attached”, the
vectors are computed first, as for a document that was attached before the question.

The ratio is compared with the cost model of the SpecPrefill paper, 1 / (r + k): r is scoring time / dense
time, k the share of the prompt that was read.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from core.bench.cases import document
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
from core.bench.runs import draftlight, draftlight_chat, mlx_lm, start_engine
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import Settings, assign, assign_all

if TYPE_CHECKING:  # importing it loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

# Target ratios of (scorer, keep) for 8,000 tokens on a CPU.
TARGETS: dict[tuple[str, float], float] = {
    ("lexical", 20.0): 6.0,
    ("fusion", 12.0): 9.0,
    ("fusion-attached", 12.0): 18.0,
}
TARGET_WHOLE = 0.97
TARGET_OF_MODEL = 0.85
_WARM_UP_TOKENS = 1024
_ATTACHED = "-attached"
# The key of mlx-lm's dense prefill.
_BASELINE = ("", 0.0)
_QUESTION = "What was decided last, and who was asked to report on it?"


class PrefillReading(Struct, frozen=True):
    """One prefill in round `number`; `scorer` is empty for mlx-lm.

    `score_s` is part of the TTFT. `peak_bytes`: MLX's peak memory, weights included. `ran`: the prefill that
    was used, `dense` or `sparse`, and its `reason`.
    """

    number: int
    scorer: str
    keep_pct: float
    ttft_s: float
    peak_bytes: int
    score_s: float = 0.0
    prompt_tokens: int = 0
    read_tokens: int = 0
    ran: str = ""
    reason: str = ""

    @property
    def key(self) -> tuple[int, str, float]:
        return self.number, self.scorer, self.keep_pct


class PrefillPair(Struct, frozen=True):
    """Baseline and candidate of one round; fields as in `PrefillReading`."""

    baseline_ttft_s: float
    ttft_s: float
    ratio: float
    score_s: float
    baseline_peak_bytes: int
    peak_bytes: int


class PrefillCell(Struct, frozen=True):
    """One scorer at one keep; `ran` and `reason` as in `PrefillReading`."""

    scorer: str
    keep_pct: float
    ran: str
    reason: str
    prompt_tokens: int
    read_tokens: int
    target: float
    pairs: tuple[PrefillPair, ...]

    @property
    def ratio(self) -> float:
        return median(pair.ratio for pair in self.pairs)

    @property
    def score_share(self) -> float:
        """r: the cost of scoring over the cost of the dense prefill."""
        return median(pair.score_s / pair.baseline_ttft_s for pair in self.pairs)

    @property
    def read_share(self) -> float:
        """k: the share of the prompt that was read."""
        return self.read_tokens / self.prompt_tokens

    @property
    def predicted(self) -> float:
        """The ratio by the cost model, 1 / (r + k)."""
        return 1.0 / (self.score_share + self.read_share)

    @property
    def as_asked(self) -> bool:
        """Whether the requested prefill was used: sparse, except at 100%."""
        return self.ran == "sparse" or self.keep_pct == 100.0

    @property
    def met(self) -> bool:
        return self.as_asked and self.ratio >= self.target and self.ratio >= TARGET_OF_MODEL * self.predicted


class PrefillResults(Struct, frozen=True):
    """The content of `results.json`."""

    bench: str
    environment: Environment
    model: str
    document: str
    chunk_tokens: int
    draft_model: str
    cells: tuple[PrefillCell, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `readings.jsonl`, `results.json` and `report.md`.

    Exit status 1 if sparse prefill was requested and not used.
    """
    engine, info, environment = start_engine(options)
    limit = info.context_tokens - 1
    if options.tokens > limit:
        raise RequestError(
            f"A prompt of {options.tokens:,} tokens exceeds the limit of {info.name} ({limit:,}).",
            f"Choose --tokens of at most {limit:,}.",
        )
    messages = messages_of(engine, options)
    with tempfile.TemporaryDirectory() as scratch:
        settings, draft = _settings(options, Path(info.path), Path(scratch))
        name = options.document.name if options.document else f"{options.kind} (generated)"
        journal = Journal(
            options.out / "readings.jsonl",
            conditions(
                environment,
                info.name,
                f"{name}, seed {options.seed}, {options.tokens} tokens",
                f"draft model {draft or 'none'}",
            ),
            PrefillReading,
        )
        chosen = list(_configurations(options.scorers, options.keep))
        reader = _Reader(engine, messages, settings, chosen)
        # Draftlight's dense prefill directly after mlx-lm's: their ratio is near 1, and drift would decide
        # it.
        order = [_BASELINE, *sorted(chosen, key=lambda which: which[1] < 100.0)]
        pieces = [
            BenchPiece((number, *which), partial(reader.read, number, *which))
            for number in range(options.pairs)
            for which in (order if number % 2 == 0 else order[::-1])
        ]
        measured, progress = measure(journal, pieces, lambda reading: [_line(reading)], quiet=options.quiet)
    readings = {reading.key: reading for reading in measured}
    results = PrefillResults(
        "prefill",
        environment,
        info.name,
        name,
        settings.prefill.chunk_tokens,
        draft,
        tuple(cell for which in chosen if (cell := _cell(*which, readings, options.pairs))),
        progress,
    )
    publish(options.out, results, write_report(results))
    return progress.status(all(cell.as_asked for cell in results.cells))


def messages_of(engine: Engine, options: argparse.Namespace) -> tuple[Message, ...]:
    """A question about a document, `options.tokens` tokens in all (fewer if the document is shorter)."""
    tokenizer = engine.loaded.tokenizer
    if options.document:
        try:
            parts: Iterator[str] = iter([options.document.read_text(encoding="utf-8")])
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"{options.document} cannot be read: {error}.", "Give UTF-8 text.") from None
    else:
        parts = document(options.kind, options.seed)
    ids: list[int] = []
    for part in parts:
        ids += tokenizer.encode(part, add_special_tokens=False)
        if len(ids) >= options.tokens:
            break
    length = len(ids[: options.tokens])
    empty = len(_rendered(engine, (Message("user", _QUESTION, (Attachment("document", ""),)),)))
    if empty >= options.tokens:
        raise RequestError(
            f"A prompt of {options.tokens:,} tokens is too short for a document:"
            f" the question and the chat template have {empty:,}.",
            "Choose more --tokens.",
        )
    # Cutting tokens can split a character or a word, so the rendered prompt is measured each time.
    while True:
        message = Message("user", _QUESTION, (Attachment("document", tokenizer.decode(ids[:length])),))
        over = len(_rendered(engine, (message,))) - options.tokens
        if over <= 0:
            return (message,)
        length = max(0, length - over)


def _rendered(engine: Engine, messages: tuple[Message, ...]) -> list[int]:
    from core.models.prompt import render

    return render(engine.loaded.tokenizer, messages).ids


def _settings(options: argparse.Namespace, model: Path, scratch: Path) -> tuple[Settings, str]:
    """The common settings of all runs, and the name of the draft model (empty if none is needed)."""
    settings = assign_all(
        Settings(),
        [("drafting.drafter", "off"), ("sampling.max_tokens", 1), ("sampling.temperature", 0.0)],
    )
    if "draft-model" not in options.scorers:
        return settings, ""
    reference = options.draft_model
    if not reference:
        from core.bench.cases import truncated_copy

        reference = str(truncated_copy(model, options.draft_layers, scratch / "draft"))
    name = options.draft_model or f"the model's first {options.draft_layers} layers"
    return assign(settings, "draft_model.model", reference), name


def _configurations(scorers: Sequence[str], keeps: Sequence[float]) -> Iterator[tuple[str, float]]:
    for keep in keeps:
        # At 100% nothing is scored, so one scorer represents all.
        for scorer in scorers if keep < 100.0 else scorers[:1]:
            yield scorer, keep


class _Reader:
    """Cold prefills of one prompt in all configurations."""

    def __init__(
        self,
        engine: Engine,
        messages: tuple[Message, ...],
        shared: Settings,
        chosen: Sequence[tuple[str, float]],
    ) -> None:
        self._engine = engine
        self._messages = messages
        self._prompt = _rendered(engine, messages)
        self._is_warm = False
        self._settings = {
            (scorer, keep): assign_all(
                shared,
                [
                    ("prefill.mode", "on"),
                    ("prefill.scorer", scorer.removesuffix(_ATTACHED)),
                    ("prefill.keep_pct", keep),
                ],
            )
            for scorer, keep in chosen
        }

    def read(self, number: int, scorer: str, keep_pct: float) -> PrefillReading:
        """Measure one prefill, by mlx-lm if `scorer` is empty."""
        self._warm_up()
        engine = self._engine
        engine.forget(tables=True)
        self._prepare_vectors(attached=scorer.endswith(_ATTACHED))
        with _Peak() as memory:
            if not scorer:
                run = mlx_lm(engine, self._prompt, 1)
            else:
                run = draftlight_chat(engine, self._messages, self._settings[scorer, keep_pct])
        reading = PrefillReading(number, scorer, keep_pct, run.ttft_s, memory.bytes)
        if run.stats is None or run.effective is None:
            return reading
        return replace(
            reading,
            score_s=run.stats.score_s,
            prompt_tokens=run.stats.prompt_tokens,
            read_tokens=run.stats.read_tokens,
            ran=run.effective.reading,
            reason=run.effective.reading_reason,
        )

    def _prepare_vectors(self, *, attached: bool) -> None:
        """Compute or erase the vectors of the document's passages; prompts hold its text stripped."""
        from core.encoder.store import Embedder, text_key
        from core.prefill.passages import cut

        embedder = Embedder()
        for text in (each.text.strip() for each in self._messages[0].attachments):
            embedder.erase(text_key(text))
            if attached:
                for _ in embedder.vectors(text, cut(text)):
                    pass
        embedder.unload()

    def _warm_up(self) -> None:
        """Run every configuration on a short prompt once, which also loads the draft model for all runs."""
        if self._is_warm:
            return
        self._is_warm = True
        short = self._prompt[-_WARM_UP_TOKENS:]
        mlx_lm(self._engine, short, 1)
        for settings in self._settings.values():
            draftlight(self._engine, short, settings)


def _cell(
    scorer: str, keep_pct: float, readings: Mapping[tuple[int, str, float], PrefillReading], rounds: int
) -> PrefillCell | None:
    """The cell of one configuration, from the rounds that measured it and the baseline; None without any."""
    pairs = []
    last: PrefillReading | None = None
    for number in range(rounds):
        baseline = readings.get((number, *_BASELINE))
        candidate = readings.get((number, scorer, keep_pct))
        if baseline is None or candidate is None:
            continue
        last = candidate
        pairs.append(
            PrefillPair(
                baseline.ttft_s,
                candidate.ttft_s,
                baseline.ttft_s / candidate.ttft_s,
                candidate.score_s,
                baseline.peak_bytes,
                candidate.peak_bytes,
            )
        )
    if last is None:
        return None
    return PrefillCell(
        scorer,
        keep_pct,
        last.ran,
        last.reason,
        last.prompt_tokens,
        last.read_tokens,
        TARGET_WHOLE if keep_pct == 100.0 else TARGETS.get((scorer, keep_pct), 0.0),
        tuple(pairs),
    )


class _Peak:
    """Measures MLX's peak memory within the context."""

    bytes = 0

    def __enter__(self) -> _Peak:
        import mlx.core as mx

        mx.clear_cache()
        mx.reset_peak_memory()
        return self

    def __exit__(self, *_: object) -> None:
        import mlx.core as mx

        self.bytes = int(mx.get_peak_memory())


def _line(reading: PrefillReading) -> str:
    name = f"{reading.scorer}, keep {reading.keep_pct:g}%" if reading.scorer else "mlx-lm"
    return f"{name}: first token after {reading.ttft_s:.1f} s"


def write_report(results: PrefillResults) -> str:
    """The results as Markdown."""
    lines = ["# Time to first token of a long document, against mlx-lm", "", *results.progress.lines]
    if not results.cells:
        return "\n".join(lines) + "\n"
    pairs = min(len(cell.pairs) for cell in results.cells)
    lines += [
        f"{results.model}, {results.document}, {results.cells[0].prompt_tokens:,} prompt tokens, read in"
        f" chunks of {results.chunk_tokens}; a warm-up and {pairs} rounds of mlx-lm's dense prefill"
        " (`stream_generate` with its own default chunk, 2,048) and each configuration, all cold."
        " Medians; ratios are of one round.",
        "",
        results.environment.line,
        "",
        *table(
            "scorer | keep | read | mlx-lm TTFT s | TTFT s | scoring s | sooner | target | r | k = read share"
            " | 1 ÷ (r + k) | measured ÷ model | met",
            (
                f"{c.scorer if c.keep_pct < 100.0 else 'any'} | {c.keep_pct:g}% | {c.read_tokens:,}"
                f" | {median(p.baseline_ttft_s for p in c.pairs):.2f}"
                f" | {median(p.ttft_s for p in c.pairs):.2f}"
                f" | {median(p.score_s for p in c.pairs):.2f} | **{c.ratio:.2f}**"
                f" | {f'≥ {c.target:g}' if c.target else '–'} | {c.score_share:.3f} | {c.read_share:.3f}"
                f" | {c.predicted:.2f} | {c.ratio / c.predicted:.2f} | {'yes' if c.met else '**no**'}"
                for c in results.cells
            ),
        ),
        "",
        f"“Met”: at least the target, if there is one, and {TARGET_OF_MODEL:.0%} of the cost model."
        " Tokens that are always read (template, question, first passage, end) are part of k."
        " The cost model assumes that prefill time is proportional to the length; attention grows with its"
        " square, so the measured ratio can be far higher where attention is slow.",
        "",
        "## Memory at its peak",
        "",
        *table(
            "scorer | keep | mlx-lm MB | Draftlight MB",
            (
                f"{c.scorer} | {c.keep_pct:g}% | {max(p.baseline_peak_bytes for p in c.pairs) / 1e6:,.0f}"
                f" | {max(p.peak_bytes for p in c.pairs) / 1e6:,.0f}"
                for c in results.cells
            ),
        ),
    ]
    if results.draft_model:
        lines += ["", f"Draft model: {results.draft_model}; its weights are in both figures of its rows."]
    missed = [c for c in results.cells if not c.as_asked]
    if missed:
        lines += ["", "## Not sparse as requested", ""]
        lines += [f"- {c.scorer}, {c.keep_pct:g}%: ran {c.ran}, because {c.reason}" for c in missed]
    return "\n".join(lines) + "\n"
