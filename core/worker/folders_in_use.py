"""FoldersInUse: which models' folders must stay: those that are loaded, and those that will be.

A model counts from the moment its command was read, before anything of it is loaded, until it was
replaced or could not be loaded. `removing()` and `loading()` exclude each other, so that neither begins
in the middle of the other. Any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from core.errors import DraftlightError
from core.models.library.places import find


class FoldersInUse:
    """Nothing is in use at first."""

    def __init__(self) -> None:
        self._disk = threading.Lock()
        self._lock = threading.Lock()
        self._loaded: tuple[str, ...] = ()
        self._coming: Counter[str] = Counter()

    def coming(self, *references: str) -> None:
        """These models are going to be loaded; `settled` is called once with the same ones."""
        with self._lock:
            self._coming.update(references)

    def settled(self, loaded: Sequence[str], *references: str) -> None:
        """They were loaded, or could not be; `loaded` are the folders that are in memory now."""
        with self._lock:
            self._coming.subtract(references)
            self._coming += Counter()  # drops what is no longer counted
            self._loaded = tuple(loaded)

    def loading(self) -> None:
        """Wait for the end of a removal that is under way."""
        with self._disk:
            pass

    @contextlib.contextmanager
    def removing(self) -> Iterator[tuple[str, ...]]:
        """The folders that must not be removed; nothing begins to be loaded meanwhile."""
        with self._disk:
            with self._lock:
                loaded, coming = self._loaded, tuple(self._coming)
            yield (*loaded, *(folder for each in coming if (folder := _folder(each))))


def _folder(reference: str) -> str:
    try:
        found = find(reference)
    except DraftlightError:
        return ""
    return str(found.absolute()) if found else ""
