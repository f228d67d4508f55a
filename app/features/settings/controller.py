"""AppSettings: the settings of the app, stored in the preferences and applied to the window.

All changes go through `set()`: from the settings window, the header's token colors and the zoom keys.
Settings of answers belong to the inspector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from app.controllers import strings
from app.controllers.chat_settings import ChatSettings
from app.controllers.views import Views
from app.controls.buttons import on_click
from app.features.worker_caches import SavedChatsController
from app.session.images import ImageArchive
from app.store.preferences import PreferencesFile
from app.theme.theme import theme
from core.errors import SettingError
from core.settings import WindowSettings, assign
from core.settings.window import forbidden, next_zoom

if TYPE_CHECKING:
    from app.features.settings.window import SettingsForm, SettingsWindow


class AppSettings(QObject):
    """A colour scheme requested at the start applies until the person selects another.

    `stop()` restores the application's own settings.
    """

    changed = Signal(object)  # WindowSettings

    def __init__(self, views: Views, preferences: PreferencesFile, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views = views
        self._preferences = preferences
        self._blink_ms = QApplication.cursorFlashTime()
        if theme.scheme == "system":
            theme.set_scheme(self.now.look.scheme)
        self._show()
        views.header.token_colors.value_changed.connect(lambda value: self.set("look.token_colors", value))

    @property
    def now(self) -> WindowSettings:
        return self._preferences.now.settings

    def set(self, key: str, value: Any) -> None:
        """Set the setting `key`. Raises `SettingError` if the value is not allowed."""
        self._take(assign(self.now, key, value))

    def reset(self) -> None:
        """Restore the defaults of all but the local server's settings, which have their own window."""
        self._take(WindowSettings(server=self.now.server))

    def zoom(self, steps: int) -> None:
        """Enlarge the texts by steps, negative to reduce; 0 for the original size."""
        zoom_pct = next_zoom(self.now.look.zoom_pct, steps) if steps else WindowSettings().look.zoom_pct
        self.set("look.zoom_pct", zoom_pct)

    def stop(self) -> None:
        QApplication.setCursorFlashTime(self._blink_ms)

    def connect_form(self, form: SettingsWindow | SettingsForm) -> None:
        """Keep a form up to date and apply its edits."""
        form.show_settings(self.now)
        self.changed.connect(form.show_settings)
        form.changed.connect(lambda key, value: self._try(form, key, value))

    def make_window(
        self, chats: ChatSettings, saved_chats: SavedChatsController, images: ImageArchive
    ) -> SettingsWindow:
        from app.features.settings.window import SettingsWindow

        window = SettingsWindow()
        self.connect_form(window)
        window.show_defaults(chats.own_defaults)
        chats.defaults_changed.connect(window.show_defaults)
        on_click(
            (window.reset_button, self.reset),
            (window.defaults_button, chats.reset_defaults),
            (window.clear_button, saved_chats.erase_all),
        )
        window.show_saved(saved_chats.now)
        saved_chats.listed.connect(window.show_saved)
        window.shown.connect(saved_chats.refresh)
        window.shown.connect(lambda: window.show_images(images.listed()))
        return window

    def _try(self, window: SettingsWindow | SettingsForm, key: str, value: Any) -> None:
        try:
            self.set(key, value)
        except SettingError as error:
            window.show_error(key, error)

    def _take(self, settings: WindowSettings) -> None:
        before = self.now
        if settings == before:
            return
        self._preferences.change(settings=settings)
        if settings.look.scheme != before.look.scheme:
            theme.set_scheme(settings.look.scheme)
        self._show()
        self.changed.emit(settings)

    def _show(self) -> None:
        now = self.now
        theme.set_zoom(now.look.zoom_pct / 100)
        theme.set_motion(now.look.motion)
        QApplication.setCursorFlashTime(0 if theme.reduced_motion else self._blink_ms)
        self._views.header.token_colors.set_value(now.look.token_colors)
        self._views.transcript.set_token_colors(now.look.token_colors)
        self._views.legend.is_wanted = now.look.token_colors != "off"
        self._views.legend.show_origins(now.look.token_colors == "origins")
        self._views.show_foot()
        self._views.composer.edit.send_keys = now.writing.send_keys
        self._views.inspector.hold(dict.fromkeys(forbidden(now.allowed), strings.HELD))
