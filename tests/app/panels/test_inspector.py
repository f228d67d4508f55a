"""Inspector: settings go in and out unchanged, refused ones never apply; its groups and sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.controls.choices import Popup
from app.controls.numbers import Slider, Spin
from app.controls.scroll_bar import ScrollPage
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.fields.setting_field import SettingField
from app.panels.groups import Group, groups, summary
from app.panels.inspector import Inspector
from app.panels.section import Section
from app.panels.side_panel import SidePanel
from app.theme.theme import Theme
from core.drafting.registry import DRAFTERS
from core.events import ModelInfo
from core.settings import Setting, Settings, assign, declared, read
from tests.app.controls.windows import activate

SIMPLE = assign(Settings(), "drafting.drafter", "ngram-simple")
KEYS = [setting.key for setting in declared()]
MODEL = ModelInfo(
    name="SmolLM2 135M Instruct",
    path="/models/smollm2",
    family="6f1c",
    family_name="SmolLM2",
    architecture="llama",
    dtype="float32",
    quantisation="Q4_1",
    parameters=134_515_008,
    size_bytes=98_362_432,
    context_tokens=8192,
    vocabulary=49_152,
    layers=30,
    speculates=True,
)


@pytest.fixture
def inspector(qtbot: QtBot) -> Inspector:
    inspector = opened()
    qtbot.addWidget(inspector)
    activate(inspector, qtbot)
    return inspector


@pytest.fixture(scope="module")
def every_inspector(qapp: QApplication) -> Iterator[Inspector]:
    """One for all settings, as making it takes longer than what is tried with it."""
    inspector = opened()
    for key in KEYS:  # whatever is made in a test would be left behind by it
        inspector.field(key)
    inspector.show()
    yield inspector
    delete(inspector)


@pytest.fixture
def each(every_inspector: Inspector) -> Inspector:
    """That one, with the defaults."""
    every_inspector.set_settings(Settings())
    return every_inspector


def opened() -> Inspector:
    """All sections open and in sight."""
    inspector = Inspector()
    inspector.resize(304, 2400)
    inspector.open_section("model")
    for group in groups():
        inspector.open_section(group.name)
    return inspector


@contextmanager
def heard(inspector: Inspector) -> Iterator[list[Settings]]:
    """What it tells while the block lasts."""
    told: list[Settings] = []
    connection = inspector.settings_changed.connect(told.append)
    yield told
    inspector.settings_changed.disconnect(connection)


@pytest.fixture
def told(inspector: Inspector) -> Iterator[list[Settings]]:
    with heard(inspector) as told:
        yield told


def _spin(inspector: Inspector, key: str) -> Spin:
    return inspector.field(key).control.editor


def _type(inspector: Inspector, key: str, text: str, qtbot: QtBot) -> None:
    spin = _spin(inspector, key)
    spin.setFocus()
    spin.selectAll()
    qtbot.keyClicks(spin.lineEdit(), text)
    qtbot.keyClick(spin, Qt.Key.Key_Return)


def _another(setting: Setting) -> Any:
    """A value that is allowed and is not the default."""
    if setting.kind == "switch":
        return not setting.default
    if setting.kind == "choice":
        return next(choice for choice in setting.choices if choice != setting.default)
    if setting.kind == "text":
        return "Quote the source.\nBe brief."
    assert setting.minimum is not None
    assert setting.maximum is not None
    if setting.factor:
        return setting.default // setting.factor
    if setting.kind == "integer":
        step = int(setting.step or 1)
        return setting.default + (step if setting.default < setting.maximum else -step)
    step = setting.step or (setting.maximum - setting.minimum) / 100
    return setting.default + (step if setting.default < setting.maximum else -step)


def _with_drafter_of(setting: Setting) -> Settings:
    """The defaults, with the drafter chosen that the setting belongs to."""
    name = setting.group.replace("_", "-")
    names = next(each.choices for each in declared() if each.key == "drafting.drafter")
    return assign(Settings(), "drafting.drafter", name) if name in names else Settings()


def _operate(editor: QWidget, value: Any) -> None:
    """Set the control as a person would end up with it."""
    if isinstance(editor, Popup | TextArea | Slider | Spin):
        editor.set_value(value)
    else:
        editor.setChecked(value)


@pytest.mark.sweep
@pytest.mark.parametrize("key", KEYS)
def test_every_setting_goes_round_and_is_shown_as_given(key: str, each: Inspector) -> None:
    setting = next(one for one in declared() if one.key == key)
    value = _another(setting)
    with heard(each) as told:
        _operate(each.field(key).control.editor, value)
    meant = str(Path.home() / value) if setting.names == "file" else value
    assert read(each.settings, key) == pytest.approx(meant)
    assert told[-1] == each.settings
    back = assign(each.settings, key, setting.default)
    assert back == Settings()  # nothing else moved
    chosen = _with_drafter_of(setting)
    settings = assign(chosen, key, value)
    with heard(each) as told:
        each.set_settings(chosen)
        for _ in range(3):  # a drafter's fields are laid out when it is chosen
            QApplication.processEvents()
        before = each.field(key).control.grab().toImage()
        assert not before.isNull()
        each.set_settings(settings)
        assert each.settings == settings
        assert each.field(key).control.grab().toImage() != before
    assert told == []


def test_only_the_chosen_drafters_settings_show(inspector: Inspector, qtbot: QtBot) -> None:
    inspector.set_settings(SIMPLE)
    assert _spin(inspector, "ngram_simple.k").isVisible()
    popup = inspector.field("drafting.drafter").control.editor
    popup.setFocus()
    qtbot.keyClick(popup, Qt.Key.Key_Home)
    assert inspector.settings.drafting.drafter == "off"
    assert not _spin(inspector, "ngram_simple.k").isVisible()
    assert inspector.field("drafting.drafter").note == "Plain decoding, one token at a time."
    inspector.set_settings(SIMPLE)
    assert _spin(inspector, "ngram_simple.k").isVisible()
    inspector.set_settings(Settings())
    assert not _spin(inspector, "ngram_simple.k").isVisible()
    assert inspector.field("auto.remembered").isVisible()


def test_a_refused_value_is_explained_and_taken_over_once_it_is_right(
    inspector: Inspector, told: list[Settings], qtbot: QtBot
) -> None:
    inspector.set_settings(SIMPLE)
    told.clear()
    field = inspector.field("ngram_simple.n_min")
    _type(inspector, "ngram_simple.n_min", "9", qtbot)
    assert field.error == "The shortest match (9) is longer than the longest match (4)."
    assert next(each for each in field.findChildren(TextLabel) if each.text() == field.error).isVisible()
    assert _spin(inspector, "ngram_simple.n_min").value == 9
    assert (inspector.settings, told) == (SIMPLE, [])
    _type(inspector, "ngram_simple.n_max", "6", qtbot)
    assert field.error.endswith("longer than the longest match (6).")
    _type(inspector, "ngram_simple.n_max", "12", qtbot)
    assert field.error == ""
    assert [(s.ngram_simple.n_min, s.ngram_simple.n_max) for s in told] == [(2, 6), (9, 12)]


def test_what_was_refused_is_forgotten(inspector: Inspector, qtbot: QtBot) -> None:
    """Taken back by hand, dropped with its drafter, or replaced by other settings."""
    popup = inspector.field("drafting.drafter").control.editor
    assert isinstance(popup, Popup)

    def other_drafter() -> None:
        popup.set_value("off")
        popup.set_value("ngram-simple")

    for forget in (
        lambda: _type(inspector, "ngram_simple.n_min", "2", qtbot),
        other_drafter,
        lambda: inspector.set_settings(SIMPLE),
    ):
        inspector.set_settings(SIMPLE)
        _type(inspector, "ngram_simple.n_min", "9", qtbot)
        assert inspector.field("ngram_simple.n_min").error
        forget()
        assert inspector.field("ngram_simple.n_min").error == ""
        assert _spin(inspector, "ngram_simple.n_min").value == 2
        _type(inspector, "ngram_simple.n_max", "12", qtbot)
        assert inspector.settings == assign(SIMPLE, "ngram_simple.n_max", 12)


def test_a_text_too_long_is_refused(inspector: Inspector) -> None:
    area = inspector.field("chat.system_prompt").control.editor
    area.set_value("word " * 20_001)
    assert "not allowed" in inspector.field("chat.system_prompt").error
    assert inspector.settings.chat.system_prompt == ""


def test_a_relative_path_starts_at_the_home_folder(
    inspector: Inspector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    inspector.set_settings(assign(Settings(), "drafting.drafter", "cacheback"))
    key = "cacheback.frozen_file"
    inspector.field(key).edited.emit(key, "tables/own.safetensors")
    meant = str(tmp_path / "tables" / "own.safetensors")
    assert inspector.settings.cacheback.frozen_file == meant


def test_closed_sections_sum_up(inspector: Inspector) -> None:
    section = inspector.section("basics")
    section.set_open(False)
    slider = inspector.field("sampling.temperature").control.editor
    slider.set_value(0.7)
    assert (
        section.header.accessibleDescription()
        == "Closed, Set for this chat only, Auto · temp 0.7 · Automatic"
    )


def test_a_greedy_answer_has_no_use_for_a_seed(inspector: Inspector) -> None:
    seed, section = inspector.field("sampling.seed"), inspector.section("sampling")
    assert seed.isHidden()
    assert "seed" not in section.header.summary
    inspector.set_settings(assign(Settings(), "sampling.temperature", 0.7))
    assert seed.isVisible()


def test_the_model_is_described(inspector: Inspector) -> None:
    shown = "\n".join(label.text() for label in inspector.findChildren(TextLabel) if label.isVisible())
    assert "No model is loaded." in shown
    inspector.set_model(MODEL)
    shown = "\n".join(label.text() for label in inspector.findChildren(TextLabel) if label.isVisible())
    assert "Its context is 8,192 tokens." in shown
    for fact in ("SmolLM2 135M Instruct", "SmolLM2", "float32, from Q4_1"):
        assert fact in shown
    assert "No model is loaded." not in shown
    assert "removed from its cache exactly" in shown


def test_a_model_that_cannot_speculate_says_why(inspector: Inspector) -> None:
    unfit = ModelInfo(
        **{
            **{name: getattr(MODEL, name) for name in MODEL.__struct_fields__},
            "speculates": False,
            "why_not": "its state cannot be rolled back.",
        }
    )
    inspector.set_model(unfit)
    shown = "\n".join(label.text() for label in inspector.findChildren(TextLabel) if label.isVisible())
    assert "Drafts are not used: its state cannot be rolled back." in shown


def test_the_footer_says_when_changes_apply(inspector: Inspector) -> None:
    def shown() -> set[str]:
        return {label.text() for label in inspector.findChildren(TextLabel)}

    assert "Changes apply to the next answer." in shown()
    inspector.set_footer("Changes apply after the engine restarts.")
    assert "Changes apply after the engine restarts." in shown()
    assert "Changes apply to the next answer." not in shown()


def test_the_fields_of_a_closed_section_are_made_when_it_opens(qtbot: QtBot) -> None:
    inspector = Inspector()
    qtbot.addWidget(inspector)
    inspector.hold({"sampling.top_p": "Not today."})
    section = inspector.section("sampling")

    def made() -> list[SettingField]:
        return section.findChildren(SettingField)

    inspector.set_settings(assign(Settings(), "sampling.top_k", 7))
    assert made() == []
    section.set_open(True)
    assert made() == []  # it is in Advanced, which is closed
    inspector.advanced.set_open(True)
    assert {field.setting.key for field in made()} == {key for key in KEYS if key.startswith("sampling.")} - {
        "sampling.temperature",
        "sampling.max_tokens",
    }
    assert inspector.field("sampling.top_k").control.editor.value == 7  # type: ignore[attr-defined]
    assert inspector.field("sampling.top_p").held == "Not today."
    section.set_open(False)
    section.set_open(True)
    assert len(made()) == len(set(made()))


def test_everything_but_the_basics_is_under_advanced(qtbot: QtBot) -> None:
    inspector = Inspector()
    qtbot.addWidget(inspector)
    activate(inspector, qtbot)
    seen = {field.setting.title for field in inspector.findChildren(SettingField) if field.isVisible()}
    assert seen == {
        *("System prompt", "Drafter", "Exactness", "Temperature", "Length", "Think first", "Reading", "Keep")
    }
    assert not inspector.section("drafting").isVisible()
    inspector.advanced.set_open(True)
    assert inspector.section("drafting").isVisible()
    inspector.set_settings(assign(Settings(), "sampling.top_p", 0.5))
    assert inspector.advanced.is_own  # what holds for this chat only is marked, also while it is closed


def test_what_does_nothing_is_not_shown(inspector: Inspector) -> None:
    inspector.set_settings(assign(Settings(), "sampling.temperature", 0.8))
    fields = {
        key: inspector.field(key) for key in ("prefill.keep_pct", "sampling.top_p", "prefill.chunk_tokens")
    }
    assert all(field.isVisible() for field in fields.values())
    inspector.field("prefill.mode").edited.emit("prefill.mode", "off")
    assert fields["prefill.keep_pct"].isHidden()
    assert fields["prefill.chunk_tokens"].isVisible()
    inspector.field("sampling.temperature").edited.emit("sampling.temperature", 0.0)
    assert fields["sampling.top_p"].isHidden()
    inspector.field("prefill.mode").edited.emit("prefill.mode", "auto")
    assert fields["prefill.keep_pct"].isVisible()
    inspector.field("drafting.drafter").edited.emit("drafting.drafter", "off")
    assert inspector.section("gate").isHidden()
    assert inspector.field("decoding.exactness").isHidden()
    assert read(inspector.settings, "prefill.keep_pct") == read(Settings(), "prefill.keep_pct")


def test_what_does_nothing_on_the_model_is_not_shown(inspector: Inspector) -> None:
    inspector.set_settings(SIMPLE)
    keys = ("drafting.drafter", "decoding.exactness", "gate.mode", "ngram_simple.k")
    for thinks in (True, False):
        for speculates in (True, False):
            inspector.set_model(replace(MODEL, thinks=thinks, speculates=speculates))
            assert inspector.field("chat.thinking").isVisible() == thinks
            for key in keys:
                assert inspector.field(key).isVisible() == speculates, key
            assert inspector.field("sampling.repetition_penalty").isVisible()
    inspector.set_model(None)
    assert all(inspector.field(key).isVisible() for key in (*keys, "chat.thinking"))


def test_a_cache_that_cannot_be_quantised_is_not_offered(inspector: Inspector) -> None:
    bits = inspector.field("kv.bits")
    inspector.set_model(replace(MODEL, kv_why_not="its attention has sinks"))
    assert not bits.control.isEnabled()
    assert bits.held == "Not available for this model: its attention has sinks."
    inspector.hold({"kv.bits": "Not today."})
    assert bits.held == "Not today."
    inspector.hold({})
    assert "sinks" in bits.held
    inspector.set_model(MODEL)
    assert bits.control.isEnabled()


def test_a_setting_is_one_line(inspector: Inspector) -> None:
    inspector.set_settings(assign(Settings(), "sampling.temperature", 0.7))
    inspector.hold({"prefill.scorer": "Not today.", "prefill.mode": "Not today."})
    for key in ("prefill.scorer", "prefill.mode"):
        field = inspector.field(key)
        assert field.toolTip() == "Not today."
        assert field.control.editor.accessibleDescription() == f"{field.setting.help} Not today."
    notes = [each for each in inspector.findChildren(TextLabel) if each.text() == "Not today."]
    assert [note for note in notes if note.isVisible()] == []


@pytest.mark.sweep
@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize(("height_px", "zoom"), [(640, 1.0), (700, 1.0), (800, 1.0), (900, 1.5)])
def test_at_first_no_row_is_cut_by_the_footer(
    qtbot: QtBot, theme: Theme, height_px: int, zoom: float, thinks: bool
) -> None:
    """The height is that of the whole window. All settings and Advanced are seen at once."""
    theme.set_zoom(zoom)
    side = SidePanel()
    qtbot.addWidget(side)
    side.inspector.set_model(replace(MODEL, thinks=thinks))
    side.resize(round(304 * zoom), height_px)
    activate(side, qtbot)
    area = side.inspector.findChild(ScrollPage)
    rows = [*side.inspector.findChildren(SettingField), *side.inspector.findChildren(Section)]
    seen = [row.header if isinstance(row, Section) else row for row in rows if row.isVisible()]
    assert len(seen) == 7 + thinks + len(("model", "basics", "advanced"))
    for row in seen:
        box = QRect(row.mapTo(area.viewport(), QPoint(0, 0)), row.size())
        assert area.viewport().rect().contains(box), (row, box, area.viewport().rect())


def test_no_field_is_ever_a_window(qtbot: QtBot) -> None:
    windows: list[QObject] = []

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Show and isinstance(watched, SettingField) and watched.isWindow():
                windows.append(watched)
            return False

    watch, application = Watch(), QApplication.instance()
    assert application
    application.installEventFilter(watch)
    inspector = opened()
    qtbot.addWidget(inspector)
    inspector.show()
    application.removeEventFilter(watch)
    assert windows == []


def _by_name() -> dict[str, Group]:
    return {group.name: group for group in groups()}


def test_every_declared_setting_stands_in_exactly_one_place() -> None:
    placed = [setting.key for group in groups() for setting in group.settings]
    placed += [s.key for group in groups() for members in group.drafters.values() for s in members]
    assert sorted(placed) == sorted(setting.key for setting in declared())


def test_drafters_parameters_stand_with_the_choice_of_drafter() -> None:
    drafting = _by_name()["drafting"]
    assert {setting.group for setting in drafting.drafters["ngram-simple"]} == {"ngram_simple"}
    assert all(not group.drafters for name, group in _by_name().items() if name != "drafting")
    assert "ngram_simple" not in _by_name()


def test_summaries_are_the_telling_values() -> None:
    settings = assign(Settings(), "sampling.temperature", 0.7)
    settings = assign(settings, "sampling.top_p", 0.95)
    settings = assign(settings, "prefill.keep_pct", 30.0)
    settings = assign(settings, "drafting.drafter", "off")
    named = _by_name()
    assert summary(named["basics"], settings) == "Off · temp 0.7 · Automatic"
    assert summary(named["sampling"], settings) == "top-p 0.95 · seed 42"
    assert summary(named["drafting"], settings) == ""


def test_the_basics_are_seven_settings_and_come_first() -> None:
    """The share that a sparse prefill keeps belongs to the choice of the prefill."""
    first = groups()[0]
    keys = ["chat.system_prompt", "drafting.drafter", "decoding.exactness", "sampling.temperature"]
    keys += ["sampling.max_tokens", "chat.thinking", "prefill.mode", "prefill.keep_pct"]
    assert (first.name, [setting.key for setting in first.settings]) == ("basics", keys)
    reading = first.settings[-2]
    assert [reading.labels[choice] for choice in reading.choices] == ["Automatic", "Whole", "Quick"]


@pytest.fixture
def content() -> QLabel:
    return QLabel("inside")


@pytest.fixture
def section(qtbot: QtBot, content: QLabel) -> Section:
    section = Section("Sampling", opened=False)
    section.body.addWidget(content)
    section.set_summary("temp 0.7")
    qtbot.addWidget(section)
    section.resize(304, 200)
    section.show()
    return section


def test_clicks_and_keys_open_and_close_it(section: Section, content: QLabel, qtbot: QtBot) -> None:
    def click() -> None:
        qtbot.mouseClick(section.header, Qt.MouseButton.LeftButton)

    def key(pressed: Qt.Key) -> Callable[[], None]:
        return lambda: qtbot.keyClick(section.header, pressed)

    keys = Qt.Key
    for turn, back in (
        (click, click),
        (key(keys.Key_Space), key(keys.Key_Space)),
        (key(keys.Key_Return), key(keys.Key_Return)),
        (key(keys.Key_Right), key(keys.Key_Left)),
    ):
        turn()
        assert section.is_open
        assert content.isVisible()
        back()
        assert not section.is_open
        assert not content.isVisible()


def test_closed_it_says_what_it_holds(section: Section) -> None:
    assert section.title == section.header.accessibleName() == "Sampling"
    assert section.header.accessibleDescription() == "Closed, temp 0.7"
    section.set_open(True)
    assert section.header.accessibleDescription() == "Open"
    section.set_summary("temp 0")
    section.set_open(False)
    assert section.header.accessibleDescription() == "Closed, temp 0"


def every_capability() -> Iterator[ModelInfo]:
    for speculates, has_head, thinks in product((False, True), repeat=3):
        why_not = "" if speculates else "its cache cannot be undone"
        yield replace(MODEL, speculates=speculates, has_head=has_head, thinks=thinks, why_not=why_not)


@pytest.mark.parametrize(
    "info", [*every_capability()], ids=lambda i: f"{i.speculates}-{i.has_head}-{i.thinks}"
)
def test_only_what_works_on_the_model_is_shown(every_inspector: Inspector, info: ModelInfo) -> None:
    """A field with effect on a model without limits is hidden by limits alone."""
    limitless = replace(MODEL, speculates=True, has_head=True, thinks=True, why_not="")
    every_inspector.set_model(limitless)
    effective = {key for key in KEYS if not every_inspector.field(key).isHidden()}
    every_inspector.set_model(info)
    need_head = {spec.name for spec in DRAFTERS.values() if spec.needs_proposer == "head"}
    groups_of_head = {name.replace("-", "_") for name in need_head}
    groups_of_drafts = {name.replace("-", "_") for name in DRAFTERS} | {"auto", "gate", "decoding"}
    for key in KEYS:
        group = key.partition(".")[0]
        no_draft = not info.speculates and (group in groups_of_drafts or key == "drafting.drafter")
        no_head = not info.has_head and group in groups_of_head
        no_switch = not info.thinks and key == "chat.thinking"
        shown = key in effective and not (no_draft or no_head or no_switch)
        assert every_inspector.field(key).isHidden() != shown, key
    popup = every_inspector.field("drafting.drafter").control.editor
    offered = {popup.itemData(row) for row in range(popup.count())}
    assert offered == set(DRAFTERS) - (set() if info.has_head else need_head)


def test_a_chosen_drafter_that_the_model_lacks_stays_visible(inspector: Inspector) -> None:
    inspector.set_settings(assign(Settings(), "drafting.drafter", "mtp"))
    inspector.set_model(MODEL)
    popup = inspector.field("drafting.drafter").control.editor
    assert popup.value == "mtp"
    assert inspector.settings.drafting.drafter == "mtp"
    inspector.set_settings(Settings())
    assert popup.findData("mtp") < 0
