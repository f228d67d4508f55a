"""`draftlight models`: list, download, import, remove and profile models.

Downloads run in this process. Ctrl-C pauses a download; the same command resumes it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from core.cli.arguments import add_command, add_model, add_quiet, confirmed, whole
from core.errors import RequestError
from core.events import ModelEntry, ModelList, fit_of
from core.system.paths import models_dir
from core.system.terminal import ProgressLine, until_ctrl_c

if TYPE_CHECKING:  # importing it loads MLX, which `--help` does not need
    from core.folders.catalogue import Catalogue

_CONTEXT_TOKENS = 8192
_FITS = {"fits": "Fits", "tight": "Tight", "too-large": "Too large"}
_SOURCES = {
    "starter": "starter model",
    "download": "downloaded",
    "hub-cache": "in another app's folder",
    "other-app": "in another app's folder",
    "folder": "imported",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = add_command(
        actions, "list", "list installed models: size, memory, possible draft models", _list
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.add_argument(
        "--context",
        type=whole(),
        default=_CONTEXT_TOKENS,
        metavar="N",
        help=f"context length for the memory estimate (default {_CONTEXT_TOKENS})",
    )
    download = add_command(
        actions, "download", "download a model from the hub, or resume its download", _download
    )
    download.add_argument("model", metavar="OWNER/NAME")
    add_quiet(download)
    download.add_argument("--discard", action="store_true", help="delete the partial download instead")
    add_command(
        actions, "import", "list a model folder, or a folder of several models, without copying", _import
    ).add_argument("path", type=Path, metavar="FOLDER")
    remove = add_command(
        actions, "remove", "delete a model; an imported one is only removed from the list", _remove
    )
    remove.add_argument("model", metavar="MODEL", help="its name, hub name or folder")
    remove.add_argument("--yes", action="store_true", help="remove without confirmation")
    profile = add_command(actions, "profile", "measure the cost and exactness of verify blocks", _profile)
    add_model(profile)
    add_quiet(profile)


def _list(options: argparse.Namespace) -> int:
    from core.folders.download import unfinished

    catalogue = _catalogue()
    entries, limit = catalogue.entries(), catalogue.machine.limit_bytes
    states = tuple(unfinished())
    if options.json:
        free = shutil.disk_usage(models_dir() if models_dir().exists() else Path.home()).free
        listed = ModelList("cli", str(models_dir()), entries, states, limit, free)
        print(msgspec.json.encode(listed).decode())
        return 0
    for entry in entries:
        print(f"{entry.name}  ({entry.reference})" if entry.reference != entry.name else entry.name)
        print(f"  {', '.join(filter(None, _facts(entry)))}")
        if entry.problem:
            print(f"  Cannot be used: {entry.problem} {entry.hint}".rstrip())
            continue
        context = min(options.context, entry.context_tokens)
        if entry.need.weights:
            need = entry.need.total_at(context)
            spare = f"{_gb(limit - need)} spare" if need <= limit else f"{_gb(need - limit)} over"
            print(
                f"  {_FITS[fit_of(need, limit)]}: about {_gb(need)} of {_gb(limit)} with a context of"
                f" {context:,} tokens, {spare}"
            )
        for head in entry.heads:
            if head.problem:
                print(f"  {head.problem}")
            elif head.gain:
                print(f"  its {head.label} adds {head.gain:.2f} tokens per step on this machine")
            elif head.repository:
                print(f"  with its {head.label}: draftlight models download {head.repository}")
        if drafts := _drafts(entry, entries):
            print(f"  draft models: {', '.join(drafts)}")
    for state in states:
        share = f"{state.done_bytes / state.total_bytes:.0%}" if state.total_bytes else "0%"
        print(f"{state.model}  not finished: {_gb(state.done_bytes)} of {_gb(state.total_bytes)} ({share})")
    if not entries and not states:
        print("No models yet. Get one with: draftlight models download OWNER/NAME")
    return 0


def _facts(entry: ModelEntry) -> tuple[str, ...]:
    return (
        entry.architecture,
        f"{entry.parameters / 1e9:.2f} billion parameters" if entry.parameters else "",
        f"{entry.bits}-bit" if entry.bits else entry.dtype,
        _gb(entry.disk_bytes),
        next((f"{each.label} included" for each in entry.heads if not each.problem + each.repository), ""),
        "" if entry.has_template else "no chat template",
        f"context {entry.context_tokens:,}" if entry.context_tokens else "",
        f"tokenizer {entry.family_name} ({entry.family[:12]})" if entry.family else "",
        _SOURCES[entry.source],
    )


def _drafts(entry: ModelEntry, entries: tuple[ModelEntry, ...]) -> list[str]:
    """Names of smaller usable models with the same tokenizer."""
    return [
        each.name
        for each in entries
        if each.family
        and each.family == entry.family
        and not each.problem
        and each.parameters < entry.parameters
    ]


def _download(options: argparse.Namespace) -> int:
    from core.folders.download import discard, partial_progress

    model: str = options.model
    if options.discard:
        partial = partial_progress(model)
        discard(model)
        if not partial.total_bytes:
            raise RequestError(f"There is no unfinished download of {model}.", "Check the name.")
        print(f"Removed {_gb(partial.done_bytes)} of {model}.")
        return 0
    print(f"Downloaded {model} to {_get(model, options.quiet)}.")
    return 0


def fetch(model: str, *, quiet: bool = False) -> None:
    """Download `model` if it is a hub name that is not installed; prints this on stderr."""
    from core.folders.places import find, is_hub_name

    if Path(model).exists() or not is_hub_name(model) or find(model):
        return
    print(f"{model} is not on this computer. Downloading it; Ctrl-C pauses.", file=sys.stderr)
    print(f"Downloaded {model} to {_get(model, quiet)}.", file=sys.stderr)


def _get(model: str, quiet: bool) -> Path:
    """Download `model` with progress on stderr; if interrupted, print how to resume."""
    from core.folders.download import Download, Meter, partial_progress

    meter, line = Meter(model), ProgressLine(quiet)

    def show(done_bytes: int, total_bytes: int) -> None:
        if line.due() and (progress := meter.take(done_bytes, total_bytes)):
            left = f", {progress.seconds_left:.0f} s left" if progress.seconds_left is not None else ""
            speed = f"{progress.bytes_per_s / 2**20:.1f} MB/s"
            line.say(f"{_gb(done_bytes)} of {_gb(total_bytes)}, {speed}{left}")

    def paused() -> None:
        partial = partial_progress(model)
        line.clear()
        print(
            f"Paused: {_gb(partial.done_bytes)} of {_gb(partial.total_bytes)} downloaded."
            f" To continue: draftlight models download {model}",
            file=sys.stderr,
        )

    # A partial download is kept on disk, so it may be interrupted at any time.
    with line:
        return until_ctrl_c(Download(model, show).run, paused)


def _import(options: argparse.Namespace) -> int:
    entry = _catalogue().take(str(options.path))
    print(f"Imported {entry.name} from {entry.path}; it stays there.")
    if entry.problem:
        print(f"It cannot be used here: {entry.problem} {entry.hint}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    catalogue = _catalogue()
    entry = catalogue.entry(options.model)
    if entry.source == "folder":
        question = f"Take {entry.name} off the list? Its folder stays."
    elif entry.listed_in:
        question = f"Take {entry.listed_in} and its models off the list? The folder stays."
    elif entry.source in ("hub-cache", "other-app"):
        catalogue.remove(entry.reference)  # raises, with the reason
        return 1
    else:
        question = f"Erase {entry.name} ({_gb(entry.disk_bytes)})?"
    if not options.yes and not confirmed(question):
        print("Nothing was removed.")
        return 1
    removed, freed = catalogue.remove(entry.reference)
    print(
        f"Removed {removed.name}." if not freed else f"Removed {removed.name}: {_gb(freed)} are free again."
    )
    return 0


def _profile(options: argparse.Namespace) -> int:
    """Measure T(w) and compare block widths completely, then print both. Raises `ModelError`."""
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    engine = Engine()
    with ProgressLine(options.quiet) as line:
        line.say(f"Loading {options.model}", now=True)
        info = engine.load(options.model)
        line.say("Trying trees and long prompts, and timing verify blocks", now=True)
        profile = engine.measure_cost()
        line.clear()
        print(f"{info.name}, {info.dtype}: time of a block of w tokens, in plain steps")
        for context in profile.contexts:
            for kind, timed in (("chains", context.seconds), ("trees", context.trees)):
                costs = "  ".join(f"{width}: {seconds / timed[1]:.2f}" for width, seconds in timed.items())
                base = f"context {context.context_tokens:,} (plain step {1000 * context.seconds[1]:.0f} ms)"
                print(f"  {base}, {kind}  {costs or 'not measured'}", flush=True)
        if profile.doubt:
            print(
                f"  not kept: {profile.doubt}. Other programs use the processor; run this again without them."
            )
        verdict = engine.try_out()
        print(f"trees: {verdict.why_no_trees or 'exact'}")
        agreed = verdict.splits.agreed_tokens
        limit = "exact" if agreed is None else f"not beyond {agreed:,} tokens: {verdict.splits.reason}"
        print(f"drafts and reuse: {limit}", flush=True)
        line.say("Trying questions about a text", now=True)
        trial = engine.try_readings()
        line.clear()
        if trial.summary:
            print(f"long texts, in nats per token of right answers: {trial.summary}", flush=True)
        line.say("Comparing blocks with plain steps (this can take minutes)", now=True)
        found = engine.exactness_profile(complete=True)
    print(f"exact: {found.summary}")
    return 0


def _catalogue() -> Catalogue:
    from core.models.runtime import prepare

    prepare()
    from core.folders.catalogue import Catalogue
    from core.models.memory import machine

    return Catalogue(machine())


def _gb(size_bytes: int) -> str:
    if size_bytes < 2**30 / 10:
        return f"{size_bytes / 2**20:,.1f} MB"
    return f"{size_bytes / 2**30:,.1f} GB"
