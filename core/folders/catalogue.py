"""Catalogue: the models on this machine, and suggestions for downloads.

Reads configs and headers, never weights, and takes no lock, so any thread may use it while a model runs.
Importing adds a folder to a list without copying: models are large and shared with other programs. It may
be a folder of several models. Files that Draftlight did not write are never changed or erased.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import ModelError, reason_of
from core.events import MemoryNeed, ModelEntry, ModelHead
from core.folders import places
from core.folders.config import Machine, is_supported
from core.folders.download import NOTE
from core.folders.eyes import FAMILIES
from core.folders.folder import check, describe, disk_bytes
from core.folders.heads import found_heads
from core.folders.json_files import object_in
from core.folders.places import family_label
from core.folders.starter import NAME, STARTER, packed_file, starter_folder
from core.system.paths import given_path, models_dir, resources_dir
from core.system.prepared import prepared


class Catalogue:
    """The models on this machine. `machine` decides which ones fit into memory."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def entries(self) -> tuple[ModelEntry, ...]:
        """The starter first, then by name. Families are named after their members."""
        found = _with_heads([*self._found()])
        found.sort(key=lambda entry: (entry.source != "starter", entry.name.lower()))
        members: dict[str, list[str]] = defaultdict(list)
        for entry in found:
            members[entry.family].append(entry.name)
        return tuple(
            replace(entry, family_name=family_label(members[entry.family])) if entry.family else entry
            for entry in found
        )

    def entry(self, reference: str) -> ModelEntry:
        """The entry with this reference, folder or name. Raises `ModelError`."""
        entries = self.entries()
        path = os.path.abspath(given_path(reference, ModelError))
        for matches in (
            [each for each in entries if each.reference == reference or each.path == path],
            [each for each in entries if each.name.lower() == reference.lower()],
        ):
            if len(matches) == 1:
                return matches[0]
            if matches:
                several = ", ".join(each.reference for each in matches)
                raise ModelError(
                    f"There are {len(matches)} models “{reference}” on this machine.",
                    f"Choose one of {several}.",
                )
        known = ", ".join(each.reference for each in entries)
        raise ModelError(f"There is no model “{reference}” on this machine.", f"Choose one of {known}.")

    def take(self, path: str) -> ModelEntry:
        """Imports the folder at `path`, also if the model is too large, and returns its entry.

        Of a folder with several models it returns the first. Raises `ModelError` if there is none.
        """
        folder = Path(os.path.abspath(given_path(path, ModelError)))
        if folder.is_file():
            folder = _folder_of(folder)
        if not folder.is_dir():
            raise ModelError(f"There is no folder {folder}.", "Choose the folder of a complete MLX model.")
        if inside := [each for each in places.models_in(folder) if _is_ours(each)]:
            if not {str(each) for each in inside} <= {each.path for each in self.entries()}:
                places.remember(folder)
            return next(each for each in self.entries() if Path(each.path) in inside)
        if not places.is_head_folder(folder):
            check(folder)
        if known := next((each for each in self.entries() if Path(each.path) == folder), None):
            return known
        places.remember(folder)
        return self.entry(str(folder))

    def remove(self, reference: str, in_use: Sequence[str] = ()) -> tuple[ModelEntry, int]:
        """Erases a download, or unlists an imported folder. Returns the entry and the freed bytes.

        `in_use`: folders of loaded models. Raises `ModelError`.
        """
        entry = self.entry(reference)
        folder = Path(entry.path)
        if entry.path in in_use:
            raise ModelError(f"{entry.name} is in use.", "Load another model, then remove it.")
        if entry.source == "starter":
            raise ModelError(f"{entry.name} is the starter model and stays.", "It is part of Draftlight.")
        if entry.listed_in:
            places.forget(Path(entry.listed_in))
            return entry, 0
        if entry.source in ("hub-cache", "other-app"):
            raise ModelError(
                f"{entry.name} is in another app's folder, where Draftlight deletes nothing.",
                f"Remove it with that app, or remove {folder}.",
            )
        if entry.source == "folder" or not (folder / NOTE).is_file():
            if folder not in places.imported():
                raise ModelError(
                    f"{entry.name} was put into {folder.parent} by hand.", "Remove its folder there."
                )
            places.forget(folder)
            return entry, 0
        freed = disk_bytes(folder)
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise ModelError(
                f"{entry.name} could not be removed: {reason_of(error)}.", f"Remove {folder} yourself."
            ) from error
        return entry, freed

    def _found(self) -> Iterator[ModelEntry]:
        starter = starter_folder()
        if starter.is_dir():
            yield describe(starter, STARTER, "starter", self.machine)
        elif packed := _packed():
            yield ModelEntry(STARTER, NAME, "starter", str(starter), disk_bytes=packed.stat().st_size)
        taken = {starter}
        names: set[str] = set()
        for name, folder in places.downloaded():
            taken.add(folder)
            names.add(name)
            yield describe(folder, name, "download", self.machine)
        several: list[tuple[Path, Path]] = []
        for folder in (*places.imported(), *_by_hand()):
            if inside := places.models_in(folder):
                several += [(folder, each) for each in inside]
            elif folder not in taken:
                taken.add(folder)
                yield describe(folder, str(folder), "folder", self.machine)
        for name, folder in places.cached():
            if folder not in taken and not places.download_folder(name).exists() and _is_ours(folder):
                taken.add(folder)
                names.add(name)
                yield describe(folder, name, "hub-cache", self.machine)
        for name, folder in places.lm_studio():
            if folder not in taken and _is_ours(folder):
                taken.add(folder)
                # A name that is in use means the other folder.
                reference = str(folder) if name in names or not places.is_hub_name(name) else name
                names.add(name)
                yield describe(folder, reference, "other-app", self.machine)
        for place, folder in several:
            if folder not in taken and _is_ours(folder):
                taken.add(folder)
                entry = describe(folder, str(folder), "other-app", self.machine)
                yield replace(entry, listed_in=str(place))


