"""ChatSettings: which settings the inspector shows: the defaults, with what the open chat wants otherwise.

A change in the inspector is the chat's own. “Make default” turns what a section shows into what
every chat starts with.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import strings
from app.panels.inspector.inspector import Inspector
from app.session.chats.chats import Chats
from app.session.chats.overrides import apply, differences
from app.store.preferences import PreferencesFile
from core.errors import RequestError
from core.settings import Settings, assign


class ChatSettings(QObject):
    """`show()` whenever another chat is open."""

    failed = Signal(object)  # RequestError: the defaults hold, but only for this run
    defaults_changed = Signal(int)  # how many are not Draftlight's own

    def __init__(
        self, inspector: Inspector, chats: Chats, preferences: PreferencesFile, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._inspector = inspector
        self._chats = chats
        self._preferences = preferences
        inspector.settings_changed.connect(self._keep)
        inspector.defaults_changed.connect(self._keep_defaults)

    def show(self) -> None:
        """The open chat's settings. What of its own is not allowed any more is left out."""
        defaults = self._preferences.defaults
        settings, _ = apply(defaults, self._chats.open.overrides)
        self._inspector.set_settings(settings, defaults)

    @property
    def own_defaults(self) -> int:
        """How many of the defaults are not Draftlight's own."""
        return len(self._preferences.now.defaults)

    def reset_defaults(self) -> None:
        """Let new chats start with Draftlight's own settings; what a chat has set for itself stays."""
        self._keep_defaults(Settings())
        self.show()

    def set_default(self, key: str, value: object) -> None:
        """Let every chat that does not say otherwise have `value` for the setting `key`."""
        self._preferences.set_defaults(assign(self._preferences.defaults, key, value))
        self._tell_problem()
        self.defaults_changed.emit(self.own_defaults)
        self.show()

    def _keep(self, settings: Settings) -> None:
        chat = self._chats.open
        overrides = differences(settings, self._inspector.defaults)
        if overrides != chat.overrides:
            self._chats.keep(chat.with_overrides(overrides))

    def _keep_defaults(self, defaults: Settings) -> None:
        self._preferences.set_defaults(defaults)
        self._tell_problem()
        self._keep(self._inspector.settings)
        self.defaults_changed.emit(self.own_defaults)

    def _tell_problem(self) -> None:
        if self._preferences.problem:
            self.failed.emit(RequestError(strings.DEFAULTS_NOT_SAVED, self._preferences.problem))
