"""`draftlight bench`: the arguments of the matrix, `retrieval` and `window`. `core.bench` has the benches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from core.bench.cases import BUNDLED, DOCUMENTS
from core.cli.arguments import add_command, add_model, add_quiet, listed, names, number, out_folder, whole
from core.cli.window import window_part
from core.settings.declaration import find
from core.settings.prefill import SCORERS
from core.settings.window import BENCH_PARTS

DRAFTERS = find("drafting.drafter").choices
# Baselines that scorers must exceed. A draft model would have to be loaded.
RETRIEVAL_SCORERS = ("random", "head-and-tail", *(name for name in SCORERS if name != "draft-model"))
# Settings that `bench retrieval` varies by options.
_RETRIEVAL_OPTIONS = {"prefill.keep_pct": "--keep", "prefill.mode": "--answers"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the matrix, and the other benches as commands."""
    parser.description = (
        "Measure cases × configurations, with mlx-lm and Draftlight in turn on each prompt: speed, time to"
        " the first token, equality. Prints tables; with --out an interrupted run continues."
    )
    parser.set_defaults(run=_running("core.bench.matrix"))
    _matrix(parser)
    add_quiet(parser)
    benches = parser.add_subparsers(title="other benches", metavar="BENCH")

    def bench(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = add_command(benches, name, text, run)
        add_model(added)
        add_out(added)
        add_quiet(added)
        return added

    _retrieval(
        bench(
            "retrieval",
            "how often a scorer keeps the passage that a question is about",
            _running("core.bench.retrieval"),
        )
    )
    _window(bench("window", "the window: launch, scrolling, streaming, memory, overhead", _run_window))


def _running(module: str) -> Callable[[argparse.Namespace], int]:
    """Imports the bench when it runs, so that `--help` does not load MLX."""
    return lambda options: int(import_module(module).run(options))


# ---- options of several commands


def add_option(
    parser: argparse.ArgumentParser, flag: str, kind: Callable[[str], object], default: object, text: str
) -> None:
    """Add an option; its default is appended to the help `text`."""
    shown = ",".join(map(_shown, default)) if isinstance(default, tuple) else _shown(default)
    text = text.replace("%", "%%")
    parser.add_argument(flag, type=kind, default=default, help=f"{text} (default {shown})" if shown else text)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def add_out(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add `--out`."""
    text = "for the results and the report; an interrupted run continues"
    parser.add_argument("--out", type=out_folder, required=required, metavar="DIR", help=text)


def add_answer_length(parser: argparse.ArgumentParser, tokens: int = 128) -> None:
    """Add `--max-tokens`."""
    add_option(parser, "--max-tokens", whole(), tokens, "maximum length of an answer")


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add `--set` with several values."""
    text = "a setting; all combinations of several values are measured, as in ngram_mod.k=2,4,6,8"
    parser.add_argument("--set", action="append", default=[], metavar="GROUP.FIELD=A,B,…", help=text)


def add_drafters(parser: argparse.ArgumentParser, *default: str) -> None:
    """Add `--drafters`; a drafter or `all`."""
    kind = names("drafter", DRAFTERS, others=("all",))
    add_option(parser, "--drafters", kind, default, "comma-separated names, or all without a model")


# ---- the benches


def _matrix(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(
        parser,
        "--cases",
        _cases,
        ("three-class",),
        "comma-separated: three-class or editing (bundled prompts), document, document-attached (generated),"
        " a file of prompts (.jsonl: prompt or turns, and class), a text file",
    )
    parser.add_argument(
        "--prompt-tokens",
        type=listed(whole()),
        default=(),
        metavar="N,…",
        help="exact lengths: prompts are cut or padded, documents cut (default: unchanged; documents 8000)",
    )
    add_option(parser, "--each", whole(0), 0, "cases per class, drawn by --seed; 0 for all")
    add_option(parser, "--seed", whole(0), 1, "seed of drawn cases and generated documents")
    add_drafters(parser, "off", "ngram-simple", "auto")
    add_set(parser)
    add_option(parser, "--pairs", whole(), 3, "measured pairs per case and configuration")
    add_answer_length(parser)
    parser.add_argument("--draft-model", default="", help="for draft-model (default: a truncated copy)")
    add_option(parser, "--draft-layers", whole(), 6, "layers of that copy")
    parser.add_argument(
        "--model-defaults",
        action="store_true",
        help="the settings of a new chat, with the model's own sampling, also for mlx-lm",
    )
    parser.add_argument("--json", action="store_true", help="one result per line on stdout; ends with stdin")
    add_out(parser, required=False)


def _cases(text: str) -> tuple[str, ...]:
    """Comma-separated names and files, or one file whose name may contain commas."""
    if Path(text).is_file():
        return (text,)
    found = listed(str)(text)
    for each in found:
        if each not in (*BUNDLED, *DOCUMENTS) and not Path(each).exists():
            known = ", ".join((*BUNDLED, *DOCUMENTS))
            raise argparse.ArgumentTypeError(f"unknown case “{each}”; choose from {known}, or a file")
    return found


def _retrieval(parser: argparse.ArgumentParser) -> None:
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
        help="also measure the likelihood of right answers to N questions (default 0)",
    )
    parser.add_argument(
        "--set",
        action="append",
        type=_prefill_setting,
        default=[],
        metavar="PREFILL.FIELD=VALUE",
        help="a setting of sparse prefill; repeatable",
    )


def _prefill_setting(text: str) -> str:
    """`prefill.field=value`; the value is checked before the model is loaded."""
    key, equals, _ = text.partition("=")
    if not (key.startswith("prefill.") and equals):
        raise argparse.ArgumentTypeError(f"“{text}” is not prefill.FIELD=VALUE")
    if key in _RETRIEVAL_OPTIONS:
        raise argparse.ArgumentTypeError(f"{key} is not set by --set. Use {_RETRIEVAL_OPTIONS[key]}")
    return text


def _documents() -> Sequence[str]:
    from core.bench.retrieval import documents

    return [document.name for document in documents()]


def _window(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parts",
        type=names("part", BENCH_PARTS),
        default=BENCH_PARTS,
        help=f"comma-separated (default {','.join(BENCH_PARTS)})",
    )
    add_option(parser, "--pairs", whole(), 9, "pairs for the overhead")


def _run_window(options: argparse.Namespace) -> int:
    return int(window_part("bench")(str(options.out), options.model, options.parts, options.pairs))
