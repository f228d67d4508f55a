"""Catalogue: every model on this machine, and what may be done with the list.

It reads configs and headers, never weights, and takes no lock, so it may be asked from any thread
while a model runs. Importing takes a folder as it is: models are large, other programs use them,
and what Draftlight did not put on the disk it never erases.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from core.errors import ModelError
from core.events import ModelEntry
from core.models.folder import check, describe, disk_bytes
from core.models.library import places
from core.models.library.model_types import is_supported
from core.models.library.naming import family_label
from core.models.library.need import Machine
from core.models.starter import NAME, STARTER, packed_file, starter_folder
from core.system.paths import given_path, models_dir


class Catalogue:
    """`machine` decides what fits."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def machine(self) -> Machine:
        """What models have to fit into."""
        return self._machine

    def entries(self) -> tuple[ModelEntry, ...]:
        """The starter first, then by name. Families are named after their members."""
        found = sorted(self._found(), key=lambda entry: (entry.source != "starter", entry.name.lower()))
        members: dict[str, list[str]] = defaultdict(list)
        for entry in found:
            members[entry.family].append(entry.name)
        return tuple(
            replace(entry, family_name=family_label(members[entry.family])) if entry.family else entry
            for entry in found
        )

    def entry(self, reference: str) -> ModelEntry:
        """The one that is called so: by reference, folder or name. Raises `ModelError`."""
        entries = self.entries()
        path = str(given_path(reference, ModelError).absolute())
        for matches in (
            [each for each in entries if each.reference == reference or each.path == path],
            [each for each in entries if each.name.lower() == reference.lower()],
        ):
            if len(matches) == 1:
                return matches[0]
        known = ", ".join(each.reference for each in entries)
        raise ModelError(f"There is no model “{reference}” on this machine.", f"Choose one of {known}.")

    def take(self, path: str) -> ModelEntry:
        """Import the folder at `path`. Raises `ModelError` with what is wrong with it.

        A model that is too large is taken all the same: listed, it says so itself.
        """
        folder = given_path(path, ModelError).absolute()
        if folder.is_file():
            folder = _folder_of(folder)
        if not folder.is_dir():
            raise ModelError(f"There is no folder {folder}.", "Choose a folder that holds a whole MLX model.")
        check(folder)
        if known := next((each for each in self.entries() if Path(each.path) == folder), None):
            return known
        places.remember(folder)
        return self.entry(str(folder))

    def remove(self, reference: str, in_use: Sequence[str] = ()) -> tuple[ModelEntry, int]:
        """Erase the model, or forget it if it was imported; the bytes that became free.

        `in_use` are the folders of loaded models. Raises `ModelError`.
        """
        entry = self.entry(reference)
        folder = Path(entry.path)
        if entry.path in in_use:
            raise ModelError(f"{entry.name} is in use.", "Load another model, then remove it.")
        if entry.source == "starter":
            raise ModelError(f"{entry.name} is the starter model and stays.", "It is part of Draftlight.")
        if entry.source == "folder":
            if folder not in places.imported():
                raise ModelError(
                    f"{entry.name} was put into {folder.parent} by hand.", "Remove its folder there."
                )
            places.forget(folder)
            return entry, 0
        freed = disk_bytes(folder)
        # In the hub's cache the files are links; what they lead to belongs to the repository's folder.
        whole = folder.parent.parent if entry.source == "hub-cache" else folder
        try:
            shutil.rmtree(whole)
        except OSError as error:
            raise ModelError(
                f"{entry.name} could not be removed: {error}.", f"Remove {whole} yourself."
            ) from error
        return entry, freed

    def _found(self) -> Iterator[ModelEntry]:
        starter = starter_folder()
        if starter.is_dir():
            yield describe(starter, STARTER, "starter", self._machine)
        elif packed := _packed():
            yield ModelEntry(STARTER, NAME, "starter", str(starter), disk_bytes=packed.stat().st_size)
        taken = {starter}
        for name, folder in places.downloaded():
            taken.add(folder)
            yield describe(folder, name, "download", self._machine)
        for folder in (*places.imported(), *_by_hand()):
            if folder not in taken:
                taken.add(folder)
                yield describe(folder, str(folder), "folder", self._machine)
        for name, folder in places.cached():
            if folder not in taken and not places.download_folder(name).exists() and _is_ours(folder):
                yield describe(folder, name, "hub-cache", self._machine)


def _by_hand() -> list[Path]:
    """Folders among the models that nobody downloaded or imported."""
    place = models_dir()
    return [
        each
        for each in (sorted(place.iterdir()) if place.is_dir() else ())
        if (each / "config.json").is_file() and not each.name.startswith(".")
    ]


def _is_ours(snapshot: Path) -> bool:
    """The hub's cache holds models of many kinds; those of other kinds are nobody's fault."""
    entry = snapshot / "config.json"
    try:
        return is_supported(str(json.loads(entry.read_text(encoding="utf-8"))["model_type"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _packed() -> Path | None:
    try:
        return packed_file()
    except ModelError:
        return None


def _folder_of(file: Path) -> Path:
    """A file of a model folder stands for the folder; other files are refused by what they are."""
    if file.suffix in (".json", ".safetensors"):
        return file.parent
    raise ModelError(
        f"{file} is not a model folder.", "Choose a folder with config.json and model*.safetensors."
    )
