"""SettingsWindow: the settings of the app, generated from their declarations.

Changes apply at once. Settings of answers are in the panel of each chat; the last section says so, and can
reset their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QWidget

from app.controls.buttons import Button
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.side_window import SideWindow
from app.fields.setting_field import SettingField
from app.gauges.figures import gigabytes
from app.panels.groups import Group, groups
from app.session.images import KeptImage
from app.session.strings import MACHINE
from app.theme.measures import STRETCH, add_gap, column_of, row_of, set_minimum_width
from core.errors import SettingError
from core.events import SavedChatsListed
from core.settings import WindowSettings, declared, read

APP_SETTINGS = "Settings"
RESET_APP_SETTINGS = "Reset These Settings"
AT_ONCE = "Changes apply at once, in all chats."
NEW_CHATS = "New chats"
IMAGES = "Images"
SAVED_CHATS = "Chat caches"
CLEAR_SAVED = "Clear Chat Caches"
TOOLS = "Tools"
TOOLS_NOTE = (
    "Tool servers and permissions are managed in a separate window. The tools of a chat are chosen below its"
    " message field."
)
MANAGE_TOOLS = "Manage Tools…"
RESET_DEFAULTS = "Reset Defaults for New Chats"


def defaults_note(own: int) -> str:
    start = (
        "How answers are drafted, read and sampled is set in the panel next to each chat."
        " “Make Default” there sets the defaults of new chats."
    )
    if not own:
        return f"{start} They start with Draftlight’s own settings now."
    return f"{start} They start with {'1 setting' if own == 1 else f'{own} settings'} of yours now."


def saved_note(saved: SavedChatsListed | None, is_on: bool) -> str:
    start = (
        f"The KV cache of a chat is saved on {MACHINE}, so that the chat answers at once when it is opened"
        " again. It is erased with the chat. Clearing caches keeps the chats and costs only time."
    )
    if not is_on:
        start = "“Keep chat caches” is off: no more caches are saved. Saved ones remain until you clear them."
    if saved is None:
        return start
    count = "1 chat" if saved.files == 1 else f"{saved.files:,} chats"
    size = f"{count}, {_size(saved.size_bytes)}" if saved.files else "Nothing is saved"
    end = f" {saved.problem}." if saved.problem else ""
    return f"{start} {size}.{end}"


def images_note(images: Sequence[KeptImage]) -> str:
    start = (
        f"Images of your chats are kept on {MACHINE}, each once. An image is erased, also from backups, with"
        " the last chat that has it, when that is deleted permanently."
    )
    if not images:
        return f"{start} None yet."
    count = "1 image" if len(images) == 1 else f"{len(images):,} images"
    return f"{start} {count}, {_size(sum(each.size_bytes for each in images))}."


def _size(size_bytes: int) -> str:
    """Returns `37 KB`, `412 MB` or `1.2 GB`."""
    if size_bytes < 2**20:
        return f"{math.ceil(size_bytes / 2**10):,} KB"
    return f"{size_bytes / 2**20:,.0f} MB" if size_bytes < 2**30 else f"{gigabytes(size_bytes)} GB"


_SIZE_PX = (520, 752)
_PAD_PX = 24
_CONTENT_PX = _SIZE_PX[0] - 2 * _PAD_PX
_GAP_PX = 10


class SettingsWindow(SideWindow):
    """`changed` reports a person's edit; its receiver shows the result with `show_settings`."""

    def __init__(self) -> None:
        super().__init__(APP_SETTINGS, QSize(*_SIZE_PX))
        set_minimum_width(self, _SIZE_PX[0])
        self.reset_button = Button(RESET_APP_SETTINGS)
        self.defaults_button = Button(RESET_DEFAULTS)
        self.clear_button = Button(CLEAR_SAVED)
        self.tools_button = Button(MANAGE_TOOLS)
        self._saved_note = TextLabel("", 12, 17, "text2", wrap=True, width_px=_CONTENT_PX)
        self._images_note = TextLabel("", 12, 17, "text2", wrap=True, width_px=_CONTENT_PX)
        self._defaults_note = TextLabel("", 12, 17, "text2", wrap=True, width_px=_CONTENT_PX)
        # The local server's settings are in its window.
        shown = [group for group in groups(declared(WindowSettings)) if group.name != "server"]
        self._form = SettingsForm(shown, _CONTENT_PX)
        self.changed = self._form.changed
        self._saved: SavedChatsListed | None = None
        self._build()
        self.show_settings(WindowSettings())
        self.show_defaults(0)
        self.show_images(())

    def field(self, key: str) -> SettingField:
        """Returns the field of the setting `key`. Raises `KeyError`."""
        return self._form.fields[key]

    def show_settings(self, settings: WindowSettings) -> None:
        self._form.show_settings(settings)
        self._saves = settings.allowed.save
        self.show_saved(self._saved)
        own = replace(settings, server=WindowSettings().server)
        self.reset_button.setEnabled(own != WindowSettings())

    def show_error(self, key: str, error: SettingError) -> None:
        self._form.show_error(key, error)

    def show_defaults(self, own: int) -> None:
        """`own` is the number of settings of answers whose default the person changed."""
        self._defaults_note.setText(defaults_note(own))
        self.defaults_button.setEnabled(own > 0)

    def show_saved(self, saved: SavedChatsListed | None) -> None:
        """Show the size of the saved chats; None: unknown."""
        self._saved = saved
        self._saved_note.setText(saved_note(saved, self._saves))
        self.clear_button.setEnabled(saved is not None and saved.files > 0)

    def show_images(self, images: Sequence[KeptImage]) -> None:
        """Show the number and the size of the images of all chats."""
        self._images_note.setText(images_note(images))

    # ---- building

    def _build(self) -> None:
        page = QWidget()
        page.setAutoFillBackground(False)
        form = self._form
        form.add_title(TOOLS)
        form.add(TextLabel(TOOLS_NOTE, 12, 17, "text2", wrap=True, width_px=_CONTENT_PX))
        form.add_row(self.tools_button)
        form.add_title(IMAGES)
        form.add(self._images_note)
        form.add_title(SAVED_CHATS)
        form.add(self._saved_note)
        form.add_row(self.clear_button)
        form.add_title(NEW_CHATS)
        form.add(self._defaults_note)
        defaults = row_of(self.defaults_button, STRETCH)
        at_once = row_of((TextLabel(AT_ONCE, 11, 15), 1), self.reset_button, margins=(0, 14, 0, 0))
        # Nothing lies over the page: a fixed footer would cut a line.
        margins = (_PAD_PX, 20, _PAD_PX, 20)
        column_of(form, defaults, at_once, STRETCH, gap=_GAP_PX, margins=margins, parent=page)
        column_of((ScrollPage(page), 1), parent=self)


