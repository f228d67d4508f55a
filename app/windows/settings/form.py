"""SettingsForm: one field for each declared setting, in titled groups. `changed` reports a person's edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.controls.text_label import TextLabel
from app.fields.setting_field import SettingField
from app.panels.inspector.groups import Group
from app.theme.measures import add_gap, set_spacing
from app.theme.theme import Theme
from core.errors import SettingError
from core.settings import WindowSettings, read

_LABEL_PX = 148
_GAP_PX = 10


class SettingsForm(QWidget):
    """Fields of `groups`, `content_px` wide. The owner answers `changed` with `show_settings`."""

    changed = Signal(str, object)  # key, value

    def __init__(
        self, theme: Theme, groups: Sequence[Group], content_px: int, *, titled: bool = True
    ) -> None:
        super().__init__()
        self._theme = theme
        self.fields: dict[str, SettingField] = {}
        self._held: Mapping[str, str] = {}
        self.setAutoFillBackground(False)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._column, _GAP_PX)
        for group in groups:
            if titled:
                self.add_title(group.title)
            for setting in group.settings:
                field = SettingField(theme, setting, label_px=_LABEL_PX, content_px=content_px)
                field.edited.connect(self.changed)
                self.fields[setting.key] = field
                self._column.addWidget(field)

    def add_title(self, title: str) -> None:
        """Add a group title at the end."""
        if self._column.count():
            add_gap(self._column, 14)
        self._column.addWidget(TextLabel(self._theme, title, 13, 18, "text", weight=600))

    def add(self, widget: QWidget) -> None:
        """Add `widget` at the end."""
        self._column.addWidget(widget)

    def show_settings(self, settings: WindowSettings) -> None:
        """Show the values in force."""
        for key, field in self.fields.items():
            field.show_value(read(settings, key))
            field.hold(self._held.get(key, ""))

    def hold(self, reasons: Mapping[str, str]) -> None:
        """Disable the settings that cannot be changed in this build, each with its reason."""
        self._held = reasons
        for key, field in self.fields.items():
            field.hold(reasons.get(key, ""))

    def show_error(self, key: str, error: SettingError) -> None:
        """Show that the edited value of `key` is not allowed."""
        self.fields[key].show_error(error.message, error.hint)
