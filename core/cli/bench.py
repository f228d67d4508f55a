"""`draftlight bench`: the arguments of every bench. `core.bench` has the benches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from core.bench.cases import RETRIEVAL_SCORERS
from core.bench.quality_tasks import DENSE, SCORELESS, hindsight
from core.bench.serve import WORKLOADS
from core.cli.arguments import (
    add_command,
    add_model,
    add_quiet,
    listed,
    name,
    names,
    number,
    of_setting,
    out_folder,
    readable_file,
    whole,
)
from core.cli.window import window_part
from core.settings.declaration import find
from core.settings.prefill import SCORERS
from core.settings.window import BENCH_PARTS

DRAFTERS = find("drafting.drafter").choices
# Benches measure plain decoding anyway.
_DRAFTING = tuple(each for each in DRAFTERS if each != "off")

# Settings that `bench retrieval` varies by options.
_RETRIEVAL_OPTIONS = {"prefill.keep_pct": "--keep", "prefill.mode": "--answers"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all benches."""
    benches = parser.add_subparsers(title="benches", metavar="BENCH", required=True)

    def bench(
        name: str, text: str, add: Callable[[argparse.ArgumentParser], object]
    ) -> argparse.ArgumentParser:
        added = add_command(benches, name, text, _running(f"core.bench.{name}"))
        add(added)
        add_quiet(added)
        return added

    bench("decode", "decode speed of drafters relative to mlx-lm's own loop", _decode)
    bench("parity", "whether drafted greedy output equals plain output in every run", _parity)
    window = bench("window", "the window: launch, scrolling, streaming, memory, overhead", _window)
    window.set_defaults(run=_run_window)
    bench("prefill", "time to first token of a long document relative to mlx-lm", _prefill)
    bench("reopen", "time to first token of a saved chat after a restart, relative to cold", _reopen)
    bench("quality", "the effect of sparse prefill on answers and likelihoods", _quality)
    bench("retrieval", "how often a scorer keeps the passage that a question is about", _retrieval)
    bench("serve", "the local server relative to mlx-lm's: edits, schemas, conversations", _serve)
    bench("sweep", "every drafter on every class of prompts, as in the Lab", _sweep)


def _running(module: str) -> Callable[[argparse.Namespace], int]:
    """Imports the bench when it runs, so that `--help` does not load MLX."""
    return lambda options: int(import_module(module).run(options))


# ---- options of several benches


def add_option(
    parser: argparse.ArgumentParser, flag: str, kind: Callable[[str], object], default: object, text: str
) -> None:
    """Add an option; its default is appended to the help `text`."""
    shown = ",".join(map(_shown, default)) if isinstance(default, tuple) else _shown(default)
    text = text.replace("%", "%%")
    parser.add_argument(flag, type=kind, default=default, help=f"{text} (default {shown})" if shown else text)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def add_out(parser: argparse.ArgumentParser, text: str = "for the results and the report") -> None:
    """Add `--out`."""
    parser.add_argument("--out", type=out_folder, required=True, metavar="DIR", help=text)


def add_prompts(parser: argparse.ArgumentParser, text: str = "lines with prompt and class") -> None:
    """Add `--prompts`."""
    parser.add_argument("--prompts", type=readable_file, metavar="F.jsonl", help=text)


def add_answer_length(parser: argparse.ArgumentParser, tokens: int = 128) -> None:
    """Add `--max-tokens`."""
    add_option(parser, "--max-tokens", whole(), tokens, "of an answer")


def _add_draft_model(parser: argparse.ArgumentParser, layers: int) -> None:
    """Add `--draft-model` and the number of layers of its substitute."""
    parser.add_argument("--draft-model", default="", help="for draft-model (default: a truncated copy)")
    add_option(parser, "--draft-layers", whole(), layers, "layers of that copy")


def add_grid(parser: argparse.ArgumentParser) -> None:
    text = "a setting for all configurations; repeatable"
    parser.add_argument("--set", action="append", default=[], metavar="GROUP.FIELD=VALUE", help=text)
    text = "values to try, combined with every other --grid, as ngram_mod.k=2,4,6,8"
    parser.add_argument("--grid", action="append", default=[], metavar="GROUP.FIELD=A,B,…", help=text)


