"""Learning: whether and how tables learn, and the rehearsal."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.buttons.switch import Switch
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.features.tables import strings
from app.fields.setting_control import SettingControl, control_for
from app.theme.measures import (
    ANY_PX,
    set_fixed_height,
    set_fixed_width,
    set_margins,
    set_maximum_width,
    set_minimum_width,
    set_spacing,
)
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, width_of
from core.events import Rehearsing
from core.settings import Settings, read
from core.settings.declaration import find

_BAR_PX = 4


class RehearsalBox(QWidget):
    """`switched` reports the person's choice for the shown model; `show_model` emits nothing."""

    switched = Signal(bool)

    def __init__(self, theme: Theme, width_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = TextLabel(theme, strings.REHEARSAL, 13, 20, "text", weight=600)
        self.switch = Switch(theme)
        self.switch.toggled.connect(self.switched)
        self.model = TextLabel(theme, "", 12, 18)
        self.state = TextLabel(theme, "", 12, 16, "text", tabular=True, wrap=True, width_px=width_px)
        self.bar = _Bar(theme)
        head = QHBoxLayout()
        set_spacing(head, 10)
        head.addWidget(self.title)
        head.addWidget(self.model, 1)
        head.addWidget(self.switch)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 4)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.state)
        column.addWidget(TextLabel(theme, strings.REHEARSAL_HELP, 11, 15, wrap=True, width_px=width_px))
        self.show_model("", wanted=False)

    def show_model(self, model: str, *, wanted: bool) -> None:
        """Shows the loaded model (empty: none) and whether it rehearses while idle."""
        self.model.setText(model or strings.NO_MODEL)
        self.switch.blockSignals(True)
        self.switch.setChecked(wanted)
        self.switch.blockSignals(False)
        self.switch.setEnabled(bool(model))
        self.switch.setAccessibleName(strings.rehearse_model(model) if model else strings.REHEARSAL)
        self.switch.setToolTip(strings.REHEARSAL_HELP)
        self.switch.update()

    def show_rehearsal(self, rehearsal: Rehearsing | None) -> None:
        """Shows the rehearsal; None if its state is unknown."""
        on = rehearsal is not None and rehearsal.state != "off"
        self.state.setVisible(on)
        self.bar.setVisible(on)
        if rehearsal is None or not on:
            return
        words = state_text(rehearsal)
        if rehearsal.prompts:
            words = strings.rehearsed(words, rehearsal.answered, rehearsal.prompts, rehearsal.tokens)
        self.state.setText(words)
        self.state.set_color("danger" if rehearsal.state == "failed" else "text")
        self.state.updateGeometry()
        self.bar.show_share(rehearsal.answered / max(1, rehearsal.prompts), words)


def state_text(rehearsal: Rehearsing) -> str:
    """Returns the state of a rehearsal, or what it waits for."""
    match rehearsal.state:
        case "running":
            return strings.REHEARSAL_RUNNING
        case "done":
            return strings.REHEARSAL_DONE
        case "failed":
            return strings.rehearsal_failed(rehearsal.trouble)
        case "off":
            return strings.REHEARSAL_OFF
    waits = {"quiet": strings.REHEARSAL_QUIET, "answer": strings.REHEARSAL_ANSWER}
    return waits.get(rehearsal.waits_for, strings.REHEARSAL_NEXT)