def _with_heads(entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """`entries` with their heads and offers of others; those of heads name the models that use them."""
    separate = places.head_folders([Path(entry.path) for entry in entries if entry.path])
    offers = [(places.model_words(Path(each.model)), each) for each in suggested_heads()]
    references = {entry.reference for entry in entries}
    found: list[ModelEntry] = []
    users: dict[Path, list[str]] = defaultdict(list)
    others: dict[Path, list[str]] = defaultdict(list)
    for entry in entries:
        if entry.path and not entry.problem:
            words = places.model_words(Path(entry.path))
            heads = found_heads(Path(entry.path), separate)
            for head in heads:
                if not head.problem:
                    (users if head is heads[0] else others)[head.source].append(entry.name)
            own = {
                head.kind
                for head in heads
                if not head.problem
                and (head.source not in separate or places.model_words(head.source) == words)
            }
            listed = [
                ModelHead(
                    places.HEAD_KINDS[head.kind],
                    head.size_bytes,
                    _sentence(head.problem or unused),
                    source=str(head.source),
                )
                for head in heads
                for unused in ["" if head is heads[0] else head.why_not("is not used: another head is")]
            ]
            listed += [
                ModelHead(places.HEAD_KINDS[each.kind], each.size_bytes, repository=each.repository)
                for model, each in offers
                if model == words and each.kind not in own and each.repository not in references
            ]
            entry = replace(entry, heads=tuple(listed))
        found.append(entry)
    for at, entry in enumerate(found):
        if entry.path and (folder := Path(entry.path)) in separate:
            if names := ", ".join(users[folder]):
                hint = f"{names} drafts with it."
            elif names := ", ".join(others[folder]):
                hint = f"It fits {names}, which drafts with another head."
            else:
                hint = "It fits none of the models on this computer."
            found[at] = replace(entry, problem="A drafting head, not a complete model.", hint=hint)
    return found


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}." if phrase else ""


def _by_hand() -> list[Path]:
    """Model folders that were copied into the models' folder manually."""
    place = models_dir()
    return [
        each
        for each in (sorted(place.iterdir()) if place.is_dir() else ())
        if os.path.lexists(each / "config.json") and not each.name.startswith(".")
    ]


def _is_ours(snapshot: Path) -> bool:
    """Whether MLX supports the model; folders of other programs hold others, too."""
    return is_supported(str(object_in(snapshot / "config.json").get("model_type")))


def _packed() -> Path | None:
    try:
        return packed_file()
    except ModelError:
        return None


def _folder_of(file: Path) -> Path:
    """The model folder of one of its files. Raises `ModelError` for other files."""
    if file.suffix in (".json", ".safetensors"):
        return file.parent
    raise ModelError(
        f"{file} is not a model folder.", "Choose a folder with config.json and model*.safetensors."
    )


# ---- suggested downloads


SUGGESTED_FILE = "models/suggested.json"
_GROUP_SIZE = 64


class Suggestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A model to download, as a row of `resources/models/suggested.json`.

    `memory_bytes`: peak of a process that reads and answers 8,000 tokens. `estimated`: how the fields that no
    page gives were derived. `sources`: pages that give the others. `taken_on`: ISO date of the pages. `sees`:
    its files have the part for images.
    """

    repository: str
    name: str
    type: str
    parameters: int
    bits: int
    context_tokens: int
    size_bytes: int
    memory_bytes: int
    good_at: str
    sources: tuple[str, ...]
    taken_on: str
    estimated: dict[str, str] = {}
    sees: bool = False


class SuggestedHead(Struct, frozen=True, forbid_unknown_fields=True):
    """A head of `model` in a repository, as a row of the same file.

    `size_bytes`: 0 if no page gives it. `estimated`: how it was.
    """

    repository: str
    model: str
    sources: tuple[str, ...]
    taken_on: str
    size_bytes: int = 0
    estimated: str = ""
    kind: str = "mtp"


class _Suggestions(Struct, frozen=True, forbid_unknown_fields=True):
    note: str
    models: tuple[Suggestion, ...]
    heads: tuple[SuggestedHead, ...]


def _suggestions() -> _Suggestions:
    return msgspec.json.decode((resources_dir() / SUGGESTED_FILE).read_bytes(), type=prepared(_Suggestions))


def suggestions() -> tuple[Suggestion, ...]:
    """The models to suggest, the best first."""
    return _suggestions().models


def suggested_heads() -> tuple[SuggestedHead, ...]:
    """The heads to offer."""
    return _suggestions().heads


def suggested(machine: Machine) -> tuple[ModelEntry, ...]:
    """The suggested models of types that mlx-lm loads, the best first. Does not use the network.

    `reference` is the hub name; the path is empty.
    """
    return tuple(_entry(each, machine) for each in suggestions() if is_supported(each.type))


def _entry(model: Suggestion, machine: Machine) -> ModelEntry:
    weights = 4 * model.parameters if machine.expands else model.size_bytes
    return ModelEntry(
        model.repository,
        model.name,
        "download",
        "",
        model.type,
        family_name=model.name.split()[0],
        parameters=model.parameters,
        disk_bytes=model.size_bytes,
        bits=model.bits,
        group_size=_GROUP_SIZE,
        dtype="bfloat16",
        context_tokens=model.context_tokens,
        need=MemoryNeed(weights=weights, working=model.memory_bytes - model.size_bytes),
        good_at=model.good_at,
        sees=model.sees and model.type in FAMILIES,
    )
