"""ProjectSheet: the name and the settings of a project, as a sheet of the chat window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QPalette
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.chat.file_reader import FileReader, Reading
from app.controls.buttons import Button
from app.controls.choices import CheckBox, Popup
from app.controls.focus_ring import FocusRing
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import draw_box
from app.controls.sheets import open_files
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.projects import strings
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.theme.measures import add_gap, set_fixed_height, set_font, set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, px
from core.errors import RequestError
from core.events import Attachment

_WIDTH_PX, _MARGIN_PX, _LABEL_PX = 480, 20, 104
_INNER_PX = _WIDTH_PX - 2 * _MARGIN_PX
_DOCUMENTS_PX = 112
_NAME_CHARACTERS = 80


class ProjectSheet(QDialog):
    """Emits `saved` with the changed project and the added files, which are not in the library yet.

    `presets` are names; `list_models` returns pairs of reference and name. Deletes itself when closed.
    """

    saved = Signal(object, object)  # Project, tuple[Attachment, ...]

    def __init__(
        self,
        theme: Theme,
        title: str,
        project: Project,
        presets: Sequence[str],
        list_models: Callable[[], Sequence[tuple[str, str]]],
        documents: Sequence[KeptDocument],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._project = project
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.name = NameField(theme, project.name)
        self.system_prompt = TextArea(theme)
        self.system_prompt.set_placeholder(strings.SYSTEM_PROMPT_HINT)
        self.system_prompt.set_value(project.system_prompt)
        self.preset = Popup(theme, [("", strings.USUAL_PRESET), *((name, name) for name in presets)])
        self.model = Popup(theme, ())
        self._list_models = list_models
        self._models: Sequence[tuple[str, str]] | None = None
        self.refresh_models()
        if project.preset in presets:
            self.preset.set_value(project.preset)
        self.documents: dict[str | Attachment, CheckBox] = {}
        self.add_button = Button(theme, strings.ADD_FILES, small=True, icon_name="plus")
        self.note = TextLabel(theme, "", 11, 15, wrap=True, width_px=_INNER_PX)
        self.cancel = Button(theme, strings.CANCEL)
        self.save = Button(theme, strings.SAVE if project.name else strings.CREATE, "primary")
        self._reader = FileReader(self._show_reading, self._take_file, self)
        self._lay_out(title)
        for document in sorted(documents, key=lambda each: each.id not in project.documents):
            self._add_document(document.id, document.name, document.id in project.documents)
        self._say(strings.DOCUMENTS_NOTE if documents else strings.NO_DOCUMENTS)
        self.name.textChanged.connect(self._enable)
        self.add_button.clicked.connect(self._choose_files)
        self.cancel.clicked.connect(self.reject)
        self.save.clicked.connect(self._save)
        self._enable()
        self.name.setFocus()

    def refresh_models(self) -> None:
        """List the models to choose from; the project's own stays a choice if it is not installed."""
        models = self._list_models()
        if models == self._models:
            return
        self._models = models
        wanted = self.model.value if self.model.count() else self._project.model
        options = [("", strings.USUAL_MODEL), *models]
        if wanted and all(reference != wanted for reference, _ in models):
            options.append((wanted, strings.not_installed(wanted)))
        self.model.clear()
        for reference, name in options:
            self.model.addItem(name, reference)
        self.model.set_value(wanted)

    def add_files(self, paths: Sequence[Path]) -> None:
        """Read files as documents of the project."""
        for path in paths:
            self._reader.read(path)
        self._enable()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.save.isEnabled():
                self._save()
        else:
            super().keyPressEvent(event)

    def done(self, result: int) -> None:
        self._reader.cancel_all()
        super().done(result)

    # ---- inside

    def _save(self) -> None:
        checked = [key for key, box in self.documents.items() if box.isChecked()]
        shown = set(self.documents)
        # A document that is in use but cannot be listed now stays.
        others = [each for each in self._project.documents if each not in shown]
        project = replace(
            self._project,
            name=" ".join(self.name.text().split()),
            system_prompt=self.system_prompt.value.strip(),
            preset=self.preset.value,
            model=self.model.value,
            documents=(*(key for key in checked if isinstance(key, str)), *others),
        )
        files = tuple(key for key in checked if isinstance(key, Attachment))
        self.accept()
        self.saved.emit(project, files)

    def _enable(self) -> None:
        self.save.setEnabled(bool(self.name.text().strip()) and not self._reader.busy)

    def _choose_files(self) -> None:
        open_files(self, strings.ADD_FILES_TITLE, self.add_files)

    def _show_reading(self, reading: Reading) -> None:
        self._say(strings.reading(reading.name))

    def _take_file(self, reading: Reading) -> None:
        if isinstance(reading.result, Attachment):
            self._add_document(reading.result, reading.result.name, True, first=True)
            self._say(strings.DOCUMENTS_NOTE)
        elif isinstance(reading.result, RequestError):
            self._say(f"{reading.result.message} {reading.result.hint}".strip(), "danger")
        self._enable()

    def _say(self, text: str, color: str = "text2") -> None:
        self.note.set_color(color)
        self.note.setText(text)
        self.note.updateGeometry()

    def _add_document(self, key: str | Attachment, name: str, checked: bool, *, first: bool = False) -> None:
        box = self.documents[key] = CheckBox(self._theme, name)
        box.setToolTip(name)
        box.setChecked(checked)
        self._list.insertWidget(0 if first else self._list.count() - 1, box)

    def _lay_out(self, title: str) -> None:
        theme = self._theme
        column = QVBoxLayout(self)
        set_margins(column, _MARGIN_PX, 18, _MARGIN_PX, 16)
        set_spacing(column, 8)
        column.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        column.addWidget(TextLabel(theme, title, 15, 20, "text", weight=600, width_px=_INNER_PX))
        column.addLayout(self._row(strings.NAME, self.name))
        add_gap(column, 2)
        column.addWidget(TextLabel(theme, strings.FOR_NEW_CHATS, 11, 15, wrap=True, width_px=_INNER_PX))
        column.addLayout(self._row(strings.SYSTEM_PROMPT, self.system_prompt))
        column.addLayout(self._row(strings.PRESET, self.preset))
        column.addLayout(self._row(strings.MODEL, self.model))
        page = QWidget()
        self._list = QVBoxLayout(page)
        self._list.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._list, 2)
        self._list.addStretch(1)
        area = ScrollPage(theme, page)
        set_fixed_height(area, _DOCUMENTS_PX)
        column.addLayout(self._row(strings.DOCUMENTS, area))
        beside = QHBoxLayout()
        set_margins(beside, _LABEL_PX + 10, 0, 0, 0)
        beside.addWidget(self.add_button)
        beside.addStretch(1)
        column.addLayout(beside)
        column.addWidget(self.note)
        add_gap(column, 6)
        row = QHBoxLayout()
        set_spacing(row, 8)
        row.addStretch(1)
        row.addWidget(self.cancel)
        row.addWidget(self.save)
        column.addLayout(row)

    def _row(self, label: str, field: QWidget) -> QHBoxLayout:
        row = QHBoxLayout()
        set_spacing(row, 10)
        name = TextLabel(self._theme, label, 12, 24, width_px=_LABEL_PX)
        name.setBuddy(field)
        field.setAccessibleName(label)
        row.addWidget(name, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(field, 1)
        return row


class NameField(QLineEdit):
    """One line of text, 28 high."""

    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__(text)
        self._theme = theme
        self.setFrame(False)
        self.setMaxLength(_NAME_CHARACTERS)
        self.setTextMargins(px(8), 0, px(8), 0)
        set_font(self, 13)
        set_fixed_height(self, 28)
        self._ring = FocusRing(self, theme, 6, with_mouse=True)
        theme.changed.connect(self._recolour)
        self._recolour()

    def paintEvent(self, event: QPaintEvent) -> None:
        frame = self._theme.color("accent_mid" if self._ring.shown else "control_border")
        painter = painter_on(self)
        draw_box(painter, area_of(self), 6, self._theme.color("text_area"), frame)
        painter.end()
        super().paintEvent(event)

    def _recolour(self) -> None:
        palette, role = self.palette(), QPalette.ColorRole
        palette.setColor(role.Base, Qt.GlobalColor.transparent)
        palette.setColor(role.Text, self._theme.color("text"))
        palette.setColor(role.Highlight, self._theme.color("accent_fill"))
        palette.setColor(role.HighlightedText, self._theme.color("on_accent"))
        self.setPalette(palette)
