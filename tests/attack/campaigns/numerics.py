"""Numerics: how often the text differs from the plain loop's, by mode, dtype and model.

Wider blocks are summed in another order than single tokens, so their logits can differ, and where two tokens
are nearly as likely the other one can win. Tiny random models of several architectures and the starter are
tried in the formats that models come in, each mode on the same prompts, always drafting. `exact` promises the
plain loop's text: a difference is a fault. The differences of `fast` are counted.

    python -m tests.attack.campaigns.numerics grid --out DIR

`grid` runs 30 seeds of six models in four reduced formats, one cell after the other, and prints the table of
docs/numerics.md. Each cell is a line of DIR/cells.jsonl; the same command resumes, and `--part 0/2` with
`--part 1/2` share the work between two processes. A case of `run` is one model in one format; the
starter's cases come last and are not part of `make attack`, for they are slow.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.settings import Settings, assign_all
from core.settings.drafting import ExactnessMode
from tests.attack.campaign import Campaign, Outcome

if TYPE_CHECKING:
    from core.models.loader import LoadedModel

MODES: tuple[ExactnessMode, ...] = get_args(ExactnessMode)
_TINY = ("llama", "qwen3", "gemma3_text", "phi3", "mistral", "qwen3_5")
_TINY_FORMATS = ("float32", "bfloat16", "float16", "q8", "q4")
_STARTER = "starter"


class Case(Struct, frozen=True):
    """One model in one format, tried on so many prompts of so many answered tokens."""

    model: str
    format: str
    prompts: int
    tokens: int


TINY_CASES = tuple(Case(model, each, 8, 48) for each in _TINY_FORMATS for model in _TINY)
CASES = (
    *TINY_CASES,
    Case(_STARTER, "float32", 6, 40),
    Case(_STARTER, "bfloat16", 2, 24),
    Case(_STARTER, "q4", 2, 24),
)
_TEXTS = (
    "Repeat this list three times, word for word: apples, pears, plums, cherries, apples, pears.",
    "def area(w, h):\n    return w * h\n\nWrite the same function again, and then with a docstring.",
    "The river runs to the sea. The river runs to the sea. Go on in the same way.",
    "Count from one to thirty in words, one number a line.",
    'Copy this JSON exactly: {"name": "Ada", "born": 1815, "name": "Ada", "born": 1815}',
    "Tell a short story in which every sentence begins with the words “Once there was”.",
)


def run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    """An outcome for each of `cases`, which are places in `CASES`."""
    for number in cases:
        yield _try(number, CASES[number % len(CASES)], seed)


def _try(number: int, case: Case, seed: int) -> Outcome:
    """One model in one format: all modes on the same prompts."""
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    started = time.perf_counter()
    loaded = _loaded(case)
    engine = Engine()
    engine.use(loaded)
    if case.model != _STARTER:
        engine.try_out()
    engine.exactness_profile(complete=True)
    counts: dict[str, float] = {}
    faults = []
    prompts = _prompts(case, loaded, seed)
    plain = [_answer(engine, ids, case, "fast", "off")[0] for ids in prompts]
    for mode in MODES:
        differed = drafted = 0
        for ids, expected in zip(prompts, plain):
            tokens, verified = _answer(engine, ids, case, mode, "cacheback")
            differed += tokens != expected
            drafted += verified
        counts |= {f"{mode}_runs": len(prompts), f"{mode}_differed": differed, f"{mode}_drafted": drafted}
        if differed and mode == "exact":
            faults.append(f"{mode}: {differed} of {len(prompts)} texts differ from the plain loop's")
    found = engine.exactness_profile()
    peaks = {"noise": found.noise, "seconds": time.perf_counter() - started}
    engine.unload()
    fault = f"{case.model} in {case.format}, {'; '.join(faults)}" if faults else ""
    return Outcome(number, fault, counts, peaks)


def _answer(engine: Any, ids: list[int], case: Case, mode: str, drafter: str) -> tuple[list[int], int]:
    """The ids of a cold answer, and how many drafted ones were verified."""
    from core.events import Finished, Token

    values = {
        "drafting.drafter": drafter,
        "decoding.exactness": mode,
        "gate.mode": "always",
        "sampling.max_tokens": case.tokens,
        "cacheback.tree_tokens": 12,
        "cacheback.reserved_tokens": 2,
    }
    engine.forget(tables=True)
    events = list(engine.generate_ids(ids, assign_all(Settings(), values.items())))
    end = events[-1]
    assert isinstance(end, Finished)
    return [event.id for event in events if isinstance(event, Token)], end.stats.drafted


def _prompts(case: Case, loaded: LoadedModel, seed: int) -> list[list[int]]:
    if case.model == _STARTER:
        return [loaded.tokenizer.encode(text) for text in _TEXTS[: case.prompts]]
    from tests.core.decoding.test_loop import prompt_with_repetition

    return [prompt_with_repetition(random.Random(f"{seed}:{number}")) for number in range(case.prompts)]


def _loaded(case: Case, weights: int = 0) -> LoadedModel:
    """The model in its format, tiny ones with random `weights`. The loader would use float32 on a CPU."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_tokenizer

    from core.events import ModelInfo
    from core.folders.folder import fingerprint
    from core.kv.mlx_lm_caches import why_no_rollback
    from core.models.loader import LoadedModel, load
    from tests.core.architectures import CONTEXT_TOKENS, VOCABULARY, tiny
    from tests.core.toy import write_toy_model

    if case.model == _STARTER:
        held = load(_STARTER)
        model, tokenizer, info = held.model, held.tokenizer, held.info
    else:
        model = tiny(case.model, weights)
        with tempfile.TemporaryDirectory() as folder:
            write_toy_model(Path(folder))
            tokenizer = load_tokenizer(Path(folder))
        why_not = why_no_rollback(make_prompt_cache(model))
        info = ModelInfo(
            *(case.model, case.model, fingerprint(tokenizer.get_vocab()), "toy", case.model, "float32", ""),
            *(0, 0, CONTEXT_TOKENS, VOCABULARY, len(model.layers), not why_not, why_not),
        )
    bits = int(case.format[1:]) if case.format.startswith("q") else 0
    dtype = mx.bfloat16 if bits else getattr(mx, case.format)
    model.set_dtype(dtype)
    if bits:
        nn.quantize(model, group_size=32, bits=bits, class_predicate=_fits_groups)
    mx.eval(model.parameters())
    path = f"{info.path} {case.format}"
    loaded = LoadedModel(model, tokenizer, replace(info, path=path, dtype=case.format))
    if case.model != _STARTER:
        loaded.eos = frozenset()
    return loaded


