"""`python -m tests.tuning COMMAND`: measurements that tune Draftlight and are not part of it.

The commands take options like those of `draftlight bench`, and use the same runner.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib import import_module

from core.cli.arguments import (
    Parser,
    add_command,
    add_model,
    add_quiet,
    add_settings,
    listed,
    name,
    names,
    number,
    readable_file,
    whole,
)
from core.cli.bench import add_answer_length, add_drafters, add_option, add_out, add_set
from core.errors import DraftlightError
from core.settings.declaration import find
from core.settings.prefill import SCORERS


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root = Parser(prog="python -m tests.tuning", description="Measurements that tune Draftlight.")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, text: str, add: Callable[[argparse.ArgumentParser], object]) -> None:
        module = f"tests.tuning.{name.replace('-', '_')}"
        added = add_command(commands, name, text, lambda options: int(import_module(module).run(options)))
        add(added)
        add_out(added)
        add_quiet(added)

    command("fit", "fit the weights of auto's evidence to recorded answers", _fit)
    command("answers", "right answers and loops: facts asked about documents", _answers)
    command("kv-bits", "size and quality of quantised caches", add_model)
    command(
        "played", "wall-clock speed of drafters on given texts, on random models of several sizes", _played
    )
    command("replay", "drafters on recorded answers, without a model", _replay)
    command("own-answers", "auto after a model's own answers, without a model", _own_answers)
    command("rehearse", "record answers of a model, and count them into a table for auto", _rehearse)
    command("sources", "precision of the sources of an answer", add_model)
    command("origins", "marked figures and names of labelled answers; with --time what that takes", _origins)
    command("likelihood", "likelihood of texts after sparse prefill, relative to dense", _likelihood)
    command("reopen", "time to first token of a saved chat after a restart, relative to cold", _reopen)
    command("ahead", "time to first token of a document that was read before its question", _ahead)
    command("images", "time and memory of images, and of follow-up questions", _images)
    command("readings", "which way of reading answers best, in longer texts", _readings)
    command("tool-calls", "what recorded calls of tools are made of, and their streams", _tool_calls)
    command("served", "what the local server adds to an answer", _served)
    command("predictions", "predicted time left of a prefill, against what it takes", _predictions)
    return root


def _answers(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_settings(parser)
    parser.add_argument(
        "--half",
        type=name("half", ("dev", "held-out", "all")),
        default="dev",
        help="documents for tuning (dev), held-out ones, or all (default dev)",
    )
    parser.add_argument(
        "--baseline",
        type=readable_file,
        metavar="F.jsonl",
        help="the answers.jsonl of another run, for pairs",
    )


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--streams", type=readable_file, required=True, metavar="F.jsonl.gz")
    parser.add_argument(
        "--learned", type=readable_file, metavar="TABLE", help="a prebuilt table from other answers"
    )
    parser.add_argument(
        "--held-out", type=whole(2), default=5, metavar="N", help="hold out every Nth answer (default 5)"
    )


def _origins(parser: argparse.ArgumentParser) -> None:
    halves = ("tuned", "held_out", "fresh", "fourth", "fifth", "sixth")
    add_option(parser, "--halves", names("half", halves), halves[:2], "of the labelled documents")
    parser.add_argument(
        "--documents",
        type=listed(str),
        default=(),
        metavar="NAME,...",
        help="a table of the documents with these names, and one of the others",
    )
    parser.add_argument(
        "--misses",
        action="store_true",
        help="list the labels that are marked wrongly, or not, of these documents, or of all",
    )
    parser.add_argument(
        "--time", action="store_true", help="measure an answer of 4,000 tokens (idle machine)"
    )


def _likelihood(parser: argparse.ArgumentParser) -> None:
    from tests.tuning.texts import KINDS, SCORELESS

    add_model(parser)
    known = (*SCORERS, *SCORELESS)
    add_option(parser, "--readers", names("reader", known), known, "scorers, and baselines without a score")
    add_option(parser, "--kinds", names("kind of document", list(KINDS)), tuple(KINDS), "kinds of documents")
    add_option(parser, "--keep", number(1, 100), 12.0, "percentage kept")
    add_option(parser, "--seeds", whole(), 4, "documents and passages of each kind")
    add_option(
        parser, "--tokens", listed(whole()), (7600, 4096), "of documents and of prompts about passages"
    )
    add_option(parser, "--continuation", whole(), 256, "predicted tokens")
    parser.add_argument("--draft-model", default="", help="of the scorer draft-model (default: a copy)")
    add_option(parser, "--draft-layers", whole(), 8, "layers of that copy")


def _reopen(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--tokens", listed(whole()), (2000, 8000), "sizes of the chat")
    add_option(parser, "--pairs", whole(), 5, "pairs of each size")


def _images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="", help="one that sees (default: a synthetic one of starter size)"
    )
    add_option(parser, "--side", whole(), 1024, "of the square image, in pixels; 1,024 are about 1,000 rows")
    add_option(parser, "--pairs", whole(), 1, "rounds")


def _ahead(parser: argparse.ArgumentParser) -> None:
    from tests.tuning.ahead import WAYS

    add_model(parser)
    add_option(parser, "--tokens", whole(), 8000, "size of the document")
    add_option(parser, "--pairs", whole(), 5, "questions, one a document")
    parser.add_argument("--ways", type=names("way", WAYS), default=WAYS, help="beside “today” (default all)")


def _readings(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--tokens", listed(whole()), (2000, 5000), "sizes of the text")


def _served(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--pairs", whole(), 9, "answers")


def _tool_calls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--conversations", type=readable_file, required=True, metavar="F.json")
    parser.add_argument("--tools", type=readable_file, required=True, metavar="F.json")
    add_option(parser, "--most", whole(), 50, "conversations")
    add_option(parser, "--streams", whole(), 60, "streams that are written")


def _predictions(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_option(parser, "--most", whole(), 9000, "tokens of the longest attachment")


def _played(parser: argparse.ArgumentParser) -> None:
    from tests.tuning.played import BUNDLED_TEXTS, QUICK_SIZES, QUICK_TOKENS, SIZES

    add_option(
        parser,
        "--texts",
        listed(lambda name: name if name == BUNDLED_TEXTS else str(readable_file(name))),
        (BUNDLED_TEXTS,),
        "comma-separated: bundled, files of streams of the starter's tokenizer, or AlpacaEval's"
        " model_outputs.json",
    )
    add_option(parser, "--sizes", listed(_layers_and_hidden), SIZES, "layers x hidden size of the models")
    add_option(parser, "--each", whole(), 2, "texts of a class")
    add_answer_length(parser)
    quick = f"five minutes: {' and '.join(QUICK_SIZES)}, one text of {QUICK_TOKENS} tokens of a class"
    parser.add_argument("--quick", action="store_true", help=quick)


def _layers_and_hidden(text: str) -> str:
    from tests.tuning.played import SIZES, heads_of

    match = re.fullmatch(r"([1-9][0-9]{0,2})x([1-9][0-9]{0,4})", text)
    if match is None or int(match[2]) % heads_of(int(match[2])):
        raise argparse.ArgumentTypeError(
            f"“{text}” is not a size: layers x hidden size, a multiple of its heads, as {', '.join(SIZES)}"
        )
    return text


def _replay(parser: argparse.ArgumentParser) -> None:
    from tests.tuning.replay import COST_TABLES

    parser.add_argument("--streams", type=readable_file, required=True, metavar="F.jsonl.gz")
    add_drafters(parser, "all")
    add_option(
        parser, "--costs", names("cost table", list(COST_TABLES)), ("cpu", "apple"), "names of cost tables"
    )
    gates = names("gate", find("gate.mode").choices)
    add_option(parser, "--gates", gates, ("always",), "always, auto, or both")
    text = "plain steps that asking a drafter adds to a step"
    add_option(parser, "--overhead", number(0.0, 10.0), 0.0, text)
    parser.add_argument("--frozen", type=readable_file, metavar="TABLE", help="frozen table for cacheback")
    parser.add_argument("--learned", type=readable_file, metavar="TABLE", help="table of answers for auto")
    add_set(parser)


def _own_answers(parser: argparse.ArgumentParser) -> None:
    from tests.tuning.replay import COST_TABLES

    add_model(parser)
    parser.add_argument(
        "--answers",
        type=readable_file,
        nargs="+",
        required=True,
        metavar="FILE",
        help="streams, or AlpacaEval's model_outputs.json; every 13th answer is replayed, others are learned",
    )
    parser.add_argument(
        "--more", type=readable_file, metavar="FILE", help="answers to learn after the others"
    )
    add_option(parser, "--folds", whole(1, 13), 1, "thirteenths to replay")
    add_option(parser, "--max-tokens", whole(), 4096, "tokens of an answer to replay")
    add_option(parser, "--own", listed(whole()), (5000, 27000, 150000), "tokens of answers learned before")
    add_option(
        parser, "--costs", names("cost table", list(COST_TABLES)), ("cpu", "apple"), "names of cost tables"
    )


def _rehearse(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--prompts",
        type=readable_file,
        metavar="F.jsonl",
        help="lines with prompt, class, then (default: resources/rehearsal)",
    )
    add_answer_length(parser, 200)
    parser.add_argument("--batch", type=whole(), default=16, help="answers generated at once (default 16)")
    parser.add_argument(
        "--tokens", type=whole(0), default=0, help="token limit, including earlier runs (default all)"
    )
    parser.add_argument(
        "--kbytes", type=whole(), default=1500, help="approximate size limit of the table (default 1500)"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    try:
        options = parser().parse_args(arguments)
        if "model" in options and options.model is None:
            options.model = "starter"
        return int(options.run(options))
    except DraftlightError as error:
        print(f"tuning: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
