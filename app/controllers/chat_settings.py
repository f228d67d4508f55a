"""The settings and presets of the open chat.

Settings are layered: Draftlight's defaults, the loaded model's sampling, the person's defaults for all chats,
the overrides of the open chat. A change in the inspector is an override of the open chat; Make Default copies
a section into the person's defaults.

A chat remembers the preset it was given. If its settings differ from the preset's, the preset is shown as
modified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.chat.bars import NoticeBar
from app.controllers import strings
from app.controllers.transfer import show_written
from app.controls.sheets import first_folder, open_files, save_file
from app.panels.inspector import Inspector
from app.panels.preset_bar import PresetBar, PresetState
from app.session.chats import presets
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.session.chats.presets import Preset, apply, chosen_keys, differences
from app.session.turn import effects as fx
from app.store import strings as store_strings
from app.store.chat_files import file_name
from app.store.faults import StoreError, TransferError
from app.store.preferences import PreferencesFile
from app.store.preset_file import from_json, to_json
from core.errors import RequestError
from core.settings import Settings, assign
from core.system.files import replacing


class ChatPresets(QObject):
    """The preset of the open chat, the default preset, and the person's own presets.

    `defaults` returns the settings of a chat without overrides; `report` shows an error. Call `show()` after
    each change of settings.
    """

    def __init__(
        self,
        inspector: Inspector,
        chats: Chats,
        preferences: PreferencesFile,
        defaults: Callable[[], Settings],
        report: Callable[[RequestError], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._inspector = inspector
        self._chats = chats
        self._preferences = preferences
        self._defaults = defaults
        self._report = report
        bar = inspector.presets
        bar.preset_chosen.connect(self.take)
        bar.save_requested.connect(self.save)
        bar.update_requested.connect(self.update)
        bar.rename_requested.connect(self.rename)
        bar.delete_requested.connect(self.delete)
        bar.default_requested.connect(self.make_default)

    @property
    def own(self) -> tuple[Preset, ...]:
        return self._preferences.now.presets

    def show(self) -> None:
        """Show the open chat's preset, and whether it is modified."""
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

    def make_default(self, name: str) -> None:
        """Sets the preset of new chats; empty for none."""
        self._preferences.change(preset=name)
        self.show()

    def keep(self, own: tuple[Preset, ...], moved: dict[str, str] | None = None) -> None:
        """Store `own` as the person's presets; `moved` maps old names to new ones, or to empty."""
        default = self._preferences.now.preset
        kept = default if presets.find(default, own) else (moved or {}).get(default, "")
        self._preferences.change(presets=own, preset=kept)
        for old, new in (moved or {}).items():
            if presets.find(old, own) is None:
                self._chats.projects.rename_preset(old, new)
        self.show()

    def _is_free(self, name: str) -> bool:
        free = all(preset.name != name for preset in self.own)
        if not free:
            self._report(RequestError(strings.preset_exists(name), strings.PRESET_EXISTS_HINT))
        return free


# A preset has a few settings and a system prompt; a longer file is something else.
_MAX_BYTES = 4 * 2**20


class PresetFiles(QObject):
    """Exports and imports presets. `bar` is the parent of the dialogs, `notice` shows the results."""

    def __init__(
        self,
        bar: PresetBar,
        notice: NoticeBar,
        kept: ChatPresets,
        report: Callable[[RequestError], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._report = report
        self._window: QWidget = bar
        self._notice = notice
        self._kept = kept
        bar.export_requested.connect(self.export)
        bar.import_requested.connect(self.import_files)

    def export(self, name: str) -> None:
        """Ask for a file and export one preset, or all of the person's if `name` is empty."""
        one = presets.find(name, self._kept.own)
        found = (one,) if one else self._kept.own
        proposed = f"{file_name(name) or strings.ALL_PRESETS_FILE}.json"
        if found:
            save_file(
                self._window,
                strings.EXPORT_TITLE,
                Path(first_folder(), proposed),
                lambda path: self._write(path, found),
                kinds=strings.export_filter("json"),
            )

    def import_files(self) -> None:
        title, kinds = strings.IMPORT_PRESETS_TITLE, strings.PRESETS_FILTER
        open_files(self._window, title, self.import_from, kinds=kinds)

    def import_from(self, paths: Sequence[Path]) -> None:
        """Import the presets of these files. A file that cannot be imported is reported; the others are."""
        taken: list[Preset] = []
        for path in paths:
            try:
                taken += _read(path)
            except StoreError as error:
                self._report(error)
        if taken:
            self._kept.keep(presets.with_imported(self._kept.own, taken))
            self._notice.show_notice(strings.imported_presets([each.name for each in taken]))

    def _write(self, path: Path, found: Sequence[Preset]) -> None:
        try:
            with replacing(path, private=False) as file:
                file.write(to_json(found))
        except OSError as error:
            reason = store_strings.not_written(str(path), error.strerror or str(error))
            self._report(TransferError(reason))
            return
        text = strings.exported_presets(path.name, len(found))
        show_written(self._notice, text, path, self._report)


def _read(path: Path) -> tuple[Preset, ...]:
    """The presets of one file. Raises `TransferError` that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TransferError(store_strings.not_read(path.name, error.strerror or str(error))) from None
    if len(data) > _MAX_BYTES:
        raise TransferError(store_strings.in_file(path.name, store_strings.NO_PRESETS))
    try:
        return from_json(data)
    except TransferError as error:
        raise TransferError(store_strings.in_file(path.name, error.message), error.hint) from None


class ChatSettings(QObject):
    """The settings that the inspector shows. Call `show()` when another chat is opened."""

    defaults_changed = Signal(int)  # the number of defaults that differ from Draftlight's

    def __init__(
        self,
        inspector: Inspector,
        chats: Chats,
        preferences: PreferencesFile,
        report: Callable[[RequestError], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._inspector = inspector
        self._chats = chats
        self._preferences = preferences
        self._base = Settings()
        inspector.settings_changed.connect(self._keep)
        inspector.defaults_changed.connect(self._take_defaults)
        self.presets = ChatPresets(inspector, chats, preferences, lambda: self.defaults, report, self)

    def show(self) -> None:
        """Show the open chat's settings, without overrides that are no longer allowed."""
        defaults, overrides = self.defaults, self._chats.open.overrides
        settings, refused = apply(defaults, overrides)
        chosen = chosen_keys(each for each in overrides if each not in refused)
        self._inspector.set_settings(settings, defaults, chosen)
        self.presets.show()

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
            self.show()

    @property
    def own_defaults(self) -> int:
        """The number of defaults that differ from Draftlight's."""
        return len(self._preferences.now.defaults)

    def reset_defaults(self) -> None:
        """Reset the person's defaults. Overrides of chats are kept."""
        self._keep_defaults(self._base, frozenset())
        self.show()

    def set_default(self, key: str, value: object) -> None:
        """Sets the default of the setting `key` for all chats without an override of it."""
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
        """The settings of a chat without overrides."""
        return self._preferences.defaults_over(self._base)

    @property
    def _chosen_defaults(self) -> frozenset[str]:
        return chosen_keys(self._preferences.now.defaults)

    def _take_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        """Make Default was chosen in a section; the keys in `chosen` were set by hand."""
        self._keep_defaults(defaults, self._chosen_defaults | chosen)

    def _keep_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        self._set_defaults(defaults, chosen)
        self._keep(self._inspector.settings)

    def _set_defaults(self, defaults: Settings, chosen: frozenset[str]) -> None:
        self._preferences.set_defaults(defaults, self._base, chosen)
        self.defaults_changed.emit(self.own_defaults)
