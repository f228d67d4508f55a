"""Inspector: the model and all settings, 304 px wide, generated from the settings' declarations.

Invariant: `settings` is always valid. Changes go through `core.settings.assign`. A refused value stays in its
field with the reason, and is tried again whenever another change succeeds (a shortest match above the longest
becomes valid once the longest is raised). Fields are created when their section opens or their drafter is
selected, on request, or while idle (`fill_rest()`). Independent of worker and store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons import Button, on_click
from app.controls.number_text import plain
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.fields.setting_field import CONTENT_PX, FieldColumn, SettingField
from app.panels import strings
from app.panels.groups import BASICS, DRAFTER_KEY, Group, differs, groups, merged, summary
from app.panels.preset_bar import PresetBar
from app.panels.section import PADDING_PX, Section
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_width,
)
from app.theme.sheet import set_ground
from app.theme.zoom import px_size
from core.errors import SettingError
from core.events import ModelDefault, ModelInfo
from core.prefill.forecast import ReadingForecast
from core.settings import FROM_MODEL, Setting, Settings, assign_all, declared, read, unused
from core.settings.declaration import find

WIDTH_PX = 304
READING_KEY = "prefill.mode"
KV_KEY = "kv.bits"
THINKING_KEY = "chat.thinking"
HEAD_DRAFTERS = frozenset({"mtp"})
_OPEN_AT_FIRST = (BASICS, "drafting")
# The choice of the drafter, and the parameters of each.
_DRAFTING_GROUPS = ("drafting", *(name.replace("-", "_") for name in find(DRAFTER_KEY).choices))
# A column takes up to 50 ms: the window handles events in between.
_REST_MS = 50
# A message with fewer new tokens is read in no time.
_LEAST_TOKENS = 64


def without_effect(info: ModelInfo) -> frozenset[str]:
    """The settings without effect on the model."""
    drafts = {*_DRAFTING_GROUPS, "auto", "gate", "decoding"}
    keys = {each.key for each in declared() if each.group in drafts and not info.speculates}
    if not info.has_head:
        keys |= {each.key for each in declared() if each.group in HEAD_DRAFTERS}
    if not info.thinks:
        keys.add(THINKING_KEY)
    return frozenset(keys)


class Inspector(QWidget):
    """`settings_changed` reports a person's change; `set_settings` emits nothing."""

    settings_changed = Signal(object)  # Settings, valid
    # Settings, valid: the defaults of new chats; frozenset[str]: the keys that were set by hand
    defaults_changed = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "panel", "left")
        self._settings = self._defaults = Settings()
        self._chosen: frozenset[str] = frozenset()
        self._model_defaults: dict[str, ModelDefault] = {}
        self._refused: dict[str, Any] = {}
        self._held: Mapping[str, str] = {}
        self._held_by_model: Mapping[str, str] = {}
        self._without_effect: frozenset[str] = frozenset()  # on the model
        self._absent: frozenset[str] = frozenset()  # drafters that the model does not support
        self._fields: dict[str, SettingField] = {}  # those that were made
        self._columns: dict[str, FieldColumn] = {}  # by their settings
        self._drafter_columns: dict[str, FieldColumn] = {}
        self._own: dict[str, OwnSettings] = {}
        set_fixed_width(self, WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(strings.SETTINGS)

        self.presets = PresetBar()
        self._facts = TextLabel("", 12, 16, wrap=True, width_px=CONTENT_PX)
        self.models_button = Button(strings.CHOOSE_ANOTHER_MODEL, small=True)
        self._model_section = Section(strings.MODEL, False)
        self._model_section.body.addWidget(self._facts)
        self._model_section.body.addWidget(self.models_button)
        self.advanced = Section(strings.ADVANCED, False, flush=True)
        self.estimate = TextLabel("", 11, 15, "text2", wrap=True, tabular=True, width_px=CONTENT_PX)
        # Always two lines high: the rows below must not move while a draft is counted.
        set_fixed_height(self.estimate, 30)
        self._groups = groups()
        self._sections = {group.name: self._build_section(group) for group in self._groups}
        self.advanced.header.toggled.connect(self._fill_shown)
        self._footer = TextLabel(strings.FOOTER)
        self._build_frame()
        self.set_model(None)
        self._show_all()

    @property
    def settings(self) -> Settings:
        """The current settings, always valid."""
        return self._settings

    @property
    def defaults(self) -> Settings:
        """The settings that sections are reset to."""
        return self._defaults

    @property
    def chosen(self) -> frozenset[str]:
        """The keys, of those with a model's default, that were set by hand: the model's default is
        not used.
        """
        return self._chosen

    def set_settings(
        self, settings: Settings, defaults: Settings | None = None, chosen: Collection[str] | None = None
    ) -> None:
        """Show `settings`, marked where they differ from `defaults`; refused changes are discarded.

        Without `defaults` and `chosen` the previous ones apply. Emits nothing.
        """
        self._settings = settings
        self._defaults = defaults or self._defaults
        self._chosen = self._chosen if chosen is None else frozenset(chosen)
        self._refused.clear()
        self._show_all()

    def change_settings(self, settings: Settings, chosen: Collection[str] | None = None) -> None:
        """Show `settings` as a change made by a person elsewhere. Emits `settings_changed`.

        Without `chosen`, changed settings count as set by hand.
        """
        if chosen is None:
            new = (key for key in FROM_MODEL if read(settings, key) != read(self._settings, key))
            chosen = self._chosen.union(new)
        self.set_settings(settings, chosen=chosen)
        self.settings_changed.emit(settings)

    def set_model(self, info: ModelInfo | None) -> None:
        """Show the loaded model; None without one."""
        self._facts.setText(strings.model_facts(info) if info else strings.NO_MODEL)
        self._model_section.set_summary(info.name if info else strings.NO_MODEL)
        self._model_defaults = {each.key: each for each in info.defaults} if info else {}
        self._without_effect = without_effect(info) if info else frozenset()
        why_full = info.kv_why_not if info else ""
        self._held_by_model = {KV_KEY: strings.KV_NOT_QUANTISED.format(why=why_full)} if why_full else {}
        self._hold_fields()
        self._absent = HEAD_DRAFTERS if info is not None and not info.has_head else frozenset()
        if DRAFTER_KEY in self._fields:
            self._fields[DRAFTER_KEY].leave_out(self._absent)
        self._show_effective()
        self._show_sources()

    def set_footer(self, text: str) -> None:
        """Set the bottom line, which says when changes apply."""
        self._footer.setText(text)

    def hold(self, reasons: Mapping[str, str]) -> None:
        """Set the settings that are off for all chats, and why."""
        self._held = reasons
        self._hold_fields()

    def field(self, key: str) -> SettingField:
        """Returns the field of the setting `key`. Raises `KeyError`."""
        self._columns[key].fill()
        return self._fields[key]

    def fill_rest(self) -> None:
        """Create the remaining fields, a column at a time, so that no section is slow to open."""
        if any(column.fill() for column in self._columns.values()):
            QTimer.singleShot(_REST_MS, self, self.fill_rest)

    def section(self, name: str) -> Section:
        """Returns the section of the group `name`; `model` is the model's."""
        return self._model_section if name == "model" else self._sections[name]

    def open_section(self, name: str) -> Section:
        """Open the section of the group `name`, and Advanced if it is inside."""
        section = self.section(name)
        if self.advanced.isAncestorOf(section):
            self.advanced.set_open(True)
        section.set_open(True)
        return section

    def show_estimate(self, will: ReadingForecast, *, exact: bool = True) -> None:
        """Show how much will be read of the message; nothing if that is refused or done in no time.

        Not `exact`: its tokens are not counted yet.
        """
        is_long = will.reads_some and will.new_tokens >= _LEAST_TOKENS
        self.estimate.setText(strings.reads(will, exact=exact) if is_long else "")

    def own_settings(self, name: str) -> OwnSettings:
        """Returns the footer of the section of the group `name`."""
        return self._own[name]

    def sizeHint(self) -> QSize:
        return px_size(QSize(WIDTH_PX, 640))

    # ---- building

    def _build_frame(self) -> None:
        """Create the scrolling sections. Nothing lies over them: a fixed footer would cut a row."""
        page = QWidget()
        sections = column_of(self.presets, self._model_section, parent=page)
        for name, section in self._sections.items():
            (sections if name == BASICS else self.advanced.body).addWidget(section)
        sections.addWidget(self.advanced)
        sections.addLayout(row_of(self._footer, margins=(PADDING_PX, 9, PADDING_PX, 9)))
        sections.addStretch(1)
        column_of(ScrollPage(page), margins=(1, 0, 0, 0), parent=self)

    def _build_section(self, group: Group) -> Section:
        section = Section(group.title, group.name in _OPEN_AT_FIRST)
        if group.settings:
            self._add_column(section, group.settings, group.title)
        if any(setting.key == READING_KEY for setting in group.settings):
            section.body.addWidget(self.estimate)
        for drafter, parameters in group.drafters.items():
            self._drafter_columns[drafter] = self._add_column(section, parameters)
        section.header.toggled.connect(self._fill_shown)
        own = OwnSettings(group.title)
        on_click(
            (own.reset_button, lambda: self._reset(group)),
            (own.default_button, lambda: self._make_default(group)),
        )
        section.body.addWidget(own)
        self._own[group.name] = own
        return section

    def _add_column(self, section: Section, settings: Sequence[Setting], title: str = "") -> FieldColumn:
        """Add a column of fields. `title` is shown above them already and needs no label."""

        def make(setting: Setting) -> SettingField:
            return self._make_field(setting, labelled=setting.title != title)

        column = FieldColumn(settings, make, section.body.spacing())
        section.body.addWidget(column)
        self._columns |= {setting.key: column for setting in settings}
        return column

    def _make_field(self, setting: Setting, labelled: bool) -> SettingField:
        field = self._fields[setting.key] = SettingField(setting, labelled, terse=True)
        field.show_value(read(self._settings, setting.key))
        field.hold(self._why_held(setting.key))
        if setting.key == DRAFTER_KEY:
            field.leave_out(self._absent)
        if setting.key in self._idle:  # shown now, it would be a separate window: it has no parent yet
            field.hide()
        field.edited.connect(self._take_edit)
        field.show_source(self._source_of(setting.key))
        return field

    def _fill_shown(self) -> None:
        """Create the fields that are visible."""
        chosen = read(self._settings, DRAFTER_KEY)
        unseen = {column for drafter, column in self._drafter_columns.items() if drafter != chosen}
        for group in self._groups:
            section = self._sections[group.name]
            if section.is_open and (self.advanced.is_open or not self.advanced.isAncestorOf(section)):
                for column in {self._columns[setting.key] for setting in group.all_settings} - unseen:
                    column.fill()

    # ---- changing

    def _take_edit(self, key: str, value: object) -> None:
        """Apply a person's edit, or show why it is refused and keep the valid value."""
        try:
            # A relative path starts in the person's home; the field shows the text as typed.
            self._settings = assign_all(self._settings, [(key, value)], relative_to=Path.home())
        except SettingError as error:
            self._refused[key] = value
            self.field(key).show_error(error.message, error.hint)
            return
        if key in FROM_MODEL:
            self._chosen |= {key}
        self._refused.pop(key, None)
        self.field(key).clear_error()
        if key == DRAFTER_KEY:
            self._show_drafter()
        self._retry_refused()
        self._show_summaries()
        self.settings_changed.emit(self._settings)

    def _reset(self, group: Group) -> None:
        """Reset one section to the defaults."""
        self._settings = merged(self._settings, self._defaults, group)
        self._chosen = self._chosen.difference(setting.key for setting in group.all_settings)
        for setting in group.all_settings:
            self._refused.pop(setting.key, None)
        self._show_all()
        self.settings_changed.emit(self._settings)

    def _make_default(self, group: Group) -> None:
        """Make one section's values the defaults of new chats."""
        self._defaults = merged(self._defaults, self._settings, group)
        chosen = self._chosen.intersection(setting.key for setting in group.all_settings)
        self._chosen -= chosen
        self._show_summaries()
        self.defaults_changed.emit(self._defaults, chosen)

    def _retry_refused(self) -> None:
        """Apply refused values that are valid now; update the other reasons."""
        for key, value in list(self._refused.items()):
            try:
                self._settings = assign_all(self._settings, [(key, value)], relative_to=Path.home())
            except SettingError as error:
                self._fields[key].show_error(error.message, error.hint)
            else:
                del self._refused[key]
                self._fields[key].clear_error()

    def _show_all(self) -> None:
        for key, field in self._fields.items():
            field.show_value(read(self._settings, key))
        self._show_drafter()
        self._show_summaries()

    def _show_drafter(self) -> None:
        """Show only the selected drafter's parameters; refused values of the others are discarded."""
        chosen = read(self._settings, DRAFTER_KEY)
        self._fill_shown()
        for drafter, column in self._drafter_columns.items():
            column.setVisible(drafter == chosen)
        hidden = {drafter.replace("-", "_") for drafter in self._drafter_columns if drafter != chosen}
        for key in [key for key in self._refused if key.partition(".")[0] in hidden]:
            del self._refused[key]
            self._fields[key].show_value(read(self._settings, key))

    def _show_summaries(self) -> None:
        self._show_effective()
        for group in self._groups:
            section = self._sections[group.name]
            own = differs(group, self._settings, self._defaults, self._chosen)
            section.set_summary(summary(group, self._settings))
            section.set_own(own)
            self._own[group.name].setVisible(own)
        self.advanced.set_own(any(s.is_own for name, s in self._sections.items() if name != BASICS))
        self._show_sources()

    def _hold_fields(self) -> None:
        for key, field in self._fields.items():
            field.hold(self._why_held(key))

    def _why_held(self, key: str) -> str:
        return self._held.get(key) or self._held_by_model.get(key, "")

    @property
    def _idle(self) -> frozenset[str]:
        """The settings that have no effect now, which are hidden."""
        return self._without_effect.union(unused(self._settings))

    def _show_effective(self) -> None:
        """Hide the fields without effect, and sections that have no others."""
        idle, drafter = self._idle, read(self._settings, DRAFTER_KEY)
        for key, field in self._fields.items():
            field.setVisible(key not in idle)
        for group in self._groups:
            shown = (*group.settings, *group.drafters.get(drafter, ()))
            self._sections[group.name].setVisible(any(each.key not in idle for each in shown))

    def _show_sources(self) -> None:
        for key in FROM_MODEL:
            if key in self._fields:
                self._fields[key].show_source(self._source_of(key))

    def _source_of(self, key: str) -> str:
        """Returns the source of a setting's value, where a model has a default for it."""
        model = self._model_defaults.get(key)
        if model is None:
            return ""
        value, default = read(self._settings, key), read(self._defaults, key)
        if key in self._chosen or value != default:
            return strings.CHOSEN_HERE.format(value=plain(model.value))
        if default != model.value:
            return strings.CHOSEN_FOR_ALL.format(value=plain(model.value))
        moved = model.given != model.value
        return strings.MODEL_DEFAULT_MOVED.format(given=model.given) if moved else strings.MODEL_DEFAULT


class OwnSettings(QWidget):
    """Shown only if there is something to reset."""

    def __init__(self, section: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reset_button = Button(strings.RESET_SECTION, "link", True)
        self.reset_button.setAccessibleName(strings.RESET_NAME.format(section=section))
        self.default_button = Button(strings.MAKE_DEFAULT, "link", True)
        self.default_button.setAccessibleName(strings.MAKE_DEFAULT_NAME.format(section=section))
        self.reset_button.setProperty("flush", True)
        row_of(self.reset_button, 4, self.default_button, STRETCH, parent=self)
