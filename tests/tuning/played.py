"""`python -m tests.tuning played`: speed of drafters on given texts, on random models of several sizes.

Any size of model "writes" the same recorded text: the real decode loop runs, and the device computes each of
its blocks, but the ids that it chose are replaced by those of the text, along the paths of the draft. So the
wall clock is that of a model of this size that writes this text, without its weights. Rankings, which would
be those of a random model, are computed and discarded, so `auto` has less evidence here than with a real
model.

A piece is one text on one size: all contestants in turn, every second text in reverse order. `off` runs
twice, because its ratio to itself is the error of every other ratio. mlx-lm's `stream_generate` writes as
many tokens of its own choice. Matrix work has one thread, so the interpreter has a core to itself, as it has
beside a GPU. Nothing is learned from one answer for the next.

Bundled texts: an edited file and copied records, and the starter's answers to prompts of the repository,
which are recorded at the first run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from core.bench.answers import BenchRun, draftlight, load_tried, mlx_lm
from core.bench.cases import BUNDLED, read_prompts, write_copy
from core.bench.report import LOOP
from core.bench.runner import Bench, BenchPiece, describe, file_label, run_bench, table
from core.decoding.repetition import repeated_share
from core.drafting.auto import AutoDrafter
from core.events import Generate, Grammar, Message
from core.events.bench import median
from core.settings import Settings, assign_all
from core.system.paths import resources_dir
from tests.tuning.replay import verifier_choices
from tests.tuning.streams import Stream, read_streams, write_streams
from tests.tuning.texts import text_of

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.engine.engine import Engine

MLX_LM, OFF, OFF_AGAIN = "mlx-lm", "off", "off again"
DRAFTERS = ("ngram-simple", "cacheback", "auto")
# `off` and `auto` in a chat whose tools are switched on, in text without a call.
WITH_TOOLS = {"off, tools on": "off", "auto, tools on": "auto"}
CONTESTANTS = (MLX_LM, OFF, *DRAFTERS, *WITH_TOOLS, OFF_AGAIN)
# No text has its mark, so that no call begins.
_TOOLS = Grammar(
    "tool_calls",
    '{"type":"object","properties":{"name":{"const":"find"}},"required":["name"]}',
    begin="<call_of_no_text>",
    end="</call_of_no_text>",
)
BUNDLED_TEXTS = "bundled"
# Layers and hidden size: plain steps of about 6, 15, 25 and 60 ms on one core.
SIZES = ("8x96", "28x96", "28x256", "30x576")
QUICK_SIZES = SIZES[:2]
QUICK_TOKENS = 64
_LEAST_TOKENS = 24
# Each contestant reads the prompt, which takes longer than all else if it is long: its end is kept.
_MOST_PROMPT_TOKENS = 1500
# Scale of the last norm: spreads the logits as far as a real model's, or ranking them would take longer.
_LOGIT_SCALE = 8.0
_HEAD_SIZE = 64
# Classes of the rehearsal's prompts that the starter answers.
_ANSWERED = ("explain", "summary", "howto")
_RENAMED = (("Basket", "Cart"), ("quantity", "count"), ("total", "amount"), ("report", "summary"))
_RECORDS = 9


class Run(Struct, frozen=True):
    """One answer. `host_ms`: `Stats.host_ms_median`; 0 for mlx-lm."""

    tokens: int
    steps: int
    tokens_per_s: float
    host_ms: float = 0.0


class Played(Struct, frozen=True):
    """One text, of class `cls`, on the model `size`, by contestant."""

    size: str
    number: int
    cls: str
    runs: dict[str, Run]

    @property
    def key(self) -> tuple[str, int]:
        return self.size, self.number

    def ratio(self, contestant: str, base: str = "") -> float:
        """Speed of `contestant` relative to `base`; without one, to the mean of both runs of `off`."""
        held = self.runs[contestant].tokens_per_s
        if base:
            return held / self.runs[base].tokens_per_s
        off = (self.runs[each].tokens_per_s for each in (OFF, OFF_AGAIN))
        return held / statistics.geometric_mean(off)


def run(options: argparse.Namespace) -> int:
    """Measure and write `played.jsonl` and `played.md`."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from core.models.runtime import prepare

    blas = prepare()
    from core.folders.starter import ensure_starter

    sizes = QUICK_SIZES if options.quick else options.sizes
    tokens = QUICK_TOKENS if options.quick else options.max_tokens
    texts = _texts(options.texts, 1 if options.quick else options.each, tokens, options.out, blas)
    models = Models(options.out / "models", ensure_starter(), blas, quiet=options.quiet)
    try:
        pieces = [
            BenchPiece((size, number), partial(play, models, size, number, text))
            for size in sizes
            for number, text in enumerate(texts)
        ]
        labels = [
            BUNDLED_TEXTS if each == BUNDLED_TEXTS else file_label(Path(each)) for each in options.texts
        ]
        conditions = (*labels, f"{len(texts)} texts of at most {tokens} tokens")
        bench = Bench("played", "Played answers", describe(blas), conditions, Played, options.out)
        return run_bench(bench, pieces, _line, report, quiet=options.quiet)[1].status(True)
    finally:
        models.close()


