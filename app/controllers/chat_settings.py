"""The settings and presets of the open chat.

Settings are layered: Draftlight's defaults, the loaded model's sampling, the person's defaults for all chats,
the overrides of the open chat. A change in the inspector is an override of the open chat; Make Default copies
a section into the person's defaults.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.controllers.app import App
from app.panels.preset_bar import PresetState
from app.session.chats import presets
from app.session.chats.conversation import Conversation
from app.session.chats.presets import Preset, apply, chosen_keys, differences
from app.session.turn import effects as fx
from core.errors import RequestError
from core.settings import Settings


class ChatPresets(QObject):
    """The preset of the open chat, and the person's own presets.

    `defaults` returns the settings of a chat without overrides. Call `show()` after each change of settings.
    """

    def __init__(self, app: App, defaults: Callable[[], Settings], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._inspector = app.views.inspector
        self._chats = app.chats
        self._preferences = app.preferences
        self._defaults = defaults
        bar = self._inspector.presets
        bar.preset_chosen.connect(self.take)
        bar.save_requested.connect(self.save)
        bar.update_requested.connect(self.update)
        bar.rename_requested.connect(self.rename)
        bar.delete_requested.connect(self.delete)

    @property
    def own(self) -> tuple[Preset, ...]:
        return self._preferences.now.presets

    def show(self) -> None:
        """Show the preset that the open chat's settings equal."""
        settings, defaults, own = self._inspector.settings, self._defaults(), self.own
        current = presets.name_of(settings, defaults, own)
        self._inspector.presets.show_presets(
            PresetState(
                tuple(preset.name for preset in presets.known(own)),
                frozenset(preset.name for preset in own),
                current,
                custom=not current and settings != defaults,
                last=self._chats.open.preset,
            )
        )

    def take(self, name: str) -> None:
        """Apply a preset to the open chat; empty applies the defaults."""
        defaults, preset = self._defaults(), presets.find(name, self.own)
        self._chats.keep(self._chats.open.with_preset(preset.name if preset else ""))
        if preset is None:
            self._inspector.change_settings(defaults, frozenset())
        else:
            chosen = chosen_keys(preset.overrides)
            self._inspector.change_settings(presets.chosen(preset, defaults), chosen)

    def save(self, name: str) -> None:
        """Save the open chat's settings as a preset; `name` must be unused."""
        if self._is_free(name):
            settings, chosen = self._inspector.settings, self._inspector.chosen
            self._chats.keep(self._chats.open.with_preset(name))
            self.keep(presets.with_preset(self.own, name, settings, self._defaults(), chosen))

    def update(self, name: str) -> None:
        """Replace the settings of a preset by the open chat's."""
        settings, chosen = self._inspector.settings, self._inspector.chosen
        self.keep(presets.updated(self.own, name, settings, self._defaults(), chosen))

    def rename(self, name: str, new: str) -> None:
        """Rename a preset. Other chats that use it keep their settings."""
        if self._is_free(new):
            chat = self._chats.open
            if chat.preset == name:
                self._chats.keep(chat.with_preset(new))
            self.keep(presets.renamed(self.own, name, new), {name: new})

    def delete(self, name: str) -> None:
        """Delete a preset. Chats that use it keep their settings."""
        self.keep(presets.without(self.own, name), {name: ""})

    def keep(self, own: tuple[Preset, ...], moved: dict[str, str] | None = None) -> None:
        """Store `own` as the person's presets; `moved` maps old names to new ones, or to empty."""
        self._preferences.change(presets=own)
        for old, new in (moved or {}).items():
            if presets.find(old, own) is None:
                self._chats.projects.rename_preset(old, new)
        self.show()

    def _is_free(self, name: str) -> bool:
        free = all(preset.name != name for preset in self.own)
        if not free:
            self._app.report(RequestError(strings.preset_exists(name), strings.PRESET_EXISTS_HINT))
        return free


class ChatSettings(QObject):
    """The settings that the inspector shows. Call `show()` when another chat is opened, and `refresh()` when
    what they are made of has changed.
    """

    changed = Signal(object)  # Settings of the open chat, after any change of them
    defaults_changed = Signal(int)  # the number of defaults that differ from Draftlight's

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._inspector = app.views.inspector
        self._chats = app.chats
        self._preferences = app.preferences
        self._base = Settings()
        self._inspector.settings_changed.connect(self._keep)
        self._inspector.defaults_changed.connect(self._take_defaults)
        self.presets = ChatPresets(app, lambda: self.defaults, self)

    def show(self) -> None:
        """Show the open chat's settings, without overrides that are no longer allowed."""
        defaults, overrides = self.defaults, self._chats.open.overrides
        settings, refused = apply(defaults, overrides)
        chosen = chosen_keys(each for each in overrides if each not in refused)
        self._inspector.set_settings(settings, defaults, chosen)
        self.presets.show()

    def refresh(self) -> None:
        """Show the settings that the open chat has now, and report them."""
        self.show()
        self.changed.emit(self._inspector.settings)

    def of(self, chat: Conversation) -> Settings:
        """The effective settings of `chat`, which need not be open."""
        return apply(self.defaults, chat.overrides)[0]

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        self._set_base(effect.info.settings)

    def on_model_gone(self, effect: fx.ModelGone) -> None:
        self._set_base(Settings())

    def _set_base(self, base: Settings) -> None:
        if base != self._base:
            self._base = base
            self.refresh()

    @property
    def own_defaults(self) -> int:
        """The number of defaults that differ from Draftlight's."""
        return len(self._preferences.now.defaults)

    def reset_defaults(self) -> None:
        """Reset the person's defaults. Overrides of chats are kept."""
        self._keep_defaults(self._base, frozenset())
        self.refresh()

    def _keep(self, settings: Settings) -> None:
        chat = self._chats.open
        overrides = differences(settings, self._inspector.defaults, self._inspector.chosen)
        if overrides != chat.overrides:
            self._chats.keep(replace(chat, overrides=overrides))
        self.presets.show()
        self.changed.emit(settings)

    @property
    def defaults(self) -> Settings:
        """The settings of a chat without overrides."""
        return self._preferences.defaults_over(self._base)

    def _take_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        """Make Default was chosen in a section; the keys in `chosen` were set by hand."""
        self._keep_defaults(defaults, chosen_keys(self._preferences.now.defaults) | chosen)

    def _keep_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        self._preferences.set_defaults(defaults, self._base, chosen)
        self.defaults_changed.emit(self.own_defaults)
        self._keep(self._inspector.settings)
