"""The models' window over the real worker: loaded, refused, downloaded, paused, imported, removed.

The hub is the tests' own; models are tiny and random. Everything goes through keys and buttons.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from app.features.models import strings
from app.features.models.facts import ModelRow
from app.features.models.window import ModelsWindow
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import Settings, assign, read
from core.worker.client import worker_command
from tests.app.stage import Stage, asked, click, kill, last, press, ready, set_value, until
from tests.core.toy import write_toy_model
from tests.hub import Hub, Trouble, serving
from tests.processes import set_home

NAME = "tests/Toy-1M"
CONTROL_SHIFT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`large` and `small` have the same tokenizer, `other` another one, `served` is on the hub."""
    place = tmp_path_factory.mktemp("models")
    write_toy_model(place / "large", hidden_size=64)
    write_toy_model(place / "small", num_hidden_layers=1)
    write_toy_model(place / "other")
    write_toy_model(place / "served", hidden_size=256, intermediate_size=1024)
    tokenizer = json.loads((place / "other" / "tokenizer.json").read_text())
    ids = tokenizer["model"]["vocab"]
    ids["a"], ids["b"] = ids["b"], ids["a"]
    (place / "other" / "tokenizer.json").write_text(json.dumps(tokenizer))
    return place


@pytest.fixture
def home(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, in which `large`, `small` and `other` were imported."""
    set_home(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("large", "small", "other"):
        shutil.copytree(folders / name, tmp_path / name)
    models = tmp_path / "home" / "data" / "models"
    models.mkdir(parents=True)
    paths = [str(tmp_path / name) for name in ("large", "small", "other")]
    (models / "imported.json").write_text(json.dumps(paths))
    return tmp_path


@pytest.fixture
def hub(folders: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.folders = {NAME: folders / "served"}
        yield hub


async def opened(window: MainWindow) -> ModelsWindow:
    await press(window, Qt.Key.Key_M, CONTROL_SHIFT)
    models = window.windows.find("models")
    await until(lambda: bool(models.list.rows), what="no list")
    return models


def shown(models: ModelsWindow, row_id: object) -> ModelRow:
    return models.row(str(row_id)) or ModelRow("", "not listed")


def arrived(models: ModelsWindow) -> float:
    """The share of the download that has arrived; 0 without one."""
    bar = shown(models, NAME).bar
    return bar if isinstance(bar, float) else 0.0


async def act(models: ModelsWindow, row_id: object, button: str = "act") -> None:
    models.list.select(str(row_id))
    await click(getattr(models.detail, button))


@pytest.mark.sweep
async def test_another_model_is_loaded_and_answers(stage: Stage, home: Path) -> None:
    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    assert [each.id for each in models.list.rows[:5]] == [
        "",
        "starter",
        *(str(home / name) for name in ("large", "other", "small")),
    ]
    assert models.chosen == str(home / "large")
    assert shown(models, home / "large").status == strings.LOADED
    assert not models.detail.act.isVisible()
    fit = shown(models, home / "small").bar
    assert fit.fit == "fits"
    assert shown(models, home / "large").drafts == "small"
    assert shown(models, home / "other").drafts == strings.NO_DRAFTS
    models.list.select(str(home / "small"))
    models.list.setFocus()
    await press(models, Qt.Key.Key_Return)
    await until(lambda: shown(models, home / "small").status == strings.LOADED)
    await ready(window)
    assert window.controller.link.info.name == "small"
    assert shown(models, home / "large").commands == ("load",)
    assert "small" in window.views.header.subtitle
    window.views.inspector.set_settings(assign(Settings(), "sampling.max_tokens", 8))
    await asked(window, "hello")
    assert last(window).finished
    models.list.select(str(home / "small"))
    assert "tok/s on your last answer" in models.detail.summary.text()


async def header_menu(window: MainWindow) -> QMenu:
    await click(window.views.header.model_button)

    def shown() -> list[QMenu]:
        return [menu for menu in window.findChildren(QMenu) if menu.isVisible()]

    await until(lambda: bool(shown()), what="no menu")
    return shown()[0]


async def test_an_impatient_person_gets_one_menu(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", "16")
    window = await stage.open()
    await until(lambda: window.controller.models.alive)
    for _ in range(2):
        window.views.header.model_button.click()
    (await header_menu(window)).close()
    assert not any(menu.isVisible() for menu in window.findChildren(QMenu))


def labels(menu: QMenu) -> dict[str, QAction]:
    return {action.text(): action for action in menu.actions() if not action.isSeparator()}


async def test_the_header_s_menu_says_what_fits_switches_and_keeps_the_chat(stage: Stage, home: Path) -> None:
    """Models of one name are told apart."""
    (home / "other" / "config.json").write_text("{}")
    shutil.copytree(home / "small", home / "archive" / "small")
    imported = home / "home" / "data" / "models" / "imported.json"
    imported.write_text(json.dumps([*json.loads(imported.read_text()), str(home / "archive" / "small")]))
    small, archived = (f"small ({folder})   ·   fits" for folder in (home.name, "archive"))

    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    set_value(window, "sampling.max_tokens", 8)
    await asked(window, "hello")
    window.views.composer.set_text("and then")
    turns = window.controller.chats.open.turns

    menu = await header_menu(window)
    rows = labels(menu)
    assert rows["large   ·   fits"].isChecked()
    assert rows[small].isEnabled()
    assert archived in rows
    broken = rows["other   ·   cannot be loaded"]
    assert not broken.isEnabled()
    assert "has no model_type" in broken.toolTip()
    assert menu.toolTipsVisible()
    menu.close()

    menu = await header_menu(window)
    labels(menu)[small].trigger()
    menu.close()
    await until(lambda: "small" in window.views.header.subtitle)
    await ready(window)
    chat = window.controller.chats.open
    assert chat.turns == turns
    assert window.views.composer.text == "and then"
    window.views.composer.submit()
    await until(lambda: len(window.controller.chats.open.turns) == 2)
    await ready(window)
    finished = last(window).finished
    assert finished.effective.model == "small"


@pytest.mark.sweep
async def test_draft_models_of_the_family_are_offered_and_draft(stage: Stage, home: Path) -> None:
    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    by_name = {choice.facts.name: choice for choice in models.detail.choices.choices}
    assert set(by_name) == {"small", "other", "SmolLM2 135M"}
    assert by_name["small"].isEnabled()
    assert not by_name["other"].isEnabled()
    assert by_name["other"].facts.why == strings.DIFFERENT
    await click(by_name["other"])
    assert models.detail.choices.choices[0] is by_name["small"]
    await click(by_name["small"])
    inspector = window.views.inspector
    assert read(inspector.settings, "draft_model.model") == str(home / "small")
    assert by_name["small"].isChecked()
    assert strings.DRAFT_MODEL in [part.label for part in models.detail.memory.parts]
    settings = assign(inspector.settings, "drafting.drafter", "draft-model")
    settings = assign(settings, "gate.mode", "always")
    inspector.change_settings(assign(settings, "sampling.max_tokens", 24))
    await asked(window, "hello")
    finished = last(window).finished
    assert finished.effective.drafter == "draft-model"
    assert finished.stats.draft_us_median > 0
    await until(lambda: not window.controller.link.busy)
    models.list.select(str(home / "small"))
    await click(models.detail.remove)
    await click(models.detail.confirm)
    await until(lambda: bool(models.problem.text))
    assert "small is in use" in models.problem.text
    models.list.select(str(home / "large"))
    await click(models.detail.choices.choices[0])
    assert read(inspector.settings, "draft_model.model") == ""


@pytest.mark.sweep
async def test_a_model_that_became_incomplete_is_refused_and_the_one_in_use_stays(
    stage: Stage, home: Path
) -> None:
    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    weights = home / "small" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:3000])
    await act(models, home / "small")
    await until(lambda: bool(models.problem.text))
    assert "is cut off: it has 3,000 of" in models.problem.text
    assert "large stays loaded." in window.views.banner.trouble.text
    await ready(window)
    assert shown(models, home / "large").status == strings.LOADED
    window.views.inspector.set_settings(assign(Settings(), "sampling.max_tokens", 8))
    await asked(window, "hello")
    assert last(window).finished
    await click(models.problem.close_button)
    assert not models.problem.isVisible()
    window.controller.models.refresh()
    await until(lambda: shown(models, home / "small").status == strings.UNUSABLE)
    assert shown(models, home / "small").commands == ()
    window.controller.restart()
    await ready(window)
    assert window.controller.link.info.name == "large"


@pytest.mark.sweep
async def test_found_on_the_hub_downloaded_paused_continued_and_loaded(
    stage: Stage, home: Path, hub: Hub
) -> None:
    hub.trouble = Trouble(bytes_per_s=2_000_000)

    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    models.search.setText("toy")
    assert shown(models, "toy").title == strings.ask_for("toy")
    await act(models, "toy")
    await until(lambda: shown(models, NAME).commands == ("get",), what="nothing found")
    assert not [path for path, _ in hub.asked if "toy" not in path and path != "/api/models"]
    await act(models, NAME)
    await until(lambda: arrived(models) > 0.1)
    assert "MB/s" in shown(models, NAME).note
    await act(models, NAME)
    await until(lambda: shown(models, NAME).note == strings.PAUSED)
    stood = arrived(models)
    await act(models, NAME)
    await until(lambda: arrived(models) > stood)
    await until(lambda: shown(models, NAME).commands == ("load",), what="never there")
    models.search.clear()
    await act(models, NAME)
    await until(lambda: shown(models, NAME).status == strings.LOADED)
    assert window.controller.link.info.name == "Toy 1M"


@pytest.mark.sweep
async def test_a_model_that_is_not_here_is_downloaded_with_progress_and_then_loaded(
    stage: Stage, home: Path, hub: Hub
) -> None:
    hub.trouble = Trouble(bytes_per_s=2_000_000)

    window = await stage.open(command=worker_command(), model=NAME)
    banner = window.views.banner
    await until(lambda: window.controller.link.phase is Phase.NO_MODEL, what="loading does not end")
    assert hub.asked == []  # nothing is downloaded that nobody agreed to
    assert banner.trouble.title == f"{NAME} is not on this computer."
    await click(banner.remedy_button)
    assert banner.isHidden()
    models = window.windows.find("models")
    await until(lambda: arrived(models) > 0.1, what="no download")
    models.list.select(NAME)
    assert models.detail.act.text() == strings.COMMANDS["pause"]
    await ready(window)
    assert window.controller.link.info.name == "Toy 1M"


@pytest.mark.sweep
async def test_a_cancelled_download_leaves_nothing_and_a_failure_is_told(
    stage: Stage, home: Path, hub: Hub
) -> None:
    hub.trouble = Trouble(bytes_per_s=1_000_000)

    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    models.search.setText(NAME)
    await act(models, NAME)
    await until(lambda: arrived(models) > 0.05)
    await act(models, NAME, "cancel")
    await click(models.detail.confirm)
    await until(lambda: shown(models, NAME).commands == ("get",))
    models.search.setText("nobody/nothing")
    await act(models, "nobody/nothing")
    await until(lambda: "no model “nobody/nothing” on the hub" in shown(models, "nobody/nothing").note)
    await act(models, "nobody/nothing", "cancel")
    await until(lambda: shown(models, "nobody/nothing").commands == ("get",))
    await stage.close()
    left = {path.name for path in (home / "home" / "data" / "models").iterdir()}
    assert left == {"imported.json", ".downloads"}


@pytest.mark.sweep
async def test_a_killed_worker_leaves_the_download_paused_and_it_goes_on(
    stage: Stage, home: Path, hub: Hub
) -> None:
    hub.trouble = Trouble(bytes_per_s=1_500_000)

    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    window.controller.models.download(NAME)
    await until(lambda: arrived(models) > 0.1)
    models.list.select(NAME)
    await kill(window)
    assert shown(models, NAME).note == strings.PAUSED
    assert not models.detail.act.isEnabled()
    assert shown(models, home / "small").commands == ("load",)  # another model may be one that loads
    window.controller.restart()
    await ready(window)
    await until(models.detail.act.isEnabled)
    hub.trouble = Trouble()
    await act(models, NAME)
    await until(lambda: shown(models, NAME).commands == ("load",))


@pytest.mark.sweep
async def test_importing_and_removing_asks_first(stage: Stage, home: Path, folders: Path, hub: Hub) -> None:
    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    (home / "empty").mkdir()
    window.controller.models.take_folder(str(home / "empty"))
    await until(lambda: bool(models.problem.text))
    assert "config.json is missing" in models.problem.text
    window.controller.models.take_folder(str(folders / "served"))
    await until(lambda: models.chosen == str(folders / "served"))
    assert not models.problem.isVisible()
    detail = models.detail
    assert detail.title.text() == "served"
    await click(detail.remove)
    assert detail.question.isVisible()
    assert detail.question.text() == strings.ask_forget("served")
    await click(detail.keep)
    assert not detail.question.isVisible()
    # Whatever gets the focus of a hidden button, the model that was asked about is the one.
    assert models.chosen == str(folders / "served")
    await click(detail.remove)
    assert detail.confirm.isVisible()
    await click(detail.confirm)
    await until(lambda: models.row(str(folders / "served")) is None)
    assert (folders / "served" / "config.json").is_file()
    models.list.select(str(home / "large"))
    assert not detail.remove.isEnabled()
    # A path in the search is added, and sent nowhere.
    for path in (str(folders / "served"), str(folders / "nowhere")):
        models.search.setText(path)
        assert shown(models, path).commands == ("add",)
        models.search.setFocus()
        await press(models, Qt.Key.Key_Return)
    await until(lambda: models.chosen == str(folders / "served"))
    await until(lambda: "nowhere" in models.problem.text)
    assert not hub.asked


@pytest.mark.sweep
async def test_models_of_other_apps_are_used_where_they_are(
    stage: Stage, home: Path, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home / "person"))
    lm_studio = home / "person" / ".lmstudio" / "models" / "owner" / "Served-4bit"
    shutil.copytree(folders / "served", lm_studio)
    shutil.copytree(folders / "small", home / "mine" / "owner" / "Small-8bit")

    window = await stage.ready(command=worker_command(), model=str(home / "large"))
    models = await opened(window)
    assert strings.OTHER_APP in shown(models, "owner/Served-4bit").detail
    await act(models, "owner/Served-4bit")
    await until(lambda: shown(models, "owner/Served-4bit").status == strings.LOADED)
    await ready(window)
    assert window.controller.link.info.path == str(lm_studio)
    models.list.select("owner/Served-4bit")
    assert not models.detail.remove.isVisible()
    # A folder of several models is listed, and can be taken off the list again.
    window.controller.models.take_folder(str(home / "mine"))
    found = home / "mine" / "owner" / "Small-8bit"
    await until(lambda: models.chosen == str(found))
    await click(models.detail.remove)
    assert models.detail.question.text() == strings.ask_forget_all(str(home / "mine"))
    await click(models.detail.confirm)
    await until(lambda: models.row(str(found)) is None)
    assert (found / "config.json").is_file()


@pytest.mark.sweep
async def test_the_model_at_the_start_is_remembered(stage: Stage, home: Path) -> None:
    window = await stage.ready(command=worker_command(), model=str(home / "large"), folder=home / "kept")
    models = await opened(window)
    models.list.select(str(home / "small"))
    await click(models.detail.at_start)
    assert models.detail.at_start.text() == strings.IS_AT_START
    window = await stage.ready(command=worker_command(), model="", folder=home / "kept")
    assert window.controller.link.info.name == "small"
    await click(window.views.sidebar.models_button)
    models = window.windows.find("models")
    await until(lambda: bool(models.list.rows))
    await click(models.detail.unload)
    await until(lambda: window.controller.link.phase is Phase.NO_MODEL)
    await until(lambda: shown(models, home / "small").commands == ("load",))
    assert "No model" in window.views.header.subtitle
