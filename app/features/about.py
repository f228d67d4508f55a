"""AboutWindow: icon, version and a button that opens the licences."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QIcon
from PySide6.QtWidgets import QDialog, QLabel, QWidget

from app.controls.buttons import Button
from app.controls.text_label import TextLabel
from app.session import strings as app_strings
from app.theme.icons import APP_ICON
from app.theme.measures import STRETCH, column_of, row_of
from core.system.paths import resources_dir

TITLE = "About Draftlight"
CLAIM = "Chat with models that run on this machine. Nothing you write leaves it."
LICENSES = "Open Licenses"
CLOSE = "Close"
_ICON_PX = 72


def version(number: str) -> str:
    return f"Version {number}, Apache-2.0"


def licenses_file() -> Path | None:
    """The bundle's NOTICE.txt, with the licences of all it contains, or else Draftlight's own licence: other
    packages are installed with their own. None if neither exists.
    """
    own = [file for file in importlib.metadata.files("draftlight") or () if file.name == "LICENSE"]
    files = (resources_dir().parents[1] / "NOTICE.txt", *(Path(str(file.locate())) for file in own))
    return next((file for file in files if file.is_file()), None)


class AboutWindow(QDialog):
    """Deletes itself when closed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(TITLE)
        middle = Qt.AlignmentFlag.AlignHCenter
        icon = QLabel(self)
        icon.setPixmap(QIcon(str(APP_ICON)).pixmap(_ICON_PX, _ICON_PX))
        icon.setAlignment(middle)
        number = version(importlib.metadata.version("draftlight"))
        self.licenses_button = Button(LICENSES)
        self.licenses_button.setEnabled(licenses_file() is not None)
        self.licenses_button.clicked.connect(_open_licenses)
        self.close_button = Button(CLOSE, "primary")
        self.close_button.clicked.connect(self.close)
        column_of(
            icon,
            TextLabel(app_strings.APP_NAME, 15, 20, "text", weight=600, align=middle),
            TextLabel(number, 11, 15, "text2", align=middle),
            TextLabel(CLAIM, 12, 16, "text2", align=middle),
            row_of(self.licenses_button, STRETCH, self.close_button, gap=6, margins=(0, 8, 0, 0)),
            gap=8,
            margins=(24, 24, 24, 16),
            parent=self,
        )
        self.close_button.setFocus()


def _open_licenses() -> None:
    if file := licenses_file():
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(file)))