# ---- models


class Models:
    """Random Llamas in `folder`, with the tokenizer of `base`; one at a time is loaded."""

    def __init__(self, folder: Path, base: Path, blas: str = "", *, quiet: bool = True) -> None:
        self._folder, self._base, self._blas, self._quiet = folder, base, blas, quiet
        self._size = ""
        self._engine: Engine | None = None

    def engine(self, size: str) -> Engine:
        """The engine with the model `size` loaded, tried out, and its T(w) measured."""
        if self._engine is None or size != self._size:
            from core.engine.engine import Engine

            self.close()
            folder = self._folder / size
            if not (folder / "config.json").exists():
                write_random_model(self._base, folder, *map(int, size.split("x")))
            self._size, self._engine = size, Engine()
            load_tried(self._engine, str(folder), self._blas, quiet=self._quiet)
            self._engine.measure_cost()
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None


def heads_of(hidden: int) -> int:
    """The number of attention heads, of which `hidden` must be a multiple."""
    return max(3, hidden // _HEAD_SIZE)


def write_random_model(base: Path, folder: Path, layers: int, hidden: int) -> None:
    """A Llama with random weights, and the tokenizer of the model folder `base`."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models import llama

    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    for key in ("quantization", "quantization_config"):
        config.pop(key, None)
    heads = heads_of(hidden)
    config |= {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 3 if heads % 3 == 0 else 1,
        "head_dim": _HEAD_SIZE,
        "tie_word_embeddings": True,
        "draftlight_name": f"random {layers}x{hidden}",
    }
    mx.random.seed(0)
    model: Any = llama.Model(llama.ModelArgs.from_dict(config))
    model.model.norm.weight = model.model.norm.weight * _LOGIT_SCALE
    write_copy(base, folder, dict(tree_flatten(model.parameters())), config)


# ---- playing


def play(models: Models, size: str, number: int, text: Stream) -> Played:
    """All contestants in turn. The first text of a size is written once before, because kernels and buffers
    are made at their first use.
    """
    engine = models.engine(size)
    if not number:
        _runs(engine, replace(text, out=text.out[:_LEAST_TOKENS]), CONTESTANTS)
    return Played(size, number, text.cls, _runs(engine, text, CONTESTANTS[:: -1 if number % 2 else 1]))


def _runs(engine: Engine, text: Stream, contestants: Sequence[str]) -> dict[str, Run]:
    return {each: _run(engine, text, each) for each in contestants}


def _run(engine: Engine, text: Stream, contestant: str) -> Run:
    if contestant == MLX_LM:
        made = mlx_lm(engine, text.prompt, len(text.out))
        return Run(len(made.tokens), len(made.tokens), made.tokens_per_s)
    drafter = WITH_TOOLS.get(contestant, OFF if contestant == OFF_AGAIN else contestant)
    made = played(engine, text, drafter, tools=contestant in WITH_TOOLS)
    if made.tokens != text.out:
        raise AssertionError(f"{contestant} wrote another text than the one it was to play.")
    assert made.stats is not None
    return Run(len(made.tokens), made.stats.steps, made.tokens_per_s, made.stats.host_ms_median)


def played(engine: Engine, text: Stream, drafter: str, *, tools: bool = False) -> BenchRun:
    """The answer `text` by the engine. `tools`: it could call one at any place, which the grammar watches."""
    fixed = [("drafting.drafter", drafter), ("sampling.temperature", 0.0), ("prefill.mode", "off")]
    # Otherwise each contestant copies what the ones before it wrote.
    fixed += [("auto.remembered", False), ("tables.learn", False)]
    settings = assign_all(Settings(), [*fixed, ("sampling.max_tokens", len(text.out))])
    with _replaced_choices(text):
        also = Generate("", (), grammar=_TOOLS) if tools else None
        return draftlight(engine, text.prompt, settings, also=also)


@contextmanager
def _replaced_choices(text: Stream) -> Iterator[None]:
    """Within the block, samplers return the ids of `text` for every row on its path."""
    import mlx.core as mx

    from core.decoding import sampling

    class Recorded(sampling.Choices):
        """Choices that are computed, waited for and replaced."""

        replaced: list[int]

        def pull(self, *others: mx.array) -> list[int]:
            super().pull(*others)
            return self.replaced

    inputs, choose = sampling.RowHistory.inputs, sampling.Sampler.choose
    drafted: list[Any] = []

    def inputs_of(history: Any, lead: Any, draft: Any, *more: Any) -> Any:
        drafted[:] = [draft]
        return inputs(history, lead, draft, *more)

    def chosen(sampler: Any, logits: Any, rows: Any) -> sampling.Choices:
        found = Recorded(*choose(sampler, logits, rows))
        coming = text.out[rows.positions[0] - len(text.prompt) :]
        found.replaced = verifier_choices(drafted[0], coming)
        return found

    def ignored(*arguments: Any) -> None:
        pass

    with _patched(
        (sampling.RowHistory, "inputs", inputs_of),
        (sampling.Sampler, "choose", chosen),
        (AutoDrafter, "observe_top", ignored),
    ):
        yield


@contextmanager
def _patched(*changes: tuple[Any, str, object]) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


# ---- texts


def _texts(names: Sequence[str], each: int, most: int, out: Path, blas: str) -> list[Stream]:
    """At most `each` texts of each class, at most `most` tokens of each; written to `out` at the first run,
    so that a later one continues with the same.
    """
    path = out / f"texts-{each}-{most}.jsonl"
    if not path.exists():
        from core.engine.engine import Engine

        engine = Engine()
        load_tried(engine, "starter", blas)
        try:
            found = [text for name in names for text in _named(engine, name, each, most)]
        finally:
            engine.close()
        write_streams(path, chosen(found, each, most))
    return read_streams(path)


def chosen(texts: Sequence[Stream], each: int, most: int) -> list[Stream]:
    """At most `each` texts of each class, in an order by chance, at most `most` tokens of each, after the end
    of its prompt.

    Left out are texts that are very short or repeat themselves, because loops flatter every drafter.
    """
    fit = [
        replace(text, prompt=text.prompt[-_MOST_PROMPT_TOKENS:], out=text.out[:most], tops=[], shares=[])
        for text in texts
    ]
    fit = [text for text in fit if len(text.out) >= _LEAST_TOKENS and repeated_share(text.out) <= LOOP]
    Random(1).shuffle(fit)
    return [
        text
        for cls in dict.fromkeys(sorted(text.cls for text in fit))
        for text in islice((text for text in fit if text.cls == cls), each)
    ]


def _named(engine: Engine, name: str, each: int, most: int) -> Iterator[Stream]:
    from tests.tuning.own_answers import read_answers

    if name != BUNDLED_TEXTS:
        path = Path(name)
        label = path.parent.name if path.suffix == ".json" else path.name
        for text in read_answers(path, engine.loaded):
            yield replace(text, cls=label if text.cls == "prompt" else text.cls)
        return
    encode: Callable[..., list[int]] = engine.loaded.tokenizer.encode
    for cls, question, answer in (*_edited(), *_records(each)):
        yield Stream(_asked(engine, question), encode(answer, add_special_tokens=False), cls)
    three = [(prompt.label, prompt.prompt) for prompt in read_prompts(BUNDLED["three-class"])]
    prompts = read_prompts(resources_dir() / "rehearsal" / "prompts.jsonl")
    Random(1).shuffle(prompts)
    # Some are left out because they repeat themselves.
    rehearsed = [
        (cls, prompt.prompt)
        for cls in _ANSWERED
        for prompt in [prompt for prompt in prompts if prompt.label == cls][: 2 * each]
    ]
    settings = assign_all(
        Settings(),
        [("drafting.drafter", "off"), ("sampling.temperature", 0.0), ("sampling.max_tokens", most)],
    )
    for cls, question in (*three, *rehearsed):
        ids = _asked(engine, question)
        yield Stream(ids, draftlight(engine, ids, settings).tokens, f"{cls} (starter)")


def _asked(engine: Engine, question: str) -> list[int]:
    from core.prompt import render

    return list(render(engine.loaded.tokenizer, (Message("user", question),)).ids)


def _edited() -> Iterator[tuple[str, str, str]]:
    """The bundled file of the class editing, written again with a name replaced."""
    question = next(prompt for prompt in read_prompts(BUNDLED["editing"])).turns[0]
    match = re.search(r"(.*```python\n)(.*?)```", question, re.DOTALL)
    assert match is not None
    for old, new in _RENAMED:
        asked = f"{match[0]}\n\nRename `{old}` to `{new}` and write the whole file again."
        yield "editing", asked, f"```python\n{match[2].replace(old, new)}```"


def _records(count: int) -> Iterator[tuple[str, str, str]]:
    """Records that are written again without one of their fields."""
    for seed in range(count):
        lines = list(islice(text_of("records", seed), _RECORDS))
        rows = [json.loads(line) for line in lines]
        less = "".join(json.dumps({k: v for k, v in row.items() if k != "crew"}) + "\n" for row in rows)
        yield "records", f"{''.join(lines)}\nWrite these records again without the field `crew`.", less


# ---- report


def _line(played: Played) -> str:
    runs = played.runs
    speeds = ", ".join(f"{name} {played.ratio(name):.2f}" for name in (MLX_LM, *DRAFTERS))
    return f"{played.size}, {played.cls}: off {1000 / runs[OFF].tokens_per_s:.1f} ms a step; ÷ off: {speeds}"


def report(found: Sequence[Played]) -> list[str]:
    """Ratios by size and class, with their spreads."""
    lines = [
        "Medians of the texts of a class (least to most); ÷ off: relative to the geometric mean of both runs"
        " of `off`. Rankings of the random model were discarded.",
    ]
    for size in dict.fromkeys(each.size for each in found):
        rows = [each for each in found if each.size == size]
        plain_ms = 1000 / median(each.runs[MLX_LM].tokens_per_s for each in rows)
        lines += ["", f"## {size}: a plain step of mlx-lm takes {plain_ms:.1f} ms", ""]
        classes = {cls: [row for row in rows if row.cls == cls] for cls in dict.fromkeys(r.cls for r in rows)}
        lines += table(
            f"class | texts | {' | '.join(f'{name} ÷ {base or OFF}' for name, base in _PAIRS)}",
            [
                *(f"{cls} | {len(held)} | {_ratios(held, _spread)}" for cls, held in classes.items()),
                f"all, geometric mean | {len(rows)} | {_ratios(rows, _mean)}",
            ],
            right_from=1,
        )
        lines += [
            "",
            *table("contestant | tokens a step | host ms a step", map(partial(_host, rows), CONTESTANTS[1:])),
        ]
    return lines


# Which speed is divided by which; without a base by the mean of both runs of `off`.
_PAIRS = ((OFF_AGAIN, OFF), (OFF, MLX_LM), *((each, "") for each in DRAFTERS), *WITH_TOOLS.items())


def _ratios(rows: Sequence[Played], shown: Callable[[list[float]], str]) -> str:
    return " | ".join(shown([row.ratio(*pair) for row in rows]) for pair in _PAIRS)


def _spread(ratios: list[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _mean(ratios: list[float]) -> str:
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.3f}"


def _host(rows: Sequence[Played], contestant: str) -> str:
    runs = [row.runs[contestant] for row in rows]
    per_step = sum(run.tokens for run in runs) / sum(run.steps for run in runs)
    return f"{contestant} | {per_step:.2f} | {median(run.host_ms for run in runs):.2f}"
