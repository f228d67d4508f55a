"""ServerWindow: the list of the local server's requests, and the opened one with its answer.

Independent of server and worker. The answer is shown as in a chat: tinted, with token tooltips; it cannot be
regenerated from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QDialog, QGridLayout, QLayout, QStackedWidget, QWidget

from app.chat.transcript import Transcript
from app.controls.buttons import Button, CopyButton
from app.controls.choices import Popup
from app.controls.record_table import RecordTable
from app.controls.scroll_bar import ScrollPage
from app.controls.sheets import Question
from app.controls.text_label import TextLabel
from app.features.server import strings
from app.features.server.rows import COLUMNS, Facts, RequestRow, row_instead
from app.features.settings.window import SettingsForm
from app.features.side_window import Hairline, PanelBeside, SideWindow, TextView
from app.panels.groups import groups
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_width,
    set_spacings,
)
from app.theme.theme import Theme
from core.serve.apps import APPS, Connection, configuration
from core.settings import WindowSettings, declared

SIZE = QSize(1180, 780)
_MINIMUM = QSize(1000, 620)
_LIST_PX = 268


class ServerWindow(SideWindow):
    """The controller listens to the widgets and fills `list`, `transcript` and `facts`."""

    delete_requested = Signal(str)  # the request's id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, strings.TITLE, SIZE, _MINIMUM, parent)
        self.address = CopyButton(theme, strings.ADDRESS)
        self.model = CopyButton(theme, strings.MODEL_NAME)
        for button in (self.address, self.model):
            button.hide()
        self.connect_app = Button(theme, strings.CONNECT, small=True)
        self.connect_app.setToolTip(strings.CONNECT_HELP)
        self.connect_app.hide()
        self.settings = Button(theme, strings.SETTINGS, small=True)
        self.delete = Button(theme, strings.DELETE, small=True, icon_name="trash")
        self.delete.setToolTip(strings.DELETE_HELP)
        self.delete_all = Button(theme, strings.DELETE_ALL, small=True)
        self.delete_all.setToolTip(strings.DELETE_ALL_HELP)
        self.list = RecordTable[RequestRow](theme, strings.LIST, COLUMNS, instead=row_instead)
        self.transcript = Transcript(theme, read_only=True)
        self.facts = FactsPanel(theme)
        self.settings_page = ServerSettingsPage(theme)
        self._has_rows = False
        self._empty = TextLabel(theme, strings.NOTHING_OFF, 13, 18, align=Qt.AlignmentFlag.AlignCenter)
        self._gone = TextLabel(theme, "", 13, 18, wrap=True, align=Qt.AlignmentFlag.AlignCenter)
        self._pages = QStackedWidget()
        self._below = QStackedWidget()
        self._lay_out()
        self.settings.clicked.connect(lambda: self.show_settings(not self.settings_shown))
        self.delete.clicked.connect(self._ask_to_delete)
        self.list.remove_requested.connect(self._ask_to_delete)
        self.list.row_selected.connect(self._show_buttons)
        self.show_rows(())

    @property
    def subtitle(self) -> str:
        """The server's state as shown."""
        return self.titles.says

    @property
    def empty_text(self) -> str:
        """The text shown instead of requests; empty if there are some."""
        return "" if self._has_rows else self._empty.text()

    @property
    def settings_shown(self) -> bool:
        """Whether the settings are shown in place of the requests."""
        return self._pages.currentWidget() is self.settings_page

    def show_settings(self, shown: bool) -> None:
        """Show the server's settings, or the requests again."""
        self._pages.setCurrentIndex(2 if shown else 0 if self._has_rows else 1)
        self.settings.setText(strings.REQUESTS if shown else strings.SETTINGS)
        self.settings.setAccessibleName(self.settings.text())
        self.update()

    @property
    def gone_text(self) -> str:
        """The text shown instead of the opened request; empty if the request is shown."""
        return self._gone.text() if self._below.currentIndex() else ""

    def show_server(self, subtitle: str, address: str, model: str = "") -> None:
        """Show the server's state, its address (empty while it is off), and the model's API name."""
        self.titles.say(subtitle)
        self._empty.setText(strings.NOTHING_ON if address else strings.NOTHING_OFF)
        self.address.setVisible(bool(address))
        if address:
            self.address.set_value(address, address)
        self.model.setVisible(bool(address and model))
        self.connect_app.setVisible(bool(address and model))
        if model:
            self.model.set_value(strings.model_named(model), model)

    def show_rows(self, rows: Sequence[RequestRow]) -> None:
        """Show the requests, newest first."""
        self.list.show_rows(rows)
        self._has_rows = bool(rows)
        if not self.settings_shown:
            self._pages.setCurrentIndex(0 if rows else 1)
        self.delete_all.setEnabled(any(row.over for row in rows))
        self._show_buttons()

    def show_kept(self, kept: bool, why_not: str = strings.NOT_KEPT) -> None:
        """Whether the opened request's content is stored, and the text shown otherwise."""
        self._gone.setText(why_not)
        self._below.setCurrentIndex(0 if kept else 1)

    def show_connect(self, to: Connection, strict: bool) -> ConnectSheet:
        """Show the configurations of applications that are to use the server."""
        sheet = ConnectSheet(self._theme, to, strict, self)
        sheet.settings_requested.connect(lambda: self.show_settings(True))
        sheet.open()
        return sheet

    def ask(self, title: str, detail: str) -> Question:
        """Confirm the deletion of all requests."""
        return self.open_question(title, detail, strings.CANCEL, (("delete", strings.DELETE_ALL, "danger"),))

    # ---- inside

    def _ask_to_delete(self) -> None:
        row = self.list.selected_row
        if row is not None and row.over:
            self.delete_requested.emit(row.id)

    def _show_buttons(self) -> None:
        row = self.list.selected_row
        self.delete.setEnabled(row is not None and row.over)

    def _lay_out(self) -> None:
        requests = QWidget()
        set_fixed_height(self.list, _LIST_PX)
        self._below.addWidget(self.transcript)
        self._below.addWidget(self._gone)
        opened = row_of((self._below, 1), self.facts)
        column_of(self.list, Hairline(self._theme), (opened, 1), parent=requests)
        for page in (requests, self._empty, self.settings_page):
            self._pages.addWidget(page)
        commands = (self.model, self.address, self.connect_app, self.settings)
        header = self.make_header(commands, (self.delete, self.delete_all), left_px=20)
        column_of(header, (self._pages, 1), parent=self)


