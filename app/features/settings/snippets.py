"""SnippetsEditor: the person's own saved prompts, in the settings window. Changes apply at once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons import Button
from app.controls.choices import Popup
from app.controls.sheets import Question, ask_name
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.session.chats.snippets import BUILT_IN, MOST_NAME_CHARACTERS, Snippet
from app.theme.measures import set_spacing
from app.theme.theme import Theme

TITLE = "Saved prompts"
NOTE = (
    "Type / in an empty message to insert a saved prompt. Words in {braces} are placeholders: Tab goes from"
    " one to the next. Built in are “Summarize”, “Translate”, “Explain”, “Rewrite” and “Quote the Passage”; a"
    " prompt of your own with the same name replaces them."
)
NEW = "New…"
RENAME = "Rename…"
DELETE = "Delete…"
NEW_TITLE = "New Saved Prompt"
RENAME_TITLE = "Rename Saved Prompt"
NAME = "Name:"
PROMPT = "Saved prompt"
TEXT = "Text of the saved prompt"
EMPTY_TEXT = "For example: Answer {the mail} in {two sentences}."
NONE = "None of your own"
CANCEL = "Cancel"
CONFIRM = "Delete"
DELETE_DETAIL = "This cannot be undone."


def delete_title(name: str) -> str:
    return f"Delete the saved prompt “{name}”?"


class SnippetsEditor(QWidget):
    """A choice of the own prompts, with the text of the chosen one."""

    changed = Signal(object)  # tuple[Snippet, ...]: all own prompts

    def __init__(self, theme: Theme, width_px: int) -> None:
        super().__init__()
        self._theme = theme
        self._own: tuple[Snippet, ...] = ()
        self.setAutoFillBackground(False)
        self.choice = Popup(theme, [("", NONE)])
        self.choice.setAccessibleName(PROMPT)
        self.new_button = Button(theme, NEW)
        self.rename_button = Button(theme, RENAME)
        self.delete_button = Button(theme, DELETE)
        self.text = TextArea(theme)
        self.text.setAccessibleName(TEXT)
        self.text.set_placeholder(EMPTY_TEXT)
        row = QHBoxLayout()
        set_spacing(row, 8)
        row.addWidget(self.choice, 1)
        for button in (self.new_button, self.rename_button, self.delete_button):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 10)
        column.addWidget(TextLabel(theme, NOTE, 12, 17, "text2", wrap=True, width_px=width_px))
        column.addLayout(row)
        column.addWidget(self.text)
        self.choice.value_changed.connect(lambda name: self._show_text())
        self.text.value_changed.connect(self._take_text)
        self.new_button.clicked.connect(lambda: ask_name(self, NEW_TITLE, NAME, "", self.add))
        self.rename_button.clicked.connect(
            lambda: ask_name(self, RENAME_TITLE, NAME, self._name, self.rename)
        )
        self.delete_button.clicked.connect(self._ask_delete)
        self._show_text()

    @property
    def _name(self) -> str:
        return self.choice.value if self._own else ""

    def show_snippets(self, own: Sequence[Snippet]) -> None:
        """Show the person's own prompts; the chosen one stays chosen."""
        own = tuple(own)
        if own == self._own:
            return
        self._show(own, self._name)

    def add(self, name: str) -> None:
        """Add a prompt, with the text of the built-in one of that name; choose it if there is one already."""
        name = name[:MOST_NAME_CHARACTERS]
        if not any(each.name == name for each in self._own):
            text = next((each.text for each in BUILT_IN if each.name == name), "")
            self._keep((*self._own, Snippet(name, text)), name)
        else:
            self._show(self._own, name)
        self.text.setFocus()

    def rename(self, name: str) -> None:
        """Rename the chosen prompt, which replaces one of the new name."""
        name, before = name[:MOST_NAME_CHARACTERS], self._name
        if before and name != before:
            others = (each for each in self._own if each.name != name)
            self._keep(
                tuple(replace(each, name=name) if each.name == before else each for each in others), name
            )

    def delete(self) -> None:
        """Delete the chosen prompt."""
        self._keep(tuple(each for each in self._own if each.name != self._name), "")

    def _ask_delete(self) -> None:
        title = delete_title(self._name)
        question = Question(
            self._theme, title, DELETE_DETAIL, CANCEL, [("delete", CONFIRM, "danger")], self.window()
        )
        question.chosen.connect(lambda value: self.delete())
        question.open()

    def _take_text(self, text: str) -> None:
        if self._name:
            own = tuple(replace(each, text=text) if each.name == self._name else each for each in self._own)
            if own != self._own:
                self._own = own
                self.changed.emit(own)

    def _keep(self, own: tuple[Snippet, ...], name: str) -> None:
        self._show(own, name)
        self.changed.emit(own)

    def _show(self, own: tuple[Snippet, ...], name: str) -> None:
        self._own = own
        self.choice.blockSignals(True)
        self.choice.clear()
        for each in own:
            self.choice.addItem(each.name, each.name)
        if not own:
            self.choice.addItem(NONE, "")
        elif any(each.name == name for each in own):
            self.choice.set_value(name)
        self.choice.blockSignals(False)
        self._show_text()

    def _show_text(self) -> None:
        has_any = bool(self._own)
        for each in (self.choice, self.rename_button, self.delete_button, self.text):
            each.setEnabled(has_any)
        self.text.set_value(next((each.text for each in self._own if each.name == self._name), ""))
