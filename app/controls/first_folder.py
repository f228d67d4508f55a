"""First folder: where a file dialog begins: never where the app happens to have been started."""

from __future__ import annotations

from PySide6.QtCore import QStandardPaths

_PLACES = QStandardPaths.StandardLocation


def first_folder() -> str:
    """The person's documents, or their home if there is no such folder."""
    for place in (_PLACES.DocumentsLocation, _PLACES.HomeLocation):
        if found := QStandardPaths.standardLocations(place):
            return found[0]
    return ""
