"""The command line: every subcommand, what it takes, and who does it.

The window is found through the entry point group `draftlight.window`, so that the engine can be
installed, imported and tested without Qt.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core import models_command, tables_build_command, tables_command
from core.bench import sweep_options, table_options
from core.errors import DraftlightError, RequestError, SettingError
from core.settings import Settings, declared, parse_all

# Settings common enough to have a flag of their own; all others are reached by --set.
_FLAGS = {
    "--drafter": "drafting.drafter",
    "--max-tokens": "sampling.max_tokens",
    "--temperature": "sampling.temperature",
    "--seed": "sampling.seed",
    "--specprefill": "prefill.mode",
    "--keep-pct": "prefill.keep_pct",
    "--scorer": "prefill.scorer",
}


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the status. Errors are said on stderr, Ctrl-C is passed on."""
    options = _parser().parse_args(arguments)
    try:
        if getattr(options, "loads", False):
            from core.models_command import fetch

            fetch(options.model)
        return int(options.run(options))
    except (SettingError, _UsageError) as error:
        print(f"draftlight: {error}", file=sys.stderr)
        return 2
    except DraftlightError as error:
        print(f"draftlight: {error}", file=sys.stderr)
        return 1


class _UsageError(RequestError):
    """The command line itself is wrong."""

    code = "usage"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="draftlight", description="Chat with a local model and see why it is fast."
    )
    parser.add_argument("--version", action="version", version=importlib.metadata.version("draftlight"))
    parser.add_argument("--model", default="", help="starter, a model folder, or a hub name")
    parser.add_argument("--smoke", action="store_true", help="open, ask one question, print stats, quit")
    parser.add_argument("--screenshot", metavar="FILE.png", help="save a picture of the window in mid-answer")
    parser.add_argument("--scheme", choices=("system", "light", "dark"), default="system")
    parser.add_argument(
        "--open", action="append", default=[], type=Path, metavar="FILE", help="attach it to the message"
    )
    parser.set_defaults(run=_window)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    generate = commands.add_parser("generate", help="answer one prompt in the terminal")
    _add_model(generate)
    source = generate.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", help="the question")
    source.add_argument("--prompt-file", type=Path, metavar="F", help="the question, from a text file")
    source.add_argument("--messages", type=Path, metavar="F.json", help='[{"role": …, "content": …}, …]')
    generate.add_argument("--document", type=Path, metavar="F", help="a text to ask about")
    _add_settings(generate)
    generate.add_argument("--json", action="store_true", help="one event a line")
    generate.set_defaults(run=_generate)

    models = commands.add_parser("models", help="which are here, what fits, downloads, what a model costs")
    actions = models_command.add_arguments(models)
    profile = actions.add_parser("profile", help="measure what checking several tokens at once costs here")
    _add_model(profile)
    profile.set_defaults(run=_models_profile)

    tables = commands.add_parser("tables", help="what the drafters learned: list, save, share, erase")
    tables_build_command.add_action(tables_command.add_arguments(tables))

    bench = commands.add_parser("bench", help="measure")
    benches = bench.add_subparsers(title="benches", metavar="BENCH", required=True)
    decode = benches.add_parser("decode", help="decode speed of the drafters against mlx-lm's own loop")
    _add_model(decode)
    decode.add_argument("--prompts", type=Path, metavar="F.jsonl", help="lines with prompt and class")
    decode.add_argument("--pairs", type=int, default=3, help="measured pairs a configuration (default 3)")
    decode.add_argument("--drafters", default="off,ngram-simple", help="comma-separated names")
    decode.add_argument("--k", default="2,7", help="draft lengths of ngram-simple (default 2,7)")
    decode.add_argument("--n-min", default="2,3", help="shortest matches of ngram-simple (default 2,3)")
    decode.add_argument("--draft-model", default="", help="for draft-model (default: a cut-down copy)")
    decode.add_argument("--draft-layers", type=int, default=6, help="layers of the cut-down copy (default 6)")
    decode.add_argument("--max-prompt-tokens", type=int, default=800)
    decode.add_argument("--max-tokens", type=int, default=128)
    decode.add_argument("--out", type=Path, required=True, metavar="DIR")
    decode.set_defaults(run=_bench_decode)

    parity = benches.add_parser("parity", help="is drafted greedy output the plain output, on every run")
    _add_model(parity)
    parity.add_argument("--prompts", type=Path, metavar="F.jsonl", help="lines with prompt and class")
    parity.add_argument("--lengths", default="600,800", help="prompt lengths in tokens (default 600,800)")
    parity.add_argument("--k", default="2,7", help="draft lengths (default 2,7)")
    parity.add_argument("--n-min", default="2,3", help="shortest matches (default 2,3)")
    parity.add_argument(
        "--runs", type=int, default=3, help="runs a side (default 3, so 9 comparisons a cell)"
    )
    parity.add_argument("--max-tokens", type=int, default=128)
    parity.add_argument("--out", type=Path, required=True, metavar="DIR")
    parity.set_defaults(run=_bench_parity)

    window = benches.add_parser("window", help="the window: opening, scrolling, streaming, memory, its cost")
    _add_model(window)
    window.add_argument("--parts", default="start,ready,scenes,cost", help="comma-separated (default all)")
    window.add_argument("--pairs", type=int, default=9, help="measured pairs of the cost (default 9)")
    window.add_argument("--out", type=Path, required=True, metavar="DIR")
    window.set_defaults(run=_bench_window)

    prefill = benches.add_parser("prefill", help="time to first token of a long document against mlx-lm")
    _add_model(prefill)
    prefill.add_argument("--tokens", type=int, default=8000, help="prompt tokens (default 8000)")
    prefill.add_argument("--keep", default="10,20,30,50,100", help="shares kept (default 10,20,30,50,100)")
    _add_scoring(prefill)
    prefill.add_argument(
        "--scorers", default="lexical,early-layers,draft-model", help="comma-separated names"
    )
    prefill.add_argument("--pairs", type=int, default=5, help="measured rounds of all (default 5)")
    prefill.add_argument("--kind", default="minutes", help="kind of generated document (default minutes)")
    prefill.add_argument("--seed", type=int, default=1, help="of the generated document (default 1)")
    prefill.add_argument("--document", type=Path, metavar="F", help="a text to read instead")
    prefill.add_argument("--out", type=Path, required=True, metavar="DIR")
    prefill.set_defaults(run=_bench_prefill)

    quality = benches.add_parser("quality", help="what sparse reading costs in answers and likelihoods")
    _add_model(quality)
    quality.add_argument("--keep", type=float, default=20.0, help="share kept (default 20)")
    _add_scoring(quality)
    quality.add_argument(
        "--readers",
        default="lexical,early-layers,draft-model,random,head-and-tail,end",
        help="scorers, and the baselines random, head-and-tail and end (default all these); hindsight-N is"
        " shown the N tokens that follow",
    )
    quality.add_argument("--tasks", default="all", help="comma-separated names, all or none")
    quality.add_argument("--kinds", default="all", help="of documents that go on: names, all or none")
    quality.add_argument(
        "--passages", default="all", help="of documents that a passage is asked of: names, all or none"
    )
    quality.add_argument("--seeds", type=int, default=20, help="prompts a task (default 20)")
    quality.add_argument("--windows", type=int, default=4, help="documents a kind (default 4)")
    quality.add_argument(
        "--context", type=int, default=4096, help="prompt tokens of passages and tasks (default 4096)"
    )
    quality.add_argument(
        "--document-context", type=int, default=7600, help="document tokens before the predicted ones"
    )
    quality.add_argument("--continuation", type=int, default=256, help="predicted tokens (default 256)")
    quality.add_argument("--quick", action="store_true", help="3 prompts a task, 1 document a kind")
    quality.add_argument("--out", type=Path, required=True, metavar="DIR", help="goes on where it stopped")
    quality.set_defaults(run=_bench_quality)
    tables_bench = benches.add_parser("tables", help="what tables give, how large, how safe, how quick")
    _add_model(tables_bench)
    table_options.arguments(tables_bench)
    tables_bench.set_defaults(run=_bench_tables)

    sweep_bench = benches.add_parser("sweep", help="every drafter on every class: what the Lab shows")
    _add_model(sweep_bench)
    sweep_options.arguments(sweep_bench)
    sweep_bench.set_defaults(run=_bench_sweep)

    replay = benches.add_parser("replay", help="drafters over recorded streams, without a model")
    source = replay.add_mutually_exclusive_group(required=True)
    source.add_argument("--streams", type=Path, metavar="F.jsonl.gz", help="recorded answers to replay")
    source.add_argument("--record", type=Path, metavar="F.jsonl.gz", help="record new ones instead")
    _add_model(replay)
    replay.add_argument("--prompts", type=Path, metavar="F.jsonl", help="what to answer when recording")
    replay.add_argument("--max-tokens", type=int, default=160, help="of a recorded answer (default 160)")
    replay.add_argument("--batch", type=int, default=1, help="answers recorded at once (default 1)")
    replay.add_argument("--drafters", default="", help="comma-separated names (default: all)")
    replay.add_argument("--costs", default="cpu,apple", help="named cost tables (default cpu,apple)")
    replay.add_argument("--gates", default="always", help="always, auto, or both")
    replay.add_argument("--out", type=Path, metavar="DIR", help="for the report of a replay")
    replay.add_argument("--learned", type=Path, metavar="TABLE", help="a table of answers, for auto")
    replay.add_argument("--texts", type=Path, metavar="TABLE", help="a table of texts, for auto")
    replay.set_defaults(run=_bench_replay)

    fit = benches.add_parser("fit", help="the weights of auto's evidence, from recorded answers")
    fit.add_argument("--streams", type=Path, required=True, metavar="F.jsonl.gz")
    fit.add_argument("--learned", type=Path, metavar="TABLE", help="a learned table of other answers")
    fit.add_argument(
        "--held-out", type=int, default=5, metavar="N", help="every Nth answer is not fitted (default 5)"
    )
    fit.add_argument("--out", type=Path, required=True, metavar="DIR")
    fit.set_defaults(run=_bench_fit)

    doctor = commands.add_parser("doctor", help="what is installed, what is fast, what is not and why")
    doctor.set_defaults(run=_doctor)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    """The model that the command loads; a hub name that is not here is downloaded first."""
    parser.add_argument("--model", default="starter", help="starter, a model folder, or a hub name")
    parser.set_defaults(loads=True)


