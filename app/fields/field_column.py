"""FieldColumn: settings below one another, whose fields are made when they are first needed.

Most sections of the inspector stay closed and most drafters are never chosen: making all of their
fields at the start took a third of the time until the window was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.fields.setting_field import SettingField
from app.theme.measures import set_spacing
from core.settings import Setting


class FieldColumn(QWidget):
    """`make` gives the field of one of `settings`."""

    def __init__(
        self, settings: Sequence[Setting], make: Callable[[Setting], SettingField], spacing_px: int
    ) -> None:
        super().__init__()
        self.settings = tuple(settings)
        self._make = make
        self._filled = False
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._layout, spacing_px)

    def fill(self) -> bool:
        """Make the fields; whether they were not made before."""
        if self._filled:
            return False
        self._filled = True
        for setting in self.settings:
            self._layout.addWidget(self._make(setting))
        return True
