"""ChatPresets: which preset the open chat took, which one new chats start with, and a person's own ones.

A chat keeps the name of the preset it took. What is changed in it afterwards is the chat's own: the preset is
shown as modified until its settings are those of the preset again.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.controllers.chat import strings
from app.panels.inspector.inspector import Inspector
from app.panels.inspector.preset_bar import PresetState
from app.session.chats import presets
from app.session.chats.chats import Chats
from app.session.chats.presets import Preset, chosen_keys
from app.store.preferences import PreferencesFile
from core.errors import RequestError
from core.settings import Settings


class ChatPresets(QObject):
    """`defaults` gives what a chat has that chose nothing. `show()` after each change of settings."""

    changed = Signal()  # a person's own, or which one new chats start with: they are in the preferences
    failed = Signal(object)  # RequestError

    def __init__(
        self,
        inspector: Inspector,
        chats: Chats,
        preferences: PreferencesFile,
        defaults: Callable[[], Settings],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._inspector = inspector
        self._chats = chats
        self._preferences = preferences
        self._defaults = defaults
        bar = inspector.presets
        bar.preset_chosen.connect(self.take)
        bar.save_requested.connect(self.save)
        bar.update_requested.connect(self.update)
        bar.rename_requested.connect(self.rename)
        bar.delete_requested.connect(self.delete)
        bar.default_requested.connect(self.make_default)

    @property
    def own(self) -> tuple[Preset, ...]:
        """A person's own."""
        return self._preferences.now.presets

    def show(self) -> None:
        """How the open chat stands to all of them."""
        settings, defaults, own = self._inspector.settings, self._defaults(), self.own
        taken = presets.find(self._chats.open.preset, own)
        current = taken.name if taken else presets.name_of(settings, defaults, own)
        self._inspector.presets.show_presets(
            PresetState(
                tuple(preset.name for preset in presets.known(own)),
                frozenset(preset.name for preset in own),
                current,
                modified=taken is not None and presets.chosen(taken, defaults) != settings,
                custom=not current and settings != defaults,
                default=self._preferences.now.preset,
            )
        )

    def take(self, name: str) -> None:
        """Let the open chat have the settings of a preset; empty for the defaults."""
        defaults, preset = self._defaults(), presets.find(name, self.own)
        self._chats.keep(self._chats.open.with_preset(preset.name if preset else ""))
        if preset is None:
            self._inspector.change_settings(defaults, frozenset())
        else:
            chosen = chosen_keys(preset.overrides)
            self._inspector.change_settings(presets.chosen(preset, defaults), chosen)

    def save(self, name: str) -> None:
        """Keep the open chat's settings under `name`, which none of the person's own has."""
        if self._is_free(name):
            settings, chosen = self._inspector.settings, self._inspector.chosen
            self._chats.keep(self._chats.open.with_preset(name))
            self.keep(presets.with_preset(self.own, name, settings, self._defaults(), chosen))

    def update(self, name: str) -> None:
        """Let one of the person's own have the open chat's settings."""
        settings, chosen = self._inspector.settings, self._inspector.chosen
        self.keep(presets.updated(self.own, name, settings, self._defaults(), chosen))

    def rename(self, name: str, new: str) -> None:
        """Call one of the person's own `new`. Other chats that took it keep their settings."""
        if self._is_free(new):
            chat = self._chats.open
            if chat.preset == name:
                self._chats.keep(chat.with_preset(new))
            self.keep(presets.renamed(self.own, name, new), {name: new})

    def delete(self, name: str) -> None:
        """A person's own goes; the chats that took it keep their settings."""
        self.keep(presets.without(self.own, name), {name: ""})

    def make_default(self, name: str) -> None:
        """Let new chats start with a preset; empty for the defaults alone."""
        self._preferences.change(preset=name)
        self._tell()

    def keep(self, own: tuple[Preset, ...], moved: dict[str, str] | None = None) -> None:
        """`own` are the person's from now on; `moved` says what became of names."""
        default = self._preferences.now.preset
        kept = default if presets.find(default, own) else (moved or {}).get(default, "")
        self._preferences.change(presets=own, preset=kept)
        self._tell()

    def _is_free(self, name: str) -> bool:
        free = all(preset.name != name for preset in self.own)
        if not free:
            self.failed.emit(RequestError(strings.preset_exists(name), strings.PRESET_EXISTS_HINT))
        return free

    def _tell(self) -> None:
        self.changed.emit()
        self.show()
