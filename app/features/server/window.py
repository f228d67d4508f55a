"""ServerWindow: the local server's settings, key and configurations, and the list of its requests.

Independent of server and worker. The answer of the opened request is shown as in a chat: tinted, with token
tooltips; it cannot be regenerated from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.chat.transcript import Transcript
from app.controls.buttons import Button, CopyButton
from app.controls.choices import Popup
from app.controls.record_table import RecordTable
from app.controls.scroll_bar import ScrollPage
from app.controls.text_fields import TextView
from app.controls.text_label import TextLabel
from app.features.server import strings
from app.features.server.rows import COLUMNS, RequestRow, row_instead
from app.features.settings.window import SettingsForm
from app.features.side_window import Hairline, PanelBeside, SideWindow
from app.panels.groups import groups
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height
from core.serve.apps import APPS, Connection, configuration
from core.settings import WindowSettings, declared

SIZE = QSize(1240, 780)
_MINIMUM = QSize(1000, 620)
_LIST_PX = 268
_PANEL_PX = 400
_PAD_PX = 20
_INNER_PX = _PANEL_PX - 1 - 2 * _PAD_PX


class ServerWindow(SideWindow):
    """The controller listens to the widgets and fills `list`, `transcript` and `panel`."""

    def __init__(self) -> None:
        super().__init__(strings.TITLE, SIZE, _MINIMUM)
        self.address = CopyButton(strings.ADDRESS)
        self.model = CopyButton(strings.MODEL_NAME)
        for button in (self.address, self.model):
            button.hide()
        self.clear = Button(strings.CLEAR, small=True)
        self.clear.setToolTip(strings.CLEAR_HELP)
        self.list = RecordTable[RequestRow](strings.LIST, COLUMNS, instead=row_instead)
        self.transcript = Transcript(read_only=True)
        self.panel = ServerPanel()
        self.gone = TextLabel("", 13, 18, wrap=True, align=Qt.AlignmentFlag.AlignCenter)
        self._below = QStackedWidget()
        self._below.addWidget(self.transcript)
        self._below.addWidget(self.gone)
        set_fixed_height(self.list, _LIST_PX)
        header = self.make_header((self.model, self.address), (self.clear,), left_px=20)
        requests = column_of(self.list, Hairline(), (self._below, 1))
        column_of(header, (row_of((requests, 1), self.panel), 1), parent=self)
        self.list.setFocus()
        self.show_rows(())

    def show_server(self, subtitle: str, address: str, model: str = "") -> None:
        """Show the server's state, its address (empty while it is off), and the model's API name."""
        self.titles.say(subtitle)
        self.list.set_empty(strings.NOTHING_ON if address else strings.NOTHING_OFF)
        self.address.setVisible(bool(address))
        if address:
            self.address.set_value(address, address)
        self.model.setVisible(bool(address and model))
        if model:
            self.model.set_value(strings.model_named(model), model)

    def show_rows(self, rows: Sequence[RequestRow]) -> None:
        self.list.show_rows(rows)
        if not rows:
            self.show_answer(False)
        self.clear.setEnabled(any(row.over for row in rows))

    def show_answer(self, shown: bool, why_not: str = "") -> None:
        """Whether the opened request has an answer, and the text shown otherwise."""
        self.gone.setText(why_not)
        self._below.setCurrentIndex(0 if shown else 1)


class ServerPanel(PanelBeside):
    """The settings, the key, and the configurations of applications. `form` has the fields."""

    def __init__(self) -> None:
        super().__init__(_PANEL_PX)
        shown = [group for group in groups(declared(WindowSettings)) if group.name == "server"]
        self.form = SettingsForm(shown, _INNER_PX, titled=False)
        self.state = TextLabel("", 12, 17, "text2", wrap=True, width_px=_INNER_PX)
        self._key_note = TextLabel(strings.KEY_NOTE, 11, 15, "text2", wrap=True, width_px=_INNER_PX)
        self.copy_key = Button(strings.COPY_KEY, small=True)
        self.new_key = Button(strings.NEW_KEY, small=True)
        self.connect_box = ConnectBox()
        page = QWidget()
        column_of(
            *(self.state, 10, self.connect_box, 10, self.form, 10),
            *(row_of(self.copy_key, self.new_key, STRETCH, gap=8), self._key_note, STRETCH),
            gap=2,
            margins=(_PAD_PX, 16, _PAD_PX, 20),
            parent=page,
        )
        column_of(ScrollPage(page), margins=(1, 0, 0, 0), parent=self)

    def show_state(self, text: str, *, bad: bool = False) -> None:
        """Show the server's state; `bad`: it is enabled but does not run."""
        self.state.setText(text)
        self.state.set_color("danger" if bad else "text2")

    def say_of_key(self, text: str) -> None:
        self._key_note.setText(f"{text} {strings.KEY_NOTE}")


_TEXT_PX = 132
_HIDDEN = "••••••••"


class ConnectBox(QWidget):
    """The configuration of one application that is to use the server. The key is copied and not shown."""

    def __init__(self) -> None:
        super().__init__()
        self._to: Connection | None = None
        self.picker = Popup([(app, app) for app in APPS])
        self.picker.setAccessibleName(strings.APP)
        self.copy = CopyButton(strings.CONFIGURATION)
        self.text = TextView(strings.CONFIGURATION, 11.5, mono=True, ground="text_area")
        self.text.setLineWrapMode(TextView.LineWrapMode.NoWrap)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.text.document().setDocumentMargin(10)
        set_fixed_height(self.text, _TEXT_PX)
        title = TextLabel(strings.CONNECT, 13, 18, "text", weight=600)
        self.place, self.hint, self.names = (
            TextLabel("", 12, 16, wrap=True, width_px=_INNER_PX) for _ in range(3)
        )
        choice = row_of((self.picker, 1), self.copy, gap=8)
        column_of(title, choice, self.place, self.text, self.hint, self.names, gap=6, parent=self)
        self.picker.value_changed.connect(self._show_app)
        self.hide()

    def show_connection(self, to: Connection | None, *, strict: bool) -> None:
        """Show how to connect; None hides the box. `strict`: the server's setting."""
        if to == self._to and to is not None:
            return
        self._to = to
        self.setVisible(to is not None)
        if to is not None:
            refused = strings.OTHER_NAMES_REFUSED if strict else strings.other_names_answered(to.model)
            self.names.setText(refused)
            self._show_app()

    def _show_app(self) -> None:
        if self._to is None:
            return
        app = next(app for app in APPS if app == self.picker.value)
        made = configuration(app, self._to)
        self.place.setText(strings.paste_into(made.place))
        self.text.setPlainText(self._shown(made.text))
        self.copy.set_value(strings.COPY, made.text)
        self.copy.setToolTip("")  # the text would contain the key
        self.copy.setAccessibleName(f"{strings.COPY} {strings.CONFIGURATION}")
        self.hint.setText(self._shown(made.hint))
        self.hint.setVisible(bool(made.hint))

    def _shown(self, text: str) -> str:
        return text.replace(self._to.key, _HIDDEN) if self._to and self._to.key else text
