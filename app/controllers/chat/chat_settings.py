"""ChatSettings: which settings the inspector shows.

Draftlight's own, over them the loaded model's sampling, over that what a person chose for all chats, and
over all what the open chat wants otherwise. A change in the inspector is the chat's own. “Make Default”
turns what a section shows into what every chat starts with.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.chat.chat_presets import ChatPresets
from app.panels.inspector.inspector import Inspector
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.session.chats.presets import apply, chosen_keys, differences
from app.store.preferences import PreferencesFile
from core.events import ModelInfo
from core.settings import Settings, assign


class ChatSettings(QObject):
    """`show()` whenever another chat is open."""

    failed = Signal(object)  # RequestError of a preset
    defaults_changed = Signal(int)  # how many are not Draftlight's own

    def __init__(
        self, inspector: Inspector, chats: Chats, preferences: PreferencesFile, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._inspector = inspector
        self._chats = chats
        self._preferences = preferences
        self._base = Settings()
        inspector.settings_changed.connect(self._keep)
        inspector.defaults_changed.connect(self._take_defaults)
        self.presets = ChatPresets(inspector, chats, preferences, lambda: self.defaults, self)
        self.presets.failed.connect(self.failed)

    def show(self) -> None:
        """The open chat's settings. What of its own is not allowed any more is left out."""
        defaults, overrides = self.defaults, self._chats.open.overrides
        settings, refused = apply(defaults, overrides)
        chosen = chosen_keys(each for each in overrides if each not in refused)
        self._inspector.set_settings(settings, defaults, chosen)
        self.presets.show()

    def of(self, chat: Conversation) -> Settings:
        """The settings in force in `chat`, which need not be open."""
        return apply(self.defaults, chat.overrides)[0]

    def set_model(self, info: ModelInfo | None) -> None:
        """Let what nobody chose be as the loaded model wants it; None: as Draftlight has it."""
        base = info.settings if info else Settings()
        if base != self._base:
            self._base = base
            self.show()

    @property
    def own_defaults(self) -> int:
        """How many of the defaults are not Draftlight's own."""
        return len(self._preferences.now.defaults)

    def reset_defaults(self) -> None:
        """Let new chats start with Draftlight's own settings; what a chat has set for itself stays."""
        self._keep_defaults(self._base, frozenset())
        self.show()

    def set_default(self, key: str, value: object) -> None:
        """Let every chat that does not say otherwise have `value` for the setting `key`."""
        self._set_defaults(assign(self.defaults, key, value), self._chosen_defaults)
        self.show()

    def _keep(self, settings: Settings) -> None:
        chat = self._chats.open
        overrides = differences(settings, self._inspector.defaults, self._inspector.chosen)
        if overrides != chat.overrides:
            self._chats.keep(chat.with_overrides(overrides))
        self.presets.show()

    @property
    def defaults(self) -> Settings:
        """What a chat has that chose nothing."""
        return self._preferences.defaults_over(self._base)

    @property
    def _chosen_defaults(self) -> frozenset[str]:
        return chosen_keys(self._preferences.now.defaults)

    def _take_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        """From a section of the inspector, where the keys in `chosen` were set by hand."""
        self._keep_defaults(defaults, self._chosen_defaults | chosen)

    def _keep_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        self._set_defaults(defaults, chosen)
        self._keep(self._inspector.settings)

    def _set_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        self._preferences.set_defaults(defaults, self._base, chosen)
        self.defaults_changed.emit(self.own_defaults)