def _fits_groups(path: str, module: Any) -> bool:
    return hasattr(module, "to_quantized") and module.weight.shape[-1] % 32 == 0


class Cell(Struct, frozen=True):
    """One seed of one case of the grid."""

    seed: int
    model: str
    format: str
    outcome: Outcome


GRID_FORMATS = ("bfloat16", "float16", "q8", "q4")


def grid(folder: Path, seeds: Sequence[int], part: tuple[int, int], prompts: int) -> list[Cell]:
    """Runs the cells of this part that `folder` does not hold yet; returns all that it holds then."""
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / f"cells-{part[0]}.jsonl"
    done = {(cell.seed, cell.model, cell.format) for cell in cells_of(folder)}
    wanted = [(seed, each) for seed in seeds for each in TINY_CASES if each.format in GRID_FORMATS]
    with own.open("ab") as file:
        file.write(b"\n")  # ends a line that was cut off
        for number, (seed, each) in enumerate(wanted):
            if number % part[1] != part[0] or (seed, each.model, each.format) in done:
                continue
            outcome = _try(TINY_CASES.index(each), replace(each, prompts=prompts), seed)
            file.write(msgspec.json.encode(Cell(seed, each.model, each.format, outcome)) + b"\n")
            file.flush()
            print(seed, each.model, each.format, outcome.counts, outcome.fault, flush=True)
    return cells_of(folder)


def cells_of(folder: Path) -> list[Cell]:
    """All cells in `folder`, each once; half-written lines are left out."""
    cells = {}
    for path in sorted(folder.glob("cells-*.jsonl")):
        for line in path.read_bytes().splitlines():
            with suppress(msgspec.DecodeError):
                cell = msgspec.json.decode(line, type=Cell)
                cells[cell.seed, cell.model, cell.format] = cell
    return list(cells.values())


def grid_table(cells: Sequence[Cell]) -> str:
    """Markdown: differing answers by model, by format and in all."""
    modes = " | ".join(MODES)
    rows = [f"| | cells | {modes} | drafted in exact | largest difference |", "|---|---:|" + "---:|" * 5]
    for name in (*_TINY, *GRID_FORMATS, "all"):
        chosen = [cell for cell in cells if name in (cell.model, cell.format, "all")]
        if not chosen:
            continue
        counts: Counter[str] = Counter()
        for cell in chosen:
            counts.update({key: int(value) for key, value in cell.outcome.counts.items()})
        shares = [f"{counts[f'{mode}_differed']:,} of {counts[f'{mode}_runs']:,}" for mode in MODES]
        noise = max(cell.outcome.peaks["noise"] for cell in chosen)
        rows.append(
            f"| {name} | {len(chosen)} | {' | '.join(shares)} | {counts['exact_drafted']:,} | {noise:.2g} |"
        )
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the grid and prints a table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.campaigns.numerics")
    commands = parser.add_subparsers(dest="command", required=True)
    cells = commands.add_parser("grid", help="differing answers over seeds, models and reduced formats")
    cells.add_argument("--out", type=Path, required=True, metavar="DIR", help="holds cells; the run resumes")
    cells.add_argument("--first-seed", type=int, help="default: a new one, kept in DIR")
    cells.add_argument("--seeds", type=int, default=30, help="default 30")
    cells.add_argument("--prompts", type=int, default=4, help="answers of each cell and mode (default 4)")
    cells.add_argument("--part", type=_part, default=(0, 1), metavar="N/OF", help="share of one process")
    options = parser.parse_args(arguments)
    os.environ["DRAFTLIGHT_HOME"] = str((options.out / f"home-{options.part[0]}").resolve())
    print(f"{_prepare()}", flush=True)
    first = _first_seed(options.out, options.first_seed)
    print(f"seeds {first} to {first + options.seeds - 1}", flush=True)
    held = grid(options.out, range(first, first + options.seeds), options.part, options.prompts)
    print(grid_table(held))
    return 1 if any(cell.outcome.fault for cell in held) else 0


def _prepare() -> str:
    from core.models.runtime import prepare

    blas = prepare()
    from core.bench.runner import describe

    return describe(str(blas)).line


def _first_seed(folder: Path, given: int | None) -> int:
    path = folder / "first-seed"
    if given is None and path.exists():
        return int(path.read_text())
    first = random.SystemRandom().randrange(1 << 30) if given is None else given
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    return first


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    return int(number), int(of)


CAMPAIGN = Campaign(
    "numerics",
    "`exact` gives the plain loop's text on quantised and half-precision models.",
    quick=1,
    full=len(TINY_CASES),
    run=run,
)


if __name__ == "__main__":
    raise SystemExit(main())