_FACTS_PX = 304
_PAD_PX = 16
_NAME_PX = 104
_GAP_PX = 10
_VALUE_PX = _FACTS_PX - 1 - 2 * _PAD_PX - _NAME_PX - _GAP_PX


class FactsPanel(PanelBeside):
    """Rebuilds its rows only if the facts change."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, _FACTS_PX, parent)
        self._shown = Facts()
        self._values: dict[tuple[int, str], TextLabel] = {}
        self._body, page = QWidget(), QWidget()
        self._column = column_of(self._body, STRETCH, margins=(_PAD_PX, 12, _PAD_PX, 16), parent=page)
        column_of(ScrollPage(theme, page), parent=self)
        self.setAccessibleName(strings.REQUEST)

    @property
    def facts(self) -> Facts:
        return self._shown

    def show_facts(self, facts: Facts) -> None:
        if facts == self._shown:
            return
        before, self._shown = self._shown, facts
        if _names(facts) == _names(before):
            for number, (_, pairs) in enumerate(facts.sections):
                for name, value in pairs:
                    self._values[number, name].setText(value)
            return
        self._build(facts)

    def _build(self, facts: Facts) -> None:
        body = QWidget()
        grid = QGridLayout(body)
        grid.setContentsMargins(0, 0, 0, 0)
        set_spacings(grid, _GAP_PX, 6)
        grid.setColumnStretch(1, 1)
        self._values.clear()
        row = 0
        top = Qt.AlignmentFlag.AlignTop
        for number, (title, pairs) in enumerate(facts.sections):
            heading = TextLabel(self._theme, title, 13, 24, "text", weight=600)
            grid.addWidget(heading, row, 0, 1, 2)
            row += 1
            for name, value in pairs:
                label = TextLabel(self._theme, name, 12, 16, wrap=True, width_px=_NAME_PX)
                shown = TextLabel(
                    self._theme, "", 12, 16, "text", wrap=True, width_px=_VALUE_PX, tabular=True
                )
                shown.setText(value)
                self._values[number, name] = shown
                grid.addWidget(label, row, 0, top)
                grid.addWidget(shown, row, 1, top)
                row += 1
        self._column.replaceWidget(self._body, body)
        self._body.hide()
        self._body.deleteLater()
        self._body = body


def _names(facts: Facts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((title, tuple(name for name, _ in pairs)) for title, pairs in facts.sections)


_CONTENT_PX = 472
_PAGE_PAD_PX = 24


class ServerSettingsPage(QWidget):
    """Scrolls. `form` has the fields, `box` the state and the key."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        shown = [group for group in groups(declared(WindowSettings)) if group.name == "server"]
        self.form = SettingsForm(theme, shown, _CONTENT_PX, titled=False)
        self.box = ServerBox(theme, _CONTENT_PX)
        self.form.add(self.box)
        set_fixed_width(self.form, _CONTENT_PX)
        page = QWidget()
        column_of(self.form, STRETCH, margins=(_PAGE_PAD_PX, 20, _PAGE_PAD_PX, 20), parent=page)
        column_of(ScrollPage(theme, page), parent=self)


