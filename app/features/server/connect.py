"""ConnectSheet: a ready configuration for an application that is to use the local server."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.controls.buttons.button import Button, CopyButton
from app.controls.popup import Popup
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.text_label import TextLabel
from app.features.server import strings
from app.theme.measures import (
    add_gap,
    set_fixed_height,
    set_fixed_width,
    set_margins,
    set_mono_font,
    set_spacing,
)
from app.theme.theme import Theme
from core.serve.apps import APPS, Connection, configuration

_WIDTH_PX = 560
_MARGIN_PX = 20
_TEXT_PX = 260
_HIDDEN = "••••••••"


class ConnectSheet(QDialog):
    """Deletes itself when closed. The key is copied and not shown. `strict`: the server's setting."""

    settings_requested = Signal()

    def __init__(self, theme: Theme, to: Connection, strict: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(strings.CONNECT_TITLE)
        self.setAccessibleName(strings.CONNECT_TITLE)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._theme = theme
        self._to = to
        inner_px = _WIDTH_PX - 2 * _MARGIN_PX
        self.picker = Popup(theme, [(app, app) for app in APPS])
        self.picker.setAccessibleName(strings.APP)
        self.place = TextLabel(theme, "", 12, 16, wrap=True, width_px=inner_px)
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(strings.CONFIGURATION)
        set_mono_font(self.text, 11.5)
        self.text.document().setDocumentMargin(10)
        set_fixed_height(self.text, _TEXT_PX)
        OverlayScrollBar(theme, self.text)
        self.hint = TextLabel(theme, "", 12, 16, wrap=True, width_px=inner_px)
        names = strings.OTHER_NAMES_REFUSED if strict else strings.other_names_answered(to.model)
        self.names = TextLabel(theme, names, 12, 16, wrap=True, width_px=inner_px)
        self.copy = CopyButton(theme, strings.CONFIGURATION)
        self.settings = Button(theme, strings.SETTINGS)
        self.close_button = Button(theme, strings.DONE, "primary")
        self.settings.clicked.connect(self.settings_requested)
        self.close_button.clicked.connect(self.accept)
        self.picker.value_changed.connect(self._show_app)
        theme.changed.connect(self._restyle)
        self._lay_out(theme)
        self._restyle()
        self._show_app()

    def _show_app(self) -> None:
        app = next(app for app in APPS if app == self.picker.value)
        made = configuration(app, self._to)
        self.place.setText(strings.paste_into(made.place))
        self.text.setPlainText(self._shown(made.text))
        self.copy.set_value(strings.COPY, made.text)
        self.copy.setToolTip("")  # it would show the key
        self.copy.setAccessibleName(f"{strings.COPY} {strings.CONFIGURATION}")
        self.hint.setText(self._shown(made.hint))
        self.hint.setVisible(bool(made.hint))

    def _shown(self, text: str) -> str:
        return text.replace(self._to.key, _HIDDEN) if self._to.key else text

    def _restyle(self) -> None:
        palette = QPalette(self.text.palette())
        palette.setColor(QPalette.ColorRole.Base, self._theme.color("text_area"))
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        self.text.setPalette(palette)

    def _lay_out(self, theme: Theme) -> None:
        column = QVBoxLayout(self)
        set_margins(column, _MARGIN_PX, 18, _MARGIN_PX, 16)
        set_spacing(column, 8)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        choice = QHBoxLayout()
        set_spacing(choice, 8)
        choice.addWidget(TextLabel(theme, strings.CONNECT_TITLE, 15, 20, "text", weight=600))
        choice.addStretch(1)
        set_fixed_width(self.picker, 180)
        choice.addWidget(self.picker)
        column.addLayout(choice)
        column.addWidget(self.place)
        column.addWidget(self.text)
        for label in (self.hint, self.names):
            column.addWidget(label)
        add_gap(column, 8)
        row = QHBoxLayout()
        set_spacing(row, 8)
        row.addWidget(self.settings)
        row.addStretch(1)
        row.addWidget(self.copy)
        row.addWidget(self.close_button)
        column.addLayout(row)
