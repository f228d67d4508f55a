"""Header: the chat's title and model, the token colors, and the panels' switches."""

from __future__ import annotations

from urllib.parse import urlsplit

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.controls.buttons import CopyButton, IconButton, IconLabel
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.panels import strings
from app.theme.measures import column_of, row_of, set_fixed_height
from app.theme.sheet import set_ground
from app.theme.theme import theme
from app.theme.zoom import width_of

HEIGHT_PX = 52
# In narrower windows the title needs the space; the menus have the same commands.
_ADDRESS_FROM_PX = 760
_BUTTON_PAD_PX = 8


class ModelButton(QPushButton):
    """The chat's title over the model's name. The whole button opens the models' menu, by mouse and
    keyboard.
    """

    def __init__(self) -> None:
        super().__init__()
        self.title = TextLabel("", 13, 17, "text", weight=600)
        self.subtitle = TextLabel("", 11, 14, "text2")
        arrow = IconLabel("updown", "text2", 16)
        for label in (self.title, self.subtitle):
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for part in (self.title, self.subtitle, arrow):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        who = row_of(arrow, (self.subtitle, 1), gap=2)
        self._names = column_of(self.title, who, margins=(_BUTTON_PAD_PX, 3, _BUTTON_PAD_PX, 3), parent=self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setProperty("kind", "title")
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(strings.CHOOSE_MODEL)

    def describe(self) -> None:
        """Set the accessible description to both lines, and the tooltip if one of them does not fit."""
        self._names.activate()
        title, subtitle = self.title.text(), self.subtitle.text()
        self.setAccessibleDescription(f"{title}. {subtitle}")
        cut = any(label.sizeHint().width() > label.width() for label in (self.title, self.subtitle))
        self.setToolTip(in_own_direction(f"{title}\n{subtitle}") if cut else strings.CHOOSE_MODEL)

    def sizeHint(self) -> QSize:
        return self._names.sizeHint()


class TokenColorsButton(IconButton):
    """Shows the meaning of the colors in answers; a click selects the next of three values."""

    value_changed = Signal(str)  # "drafts", "origins" or "off"

    def __init__(self) -> None:
        super().__init__("tint", strings.TOKEN_COLORS)
        self.value = strings.TOKEN_COLORS_OPTIONS[0][0]
        self.clicked.connect(self.cycle)
        self._describe()

    def set_value(self, value: str) -> None:
        if value != self.value:
            self.value = value
            self._describe()
            self.value_changed.emit(value)

    def cycle(self) -> None:
        """Select the next value."""
        values = [value for value, _ in strings.TOKEN_COLORS_OPTIONS]
        self.set_value(values[(values.index(self.value) + 1) % len(values)])

    def _describe(self) -> None:
        label = dict(strings.TOKEN_COLORS_OPTIONS)[self.value]
        self.setAccessibleDescription(label)
        self.setToolTip(f"{strings.TOKEN_COLORS}: {label}")


class Header(QWidget):
    """52 px high with a hairline at the bottom. The sidebar's switch shows only while the sidebar
    is hidden.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "window", "bottom")
        self._address = ""
        set_fixed_height(self, HEIGHT_PX)

        self.sidebar_button = IconButton("sidebar", strings.SHOW_SIDEBAR)
        self.new_chat_button = IconButton("compose", strings.NEW_CHAT)
        self.token_colors = TokenColorsButton()
        self.model_button = ModelButton()
        self._title, self._subtitle = self.model_button.title, self.model_button.subtitle
        self.server_button = CopyButton(strings.SERVER)
        self.server_button.hide()
        self.inspector_button = IconButton("inspector", strings.SHOW_INSPECTOR, True)
        self._lay_out()
        self.set_sidebar_shown(True)

        theme.zoomed.connect(self._fit)

    @property
    def title(self) -> str:
        """The chat's full title."""
        return self._title.text()

    @property
    def subtitle(self) -> str:
        """The full line below it."""
        return self._subtitle.text()

    def set_title(self, title: str) -> None:
        """Set the chat's title; elided if it does not fit."""
        self._title.setText(title)
        self._describe()

    def set_subtitle(self, subtitle: str) -> None:
        """Set the model's name, or the reason why it does not answer."""
        self._subtitle.setText(subtitle)
        self._describe()

    def show_server(self, address: str) -> None:
        """Show the local server's address, which a click copies; empty while it is off."""
        self._address = address
        self.server_button.setVisible(bool(address))
        self._fit()

    def set_inspector_shown(self, shown: bool) -> None:
        """Set the switch to the panel's state."""
        self.inspector_button.setChecked(shown)

    def set_sidebar_shown(self, shown: bool) -> None:
        """Show the sidebar's two buttons here while it is hidden."""
        self.sidebar_button.setVisible(not shown)
        self.new_chat_button.setVisible(not shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show the controls that fit."""
        if self._address:
            host = urlsplit(self._address).netloc
            short = f":{host.rpartition(':')[2]}"
            wide = width_of(self) >= _ADDRESS_FROM_PX
            self.server_button.set_value(host if wide else short, self._address)
        self._describe()

    def _describe(self) -> None:
        # The labels must have the widths of this size, not of the previous one.
        self._row.activate()
        self.model_button.describe()

    def _lay_out(self) -> None:
        self._row = row_of(
            self.sidebar_button,
            self.new_chat_button,
            (self.model_button, 1),
            8,
            self.server_button,
            self.token_colors,
            self.inspector_button,
            gap=4,
            margins=(20 - _BUTTON_PAD_PX, 0, 12, 1),
            parent=self,
        )
