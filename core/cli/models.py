"""`draftlight models`: what is on this machine and fits it, downloads, imported folders, removal.

Downloads run in this process: Ctrl-C pauses one, and the same command goes on with it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from core.cli import models_profile
from core.cli.console.arguments import whole
from core.cli.console.parser import add_command, add_quiet
from core.errors import ModelError
from core.events import DownloadProgress, ModelEntry, ModelList, fit_of
from core.system.ctrl_c import ending_at_ctrl_c
from core.system.paths import models_dir
from core.system.progress_line import ProgressLine

if TYPE_CHECKING:  # importing it loads MLX's words, which --help does not wait for
    from core.models.library.catalogue import Catalogue

_CONTEXT_TOKENS = 8192
_FITS = {"fits": "Fits", "tight": "Tight", "too-large": "Too large"}
_SOURCES = {
    "starter": "starter model",
    "download": "downloaded",
    "hub-cache": "in the hub's cache",
    "folder": "imported",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and what they take."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = add_command(
        actions, "list", "every model here: its size, whether it fits, who can draft for it", _list
    )
    listing.add_argument("--json", action="store_true", help="one JSON object")
    listing.add_argument(
        "--context",
        type=whole(),
        default=_CONTEXT_TOKENS,
        metavar="N",
        help=f"tokens to work memory out for (default {_CONTEXT_TOKENS})",
    )
    download = add_command(
        actions, "download", "get a model from the hub, or go on where its download stopped", _download
    )
    download.add_argument("model", metavar="OWNER/NAME")
    add_quiet(download)
    download.add_argument("--discard", action="store_true", help="remove what arrived instead")
    add_command(actions, "import", "list a model folder; it stays where it is", _import).add_argument(
        "path", type=Path, metavar="FOLDER"
    )
    remove = add_command(
        actions, "remove", "erase a model; an imported one is only taken off the list", _remove
    )
    remove.add_argument("model", metavar="MODEL", help="its name, hub name or folder")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    models_profile.add_arguments(
        add_command(actions, "profile", "measure what checking several tokens at once costs here")
    )


def _list(options: argparse.Namespace) -> int:
    from core.models.library.download import unfinished

    catalogue = _catalogue()
    entries, limit = catalogue.entries(), catalogue.machine.limit_bytes
    states = tuple(
        DownloadProgress(each.model, "paused", each.done_bytes, each.total_bytes) for each in unfinished()
    )
    if options.json:
        free = shutil.disk_usage(models_dir() if models_dir().exists() else Path.home()).free
        told = ModelList("cli", str(models_dir()), entries, states, limit, free)
        print(msgspec.json.encode(told).decode())
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
        f"context {entry.context_tokens:,}" if entry.context_tokens else "",
        f"tokenizer {entry.family_name} ({entry.family[:12]})" if entry.family else "",
        _SOURCES[entry.source],
    )


def _drafts(entry: ModelEntry, entries: tuple[ModelEntry, ...]) -> list[str]:
    """Smaller models of the same tokenizer that can be loaded."""
    return [
        each.name
        for each in entries
        if each.family
        and each.family == entry.family
        and not each.problem
        and each.parameters < entry.parameters
    ]


def _download(options: argparse.Namespace) -> int:
    from core.models.library.download import discard, standing

    model: str = options.model
    if options.discard:
        stood = standing(model)
        discard(model)
        print(f"Removed {_gb(stood.done_bytes)} of {model}.")
        return 0
    print(f"Downloaded {model} to {_get(model, options.quiet)}.")
    return 0


def fetch(model: str, *, quiet: bool = False) -> None:
    """Download `model` if it is a hub name that is not on this machine; says so on stderr."""
    from core.models.library.naming import is_hub_name
    from core.models.library.places import find

    if Path(model).exists() or not is_hub_name(model) or find(model):
        return
    print(f"{model} is not on this computer. Downloading it; Ctrl-C pauses.", file=sys.stderr)
    print(f"Downloaded {model} to {_get(model, quiet)}.", file=sys.stderr)


def _get(model: str, quiet: bool) -> Path:
    """Download `model` and show how far that is; interrupted it says how to go on."""
    from core.models.library.download import Download, Meter, standing

    meter, line = Meter(model), ProgressLine(quiet)

    def heard(done_bytes: int, total_bytes: int) -> None:
        if line.due() and (progress := meter.take(done_bytes, total_bytes)):
            left = f", {progress.seconds_left:.0f} s left" if progress.seconds_left is not None else ""
            speed = f"{progress.bytes_per_s / 2**20:.1f} MB/s"
            line.say(f"{_gb(done_bytes)} of {_gb(total_bytes)}, {speed}{left}")

    def paused() -> None:
        stood = standing(model)
        line.clear()
        print(
            f"Paused: {_gb(stood.done_bytes)} of {_gb(stood.total_bytes)} are here."
            f" To go on: draftlight models download {model}",
            file=sys.stderr,
        )

    # What arrived is on the disk, so a download may end at any moment.
    with line, ending_at_ctrl_c(paused):
        return Download(model, heard).run()


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
    elif entry.source == "hub-cache":
        question = f"Erase {entry.name} ({_gb(entry.disk_bytes)}) from the cache that other programs share?"
    else:
        question = f"Erase {entry.name} ({_gb(entry.disk_bytes)})?"
    if not options.yes and not _agreed(question):
        print("Nothing was removed.")
        return 1
    removed, freed = catalogue.remove(entry.reference)
    print(
        f"Removed {removed.name}." if not freed else f"Removed {removed.name}: {_gb(freed)} are free again."
    )
    return 0


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ModelError("Nothing was removed, as nobody can be asked here.", "Add --yes.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _catalogue() -> Catalogue:
    from core.models.runtime.runtime import prepare

    prepare()
    from core.models.library.catalogue import Catalogue
    from core.models.runtime.memory import machine

    return Catalogue(machine())


def _gb(size_bytes: int) -> str:
    if size_bytes < 2**30 / 10:
        return f"{size_bytes / 2**20:,.1f} MB"
    return f"{size_bytes / 2**30:,.1f} GB"