_LABEL_PX = 148


class SettingsForm(QWidget):
    """Fields of `groups`, `content_px` wide. The owner answers `changed` with `show_settings`."""

    changed = Signal(str, object)  # key, value

    def __init__(self, groups: Sequence[Group], content_px: int, *, titled: bool = True) -> None:
        super().__init__()
        self.fields: dict[str, SettingField] = {}
        self.setAutoFillBackground(False)
        self._column = column_of(gap=_GAP_PX, parent=self)
        for group in groups:
            if titled:
                self.add_title(group.title)
            for setting in group.settings:
                field = SettingField(setting, label_px=_LABEL_PX, content_px=content_px)
                field.edited.connect(self.changed)
                self.fields[setting.key] = field
                self._column.addWidget(field)

    def add_title(self, title: str) -> None:
        if self._column.count():
            add_gap(self._column, 14)
        self._column.addWidget(TextLabel(title, 13, 18, "text", weight=600))

    def add_row(self, widget: QWidget) -> None:
        """Add `widget` at the end, at the left and no wider than it needs."""
        self._column.addLayout(row_of(widget, STRETCH))

    def add(self, widget: QWidget) -> None:
        self._column.addWidget(widget)

    def show_settings(self, settings: WindowSettings) -> None:
        for key, field in self.fields.items():
            field.show_value(read(settings, key))

    def show_error(self, key: str, error: SettingError) -> None:
        """Show that the edited value of `key` is not allowed."""
        self.fields[key].show_error(error.message, error.hint)