def _add_ngram_simple(parser: argparse.ArgumentParser) -> None:
    lengths, shortest = (listed(of_setting(f"ngram_simple.{each}")) for each in ("k", "n_min"))
    add_option(parser, "--k", lengths, (2, 7), "draft lengths of ngram-simple")
    add_option(parser, "--n-min", shortest, (2, 3), "shortest matches of ngram-simple")


def add_drafters(parser: argparse.ArgumentParser, known: Sequence[str], *default: str) -> None:
    text = "comma-separated names" + ("" if default else " (default all)")
    add_option(parser, "--drafters", names("drafter", known), default, text)


def _add_max_prompt(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "--max-prompt-tokens", whole(), 800, "limit; longer prompts are cut")


# ---- decoding


def _decode(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_prompts(parser)
    add_option(parser, "--pairs", whole(), 3, "pairs per configuration")
    add_drafters(parser, DRAFTERS, "off", "ngram-simple")
    _add_ngram_simple(parser)
    _add_draft_model(parser, layers=6)
    _add_max_prompt(parser)
    add_answer_length(parser)
    parser.add_argument(
        "--model-defaults",
        action="store_true",
        help="sample as the model's own defaults say, as in the window; mlx-lm likewise",
    )
    add_grid(parser)
    add_out(parser)


def _parity(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_prompts(parser)
    add_option(parser, "--lengths", listed(whole()), (600, 800), "exact prompt lengths in tokens")
    add_drafters(parser, _DRAFTING, "ngram-simple")
    add_option(
        parser,
        "--exactness",
        names("exactness", find("decoding.exactness").choices),
        ("fast",),
        "comma-separated: fast, exact",
    )
    _add_draft_model(parser, layers=6)
    _add_ngram_simple(parser)
    add_option(parser, "--runs", whole(), 3, "runs per side; all pairs are compared")
    add_answer_length(parser)
    add_grid(parser)
    add_out(parser)


def _sweep(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--prompts",
        type=readable_file,
        action="append",
        metavar="F.jsonl",
        help="lines with prompt or turns, and class; repeatable",
    )
    add_option(parser, "--classes", listed(str), ("all",), "comma-separated classes")
    add_drafters(parser, _DRAFTING, "ngram-simple", "auto")
    add_option(parser, "--pairs", whole(), 3, "pairs per prompt")
    add_option(
        parser,
        "--exactness",
        name("exactness", find("decoding.exactness").choices),
        "fast",
        "fast or exact",
    )
    _add_max_prompt(parser)
    add_answer_length(parser)
    _add_draft_model(parser, layers=6)
    add_option(
        parser,
        "--keep",
        listed(number(1, 100)),
        (),
        "percentages of a long prompt to keep, as 10,20,50; none by default",
    )
    add_option(parser, "--keep-tokens", whole(), 4000, "of the long prompt")
    add_option(
        parser,
        "--scorer",
        name("scorer", tuple(each for each in SCORERS if each != "draft-model")),
        "lexical",
        "scorer of the long prompt",
    )
    parser.add_argument("--json", action="store_true", help="one event per line on stdout")
    add_grid(parser)
    add_out(parser)


# ---- sparse prefill


def _prefill(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--tokens", whole(), 8000, "prompt tokens")
    add_option(parser, "--keep", listed(number(1, 100)), (12.0, 20.0, 30.0, 50.0, 100.0), "percentages kept")
    _add_draft_model(parser, layers=8)
    parser.add_argument(
        "--scorers",
        type=names("scorer", (*SCORERS, *(f"{each}-attached" for each in ("embedding", "fusion")))),
        default=("lexical", "fusion", "fusion-attached", "draft-model"),
        help="comma-separated names (default lexical,fusion,fusion-attached,draft-model);"
        " -attached: the document was embedded before the question",
    )
    add_option(parser, "--pairs", whole(), 5, "rounds of all configurations")
    add_option(parser, "--kind", name("kind of document", _kinds), "minutes", "kind of generated document")
    add_option(parser, "--seed", whole(0), 1, "of the generated document")
    parser.add_argument("--document", type=readable_file, metavar="F", help="a text file to read instead")
    add_out(parser)


def _reopen(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--tokens", listed(whole()), (2000, 8000), "sizes of the chat")
    add_option(parser, "--pairs", whole(), 5, "pairs per size")
    add_out(parser)


def _quality(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--keep", number(1, 100), 20.0, "percentage kept")
    _add_draft_model(parser, layers=8)
    parser.add_argument(
        "--readers",
        type=listed(_reader),
        default=(*SCORERS, *SCORELESS),
        help="scorers, and the baselines random, head-and-tail and end (default all these); hindsight-N"
        " scores with the N tokens that follow",
    )
    special = ("all", "none")
    parser.add_argument(
        "--tasks",
        type=names("task", _tasks, others=special),
        default=("all",),
        help="comma-separated names, all or none",
    )
    parser.add_argument(
        "--kinds",
        type=names("kind of document", _kinds, others=special),
        default=("all",),
        help="kinds of documents to continue: names, all or none",
    )
    parser.add_argument(
        "--passages",
        type=names("kind of document", _kinds, others=special),
        default=("all",),
        help="kinds of documents to retrieve a passage from: names, all or none",
    )
    add_option(parser, "--seeds", whole(), 20, "prompts per task")
    add_option(parser, "--windows", whole(), 4, "documents per kind")
    add_option(parser, "--context", whole(), 4096, "prompt tokens of passages and tasks")
    add_option(parser, "--document-context", whole(), 7600, "document tokens before the predicted ones")
    add_option(parser, "--continuation", whole(), 256, "predicted tokens")
    parser.add_argument("--quick", action="store_true", help="3 prompts per task, 1 document per kind")
    add_out(parser, "for the results; an interrupted run continues")


def _retrieval(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--scorers",
        type=names("scorer", RETRIEVAL_SCORERS),
        default=RETRIEVAL_SCORERS,
        help=f"comma-separated names (default {','.join(RETRIEVAL_SCORERS)})",
    )
    parser.add_argument(
        "--documents",
        type=names("document", _documents, others=("all",)),
        default=("all",),
        help="comma-separated names of documents, or all (default)",
    )
    add_option(parser, "--keep", listed(number(1, 100)), (10.0, 20.0, 30.0), "comma-separated percentages")
    parser.add_argument(
        "--answers",
        type=whole(0),
        default=0,
        metavar="N",
        help="also measure how likely right answers to N questions are (default 0)",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=_prefill_setting,
        default=[],
        metavar="PREFILL.FIELD=VALUE",
        help="a setting of sparse prefill; repeatable",
    )
    add_out(parser, "for the results; an interrupted run continues")


def _prefill_setting(text: str) -> str:
    """`prefill.field=value`; the value is checked before the model is loaded."""
    key, equals, _ = text.partition("=")
    if not (key.startswith("prefill.") and equals):
        raise argparse.ArgumentTypeError(f"“{text}” is not prefill.FIELD=VALUE")
    if key in _RETRIEVAL_OPTIONS:
        raise argparse.ArgumentTypeError(f"{key} is not set by --set. Use {_RETRIEVAL_OPTIONS[key]}")
    return text


def _reader(text: str) -> str:
    known = (*SCORERS, *SCORELESS, DENSE)
    if text not in known and not hindsight(text):
        raise argparse.ArgumentTypeError(
            f"unknown reader “{text}”; choose from {', '.join(known)}, hindsight-N"
        )
    return text


def _kinds() -> Sequence[str]:
    from core.bench.cases import KINDS

    return list(KINDS)


def _tasks() -> Sequence[str]:
    from core.bench.quality_tasks import TASKS

    return list(TASKS)


def _documents() -> Sequence[str]:
    from core.bench.retrieval import documents

    return [document.name for document in documents()]


# ---- server, window


def _serve(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--pairs", whole(), 5, "rounds of all requests")
    parser.add_argument(
        "--workloads",
        type=names("workload", WORKLOADS),
        default=WORKLOADS,
        help=f"comma-separated (default {','.join(WORKLOADS)})",
    )
    add_answer_length(parser, 700)
    add_out(parser)


def _window(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--parts",
        type=names("part", BENCH_PARTS),
        default=BENCH_PARTS,
        help=f"comma-separated (default {','.join(BENCH_PARTS)})",
    )
    add_option(parser, "--pairs", whole(), 9, "pairs for the overhead")
    add_out(parser)


def _run_window(options: argparse.Namespace) -> int:
    return int(window_part("bench")(str(options.out), options.model, options.parts, options.pairs))
