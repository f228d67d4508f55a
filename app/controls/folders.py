"""Folders: where a file dialog begins, and a file shown in Finder or the desktop's file manager."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QProcess, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices

_PLACES = QStandardPaths.StandardLocation


def first_folder() -> str:
    """Returns the person's documents folder, or their home without one."""
    for place in (_PLACES.DocumentsLocation, _PLACES.HomeLocation):
        found = QStandardPaths.standardLocations(place)
        if found and Path(found[0]).is_dir():
            return found[0]
    return ""


def show_in_folder(path: Path) -> bool:
    """Opens the folder of `path`, or `path` itself if it is a folder. False if the system cannot."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return False
    if sys.platform == "darwin" and path.is_file():
        # Finder selects the file in it.
        started = QProcess.startDetached("/usr/bin/open", ["-R", str(path)])
        return bool(started[0] if isinstance(started, tuple) else started)
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