def _add_scoring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--score-layers", type=int, default=0, help="of early-layers (default: the setting's)"
    )
    parser.add_argument("--draft-model", default="", help="for draft-model (default: a cut-down copy)")
    parser.add_argument("--draft-layers", type=int, default=8, help="layers of the cut-down copy (default 8)")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    known = {setting.key: setting for setting in declared()}
    for flag, key in _FLAGS.items():
        setting = known[key]
        told = f"{setting.title.lower()}: {setting.allowed} (default {setting.default})"
        parser.add_argument(
            flag, dest=key, metavar="NAME" if setting.choices else "N", help=told.replace("%", "%%")
        )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="GROUP.FIELD=VALUE",
        help="any setting: " + ", ".join(known),
    )


def settings_from(options: argparse.Namespace) -> Settings:
    """The settings that the flags ask for. Raises `SettingError`."""
    pairs: list[tuple[str, str]] = []
    for text in options.set:
        key, equals, value = text.partition("=")
        if not equals:
            raise _UsageError(f"--set {text} has no value.", "Write --set group.field=value.")
        pairs.append((key, value))
    pairs += [(key, value) for key in _FLAGS.values() if (value := vars(options)[key]) is not None]
    return parse_all(Settings(), pairs)


def _of_window(name: str) -> Callable[..., Any] | None:
    """What the window's part of this installation calls `name`; None if it has no such part."""
    entries = importlib.metadata.entry_points(group="draftlight.window", name=name)
    return next((entry.load() for entry in entries), None)