class _Bar(QLabel):
    """A progress bar. A QLabel for assistive technology."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._share = 0.0
        set_fixed_height(self, _BAR_PX + 6)
        self.setAccessibleName(strings.REHEARSAL_PROGRESS)
        theme.changed.connect(self.update)

    def show_share(self, share: float, words: str) -> None:
        self._share = min(1.0, share)
        self.setAccessibleDescription(words)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        box = QRectF(0, 3, width_of(self), _BAR_PX)
        draw_box(painter, box, _BAR_PX / 2, self._theme.color("fill2"))
        if self._share > 0:
            box.setWidth(max(_BAR_PX / 2, box.width() * self._share))
            draw_box(painter, box, min(_BAR_PX / 2, box.width() / 2), self._theme.color("series_blue"))


WIDTH_PX = 416
_PADDING_PX = 20
_LABEL_PX = 120
_INNER_PX = WIDTH_PX - 2 * _PADDING_PX - 1
_KEYS = {"tables.learn": strings.LEARN, "tables.autosave_s": "", "tables.decay_at": ""}


class Learning(QWidget):
    """The panel at the right. `default_changed` reports a person's change; `show_defaults` emits nothing."""

    default_changed = Signal(str, object)  # the setting's key, the new value

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.controls: dict[str, SettingControl] = {}
        self.rehearsal = RehearsalBox(theme, _INNER_PX)
        self.tables = TextLabel(theme, "", 12, 16, tabular=True)
        self.disk = TextLabel(theme, "", 12, 16, tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.folder = Button(theme, strings.SHOW_FOLDER, "link", small=True)
        self._beside = True
        self.set_beside(True)
        self.setAccessibleName(strings.LEARNING)
        self._lay_out()
        theme.changed.connect(self.update)

    def show_defaults(self, defaults: Settings) -> None:
        """Shows the defaults for all chats."""
        for key, control in self.controls.items():
            control.show_value(read(defaults, key))

    def show_sum(self, tables: int, disk: str) -> None:
        """Shows the number of tables and their size on disk."""
        self.tables.setText(strings.tables(tables))
        self.disk.setText(strings.on_disk(disk))

    def set_beside(self, beside: bool) -> None:
        """Sets whether the panel is at the right in its own width, or below in the full width."""
        self._beside = beside
        set_minimum_width(self, WIDTH_PX if beside else 0)
        set_maximum_width(self, WIDTH_PX if beside else ANY_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("panel"))
        beside = QRectF(0, 0, 1, height_of(self))
        edge = beside if self._beside else QRectF(0, 0, width_of(self), 1)
        painter.fillRect(edge, self._theme.color("hair"))

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        set_margins(column, _PADDING_PX + 1, 12, _PADDING_PX, 8)
        set_spacing(column, 5)
        column.addWidget(TextLabel(self._theme, strings.LEARNING, 13, 20, "text", weight=600))
        for key, title in _KEYS.items():
            column.addLayout(self._row(key, title))
        column.addWidget(TextLabel(self._theme, strings.PRIVACY, 11, 15, wrap=True, width_px=_INNER_PX))
        column.addWidget(_Hairline(self._theme))
        column.addWidget(self.rehearsal)
        column.addStretch(1)
        column.addWidget(_Hairline(self._theme))
        foot = QHBoxLayout()
        set_spacing(foot, 8)
        foot.addWidget(self.tables)
        foot.addWidget(self.folder)
        foot.addWidget(self.disk, 1)
        column.addLayout(foot)

    def _row(self, key: str, title: str) -> QHBoxLayout:
        setting = find(key)
        control = control_for(self._theme, setting)
        self.controls[key] = control
        control.edited.connect(lambda value, key=key: self._tell(key, value))
        label = TextLabel(self._theme, title or setting.title, 12, 24)
        set_fixed_width(label, _LABEL_PX)
        label.setBuddy(control.editor)
        if title:
            control.editor.setAccessibleName(title)
            for widget in (control.editor, label):
                widget.setToolTip(strings.LEARN_HELP)
            control.editor.setAccessibleDescription(strings.LEARN_HELP)
        else:
            label.setToolTip(setting.help)
        row = QHBoxLayout()
        set_spacing(row, 10)
        row.addWidget(label)
        row.addWidget(control, 1)
        return row

    def _tell(self, key: str, value: Any) -> None:
        self.default_changed.emit(key, value)


class _Hairline(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        set_fixed_height(self, 9)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter_on(self).fillRect(QRectF(0, 4, width_of(self), 1), self._theme.color("hair"))