class ServerBox(QWidget):
    """`show_state` after each change."""

    def __init__(self, theme: Theme, width_px: int) -> None:
        super().__init__()
        self._state = TextLabel(theme, "", 12, 17, "text2", wrap=True, width_px=width_px)
        self._trouble = TextLabel(theme, "", 12, 17, "danger", wrap=True, width_px=width_px)
        self._trouble.hide()
        self._key_note = TextLabel(theme, strings.KEY_NOTE, 11, 15, "text2", wrap=True, width_px=width_px)
        self.copy_key = Button(theme, strings.COPY_KEY, small=True)
        self.new_key = Button(theme, strings.NEW_KEY, small=True)
        keys = row_of(self.copy_key, self.new_key, STRETCH, gap=8)
        column_of(self._state, self._trouble, keys, self._key_note, gap=6, parent=self)

    @property
    def text(self) -> str:
        """The server's state as displayed."""
        return self._trouble.text() or self._state.text()

    def show_state(self, text: str, *, bad: bool = False) -> None:
        """Show the server's state; `bad`: it is enabled but does not run."""
        for label, words in ((self._state, "" if bad else text), (self._trouble, text if bad else "")):
            label.setText(words)
            label.setVisible(bool(words))

    def say_of_key(self, text: str) -> None:
        """Show the result of a command about the key."""
        self._key_note.setText(text or strings.KEY_NOTE)


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
        self.text = TextView(theme, strings.CONFIGURATION, 11.5, mono=True, ground="text_area")
        self.text.setLineWrapMode(TextView.LineWrapMode.NoWrap)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.text.document().setDocumentMargin(10)
        set_fixed_height(self.text, _TEXT_PX)
        self.hint = TextLabel(theme, "", 12, 16, wrap=True, width_px=inner_px)
        names = strings.OTHER_NAMES_REFUSED if strict else strings.other_names_answered(to.model)
        self.names = TextLabel(theme, names, 12, 16, wrap=True, width_px=inner_px)
        self.copy = CopyButton(theme, strings.CONFIGURATION)
        self.settings = Button(theme, strings.SETTINGS)
        self.close_button = Button(theme, strings.DONE, "primary")
        self.settings.clicked.connect(self.settings_requested)
        self.close_button.clicked.connect(self.accept)
        self.picker.value_changed.connect(self._show_app)
        self._lay_out(theme)
        self._show_app()

    def _show_app(self) -> None:
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
        return text.replace(self._to.key, _HIDDEN) if self._to.key else text

    def _lay_out(self, theme: Theme) -> None:
        set_fixed_width(self.picker, 180)
        choice = row_of(
            TextLabel(theme, strings.CONNECT_TITLE, 15, 20, "text", weight=600), STRETCH, self.picker, gap=8
        )
        buttons = row_of(self.settings, STRETCH, self.copy, self.close_button, gap=8)
        column = column_of(
            *(choice, self.place, self.text, self.hint, self.names, 8, buttons),
            gap=8,
            margins=(_MARGIN_PX, 18, _MARGIN_PX, 16),
            parent=self,
        )
        column.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)