def _of_the_window(name: str) -> Callable[..., int]:
    entries = importlib.metadata.entry_points(group="draftlight.window")
    found = [entry for entry in entries if entry.name == name]
    if not found:
        raise _UsageError("This installation has no window.", "Install the whole of Draftlight.")
    loaded: Callable[..., int] = found[0].load()
    return loaded


def _bench_window(options: argparse.Namespace) -> int:
    parts = options.parts.split(",")
    return _of_the_window("bench")(str(options.out), options.model, parts, options.pairs)


def _window(options: argparse.Namespace) -> int:
    run = _of_window("smoke" if options.smoke else "screenshot" if options.screenshot else "window")
    if run is None:
        raise _UsageError("This installation has no window.", "Install the whole of Draftlight.")
    if options.smoke:
        return int(run(options.model or "starter"))
    if options.screenshot:
        return int(run(options.screenshot, options.scheme, options.model or "starter"))
    return int(run(options.model, options.scheme, options.open))


def _doctor(options: argparse.Namespace) -> int:
    from core.doctor_command import run

    return run(_of_window("doctor"))


def _generate(options: argparse.Namespace) -> int:
    from core.generate_command import run

    return run(options, settings_from(options))


def _models_profile(options: argparse.Namespace) -> int:
    from core.profile_command import run

    return run(options.model)


def _bench_decode(options: argparse.Namespace) -> int:
    from core.bench.decode import run

    return run(options)


def _bench_parity(options: argparse.Namespace) -> int:
    from core.bench.parity import run

    return run(options)


def _bench_fit(options: argparse.Namespace) -> int:
    from core.bench.fit import run

    return run(options)


def _bench_prefill(options: argparse.Namespace) -> int:
    from core.bench.prefill import run

    return run(options)


def _bench_quality(options: argparse.Namespace) -> int:
    from core.bench.quality import run

    return run(options)


def _bench_tables(options: argparse.Namespace) -> int:
    from core.bench.tables import run

    return run(options)


def _bench_sweep(options: argparse.Namespace) -> int:
    from core.bench.sweep import run

    return run(options)


def _bench_replay(options: argparse.Namespace) -> int:
    if options.record is not None:
        from core.bench.record import run as record

        return record(options)
    if options.out is None:
        raise _UsageError("There is no place for the report.", "Give --out DIR.")
    from core.bench.replay import run

    return run(options)
