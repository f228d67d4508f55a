"""Numerics: how often the text differs from the plain loop's, by mode, dtype and model.

Wider blocks are summed in another order than single tokens, so their logits differ in the last bits, and
where two tokens are nearly as likely the other one can win. Tiny random models of several architectures and
the starter are tried in the formats that models come in, each mode on the same prompts, always drafting.
`exact` and `guarded` promise the plain loop's text; a difference there is a fault, one in `fast` a count.

    python -m tests.attack.campaigns.numerics --out docs/numerics.md

runs all cases (8 minutes, and the starter's half-precision ones longer) and writes the table. A case is
one model in one format; the starter's come last and are not part of `make attack`, for they are slow.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from core.settings import Settings, assign_all
from core.settings.decoding import ExactnessMode
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
    from core.models.runtime.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    started = time.perf_counter()
    loaded = _loaded(case)
    engine = Engine()
    engine.use(loaded)
    if case.model != _STARTER:
        engine.try_out()
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
        if differed and mode != "fast":
            faults.append(f"{mode}: {differed} of {len(prompts)} texts differ from the plain loop's")
    peaks = {"noise": engine.exactness_profile().noise, "seconds": time.perf_counter() - started}
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


def _loaded(case: Case) -> LoadedModel:
    """The model in its format. The loader would turn all into float32 on a processor."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_tokenizer
    from msgspec.structs import replace

    from core.events import ModelInfo
    from core.kv.entries import why_no_rollback
    from core.models.family import fingerprint
    from core.models.loader import LoadedModel, load
    from tests.core.architectures import CONTEXT_TOKENS, VOCABULARY, tiny
    from tests.core.toy import write_toy_model

    if case.model == _STARTER:
        held = load(_STARTER)
        model, tokenizer, info = held.model, held.tokenizer, held.info
    else:
        model = tiny(case.model)
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


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: of how many runs the text differed, by model, format and mode."""
    head = "| model | format | " + " | ".join(MODES) + " | largest difference of a logit |\n"
    rows = [head, "|---|---|" + "---:|" * (len(MODES) + 1) + "\n"]
    total = dict.fromkeys(MODES, 0)
    runs = dict.fromkeys(MODES, 0)
    for outcome in outcomes:
        case = CASES[outcome.case]
        cells = []
        for mode in MODES:
            differed, tried = int(outcome.counts[f"{mode}_differed"]), int(outcome.counts[f"{mode}_runs"])
            total[mode] += differed
            runs[mode] += tried
            none = "" if outcome.counts[f"{mode}_drafted"] else " (no drafts)"
            cells.append(f"{differed} of {tried}{none}")
        noise = outcome.peaks["noise"]
        rows.append(f"| {case.model} | {case.format} | {' | '.join(cells)} | {noise:.2g} |\n")
    rows.append("| all | | " + " | ".join(f"{total[mode]} of {runs[mode]}" for mode in MODES) + " | |\n")
    return "".join(rows)


_HEAD = """# Numerics: when the text is the plain loop's

Written by `python -m tests.attack.campaigns.numerics --out docs/numerics.md`; {where}.

Draftlight checks every guess with the model itself, so with equal logits its text is the plain loop's. Logits
are not always equal: a block of several tokens is summed in another order than one token, and where two
tokens are nearly as likely, the last bits can decide for the other one. Both texts are then the model's; they
are not the same. `decoding.exactness` says what is done about it:

- `fast` (default) takes the choice as it falls.
- `guarded` makes a choice again, one token wide, where it was closer than twice the largest difference that
  was measured for this model on this machine. That difference is an observation on three inputs, not a bound.
- `exact` verifies only widths whose logits were the same bits in that measurement; none: it does not draft.

Of how many answers the text differed from the plain loop's (greedy, every step drafted by `cacheback`;
{tokens} tokens an answer of a tiny random model, which has much closer calls than a trained one).
“No drafts”: no width gave the same bits, so nothing was drafted. The starter in bfloat16 and q4 takes so
long on a processor that `--cases {all_but}` leaves both out. On another machine, above all with Metal, the
figures are others: run the command there.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases and write the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack.campaigns.numerics", description="write the table"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=len(CASES), help=f"how many of {len(CASES)}")
    options = parser.parse_args(arguments)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="draftlight-numerics-") as home:
        os.environ["DRAFTLIGHT_HOME"] = home
        from core.models.runtime.runtime import prepare

        blas = prepare()
        from core.bench.environment import describe

        where = describe(str(blas)).line
        head = _HEAD.format(where=where, tokens=TINY_CASES[0].tokens, all_but=len(TINY_CASES) + 1)
        for outcome in run(options.seed, range(options.cases)):
            outcomes.append(outcome)
            case = CASES[outcome.case]
            print(f"{case.model} {case.format}: {outcome.counts} {outcome.peaks} {outcome.fault}", flush=True)
            options.out.write_text(head + table(outcomes), encoding="utf-8")
    return 1 if any(outcome.fault for outcome in outcomes) else 0


CAMPAIGN = Campaign(
    "numerics",
    "`guarded` and `exact` give the plain loop's text on quantised and half-precision models.",
    quick=1,
    full=len(TINY_CASES),
    run=run,
)


if __name__ == "__main__":
    raise SystemExit(main())
