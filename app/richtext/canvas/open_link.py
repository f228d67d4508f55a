"""Opens a link outside, if it is one that may be opened."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.richtext.markdown.links import may_open


def open_outside(address: str) -> bool:
    """Hand `address` to the system's browser or mail program. False if it is of another kind."""
    return may_open(address) and QDesktopServices.openUrl(QUrl(address))
