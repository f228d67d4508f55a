"""The machines' window over the fake worker: listed, checked, run over, one lost, and started anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTextEdit

from app.features.machines import strings
from app.features.machines.window import MachinesWindow
from app.features.models.window import ModelsWindow
from app.launch.scenario import ask
from app.session.strings import MACHINE
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.store.preferences import PreferencesFile
from core.events import MemoryNeed, ModelEntry, ModelInfo, ModelList
from core.settings.cluster import Cluster, Machine
from tests.app.stage import click, last, play, ready, shown, until
from tests.processes import set_home

GB = 2**30
STUDIO, MINI = Machine("studio", "10.0.0.2"), Machine("mini", "10.0.0.3")
LARGE = ModelEntry(
    "owner/Large", "Large", "download", "fake", context_tokens=8192, need=MemoryNeed(weights=30 * GB)
)


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the names of machines that are not there; all are."""
    path = tmp_path / "away"
    path.write_text("")
    monkeypatch.setenv("FAKE_AWAY", str(path))
    set_home(monkeypatch, tmp_path / "home")
    return path


async def opened(window: MainWindow, *machines: Machine) -> MachinesWindow:
    """The machines' window, from the models' window, with these machines and one model."""
    await ready(window)
    window.controller.home.preferences.change(cluster=Cluster(machines))
    window.controller.models.on_event(ModelList("", "/m", (LARGE,), (), 24 * GB, 70 * GB))
    models = window.windows.show("models")
    assert isinstance(models, ModelsWindow)
    await click(models.several)
    beside = window.windows.find("machines")
    assert isinstance(beside, MachinesWindow)
    beside.models.select(LARGE.reference)
    return beside


def edit(beside: MachinesWindow, key: str) -> QTextEdit:
    """Where the text of that setting is typed."""
    found = beside.panel.field(key).control.editor.focusProxy()
    assert isinstance(found, QTextEdit)
    return found


def states(beside: MachinesWindow) -> dict[str, str]:
    return {row.title: row.state for row in beside.machines.rows}


async def running(window: MainWindow, *machines: Machine) -> MachinesWindow:
    """The same with the model at work over them."""
    beside = await opened(window, *machines)
    await click(beside.run)
    await until(lambda: bool(window.views.strip.machines.machines))
    await ready(window)
    return beside


def test_a_machine_is_added_changed_and_removed(qapp: QApplication, away: Path, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        beside = await opened(window)
        panel = beside.panel
        assert panel.note.text() == strings.LEADER_NOTE
        assert not beside.run.isEnabled()
        await click(beside.new)
        await click(panel.add)
        assert "Address" in panel.field("machine.address").error
        QTest.keyClicks(edit(beside, "machine.address"), "10.0.0.2 ")
        await click(panel.add)
        assert window.controller.machines.cluster.machines == (Machine("machine 2", "10.0.0.2"),)
        assert beside.machines.selected == "machine 2"
        name = edit(beside, "machine.name")
        name.selectAll()
        QTest.keyClicks(name, "the studio")
        QTest.keyClicks(edit(beside, "machine.rdma"), "en2, ")
        assert window.controller.machines.cluster.machines == (
            Machine("the studio", "10.0.0.2", rdma=("en2", "")),
        )
        assert beside.machines.selected == "the studio"
        assert panel.command.value == "draftlight follow --listen 10.0.0.2"
        name.selectAll()
        QTest.keyClick(name, Qt.Key.Key_Delete)
        assert "Name" in panel.field("machine.name").error
        QTest.keyClicks(name, "studio")
        assert panel.field("machine.name").error == ""
        panel.field("cluster.deadline_s").control.edited.emit(12.0)
        assert window.controller.home.preferences.flush()
        kept = PreferencesFile(tmp_path / "kept").now.cluster
        assert kept == Cluster((Machine("studio", "10.0.0.2", rdma=("en2", "")),), deadline_s=12.0)
        await click(panel.remove)
        assert window.controller.machines.cluster.machines == ()
        assert [row.title for row in beside.machines.rows] == [strings.HERE]

    play(qapp, scene, folder=tmp_path / "kept")


async def test_two_machines_of_one_name_are_refused(window: MainWindow, away: Path) -> None:
    beside = await opened(window, STUDIO, MINI)
    beside.machines.select("mini")
    name = edit(beside, "machine.name")
    name.selectAll()
    QTest.keyClicks(name, "studio")
    assert "two machines called “studio”" in beside.panel.field("machine.name").error
    assert window.controller.machines.cluster.machines[1].name == "studi"


def test_the_secret_is_made_once_and_shown(qapp: QApplication, away: Path, tmp_path: Path) -> None:
    secret = tmp_path / "home" / "data" / "cluster-secret"

    async def scene(window: MainWindow) -> None:
        beside = await opened(window, STUDIO)
        assert beside.panel.copy_path.isHidden()
        assert states(beside)["studio"] == strings.UNKNOWN  # nobody is asked without a secret
        await click(beside.panel.make_secret)
        assert secret.stat().st_mode & 0o077 == 0
        assert str(secret) in beside.panel.secret.text()
        assert beside.panel.copy_path.value == str(secret)
        assert beside.panel.make_secret.isHidden()

    play(qapp, scene)


async def test_a_check_names_what_is_missing_and_what_fits(window: MainWindow, away: Path) -> None:
    beside = await opened(window, STUDIO, MINI)
    (model,) = beside.models.rows
    assert model.state == strings.runs_on(0, 1)
    away.write_text("mini")
    await click(beside.check)
    await until(lambda: "mini cannot be reached. See whether it is on." in beside.finding)
    assert states(beside) == {
        strings.HERE: strings.LEADS,
        "studio": strings.READY,
        "mini": strings.NOT_REACHED,
    }
    assert beside.models.rows[0].state == strings.runs_on(2, 2)
    away.write_text("")
    await click(beside.check)
    await until(lambda: "Large runs over these 3 machines: about 10.0 GB on each" in beside.finding)
    assert [row.holds for row in beside.machines.rows] == ["10.0 GB"] * 3
    assert window.controller.link.info
    assert not window.controller.link.info.machines  # nothing was loaded


async def test_a_run_over_machines_is_seen_everywhere_and_ended_alone(window: MainWindow, away: Path) -> None:
    beside = await running(window, STUDIO)
    assert "on 2 machines" in window.views.header.subtitle
    strip = window.views.strip
    strip.set_pinned(True)
    ask(window, "write 10")
    await ready(window)
    assert strip.memory.isHidden()
    assert not strip.machines.isHidden()
    assert "studio holds 15.0 of 24.0 GB, step 40 ms" in strip.machines.accessibleDescription()
    assert states(beside) == {strings.HERE: strings.AT_WORK, "studio": strings.AT_WORK}
    assert [row.step for row in beside.machines.rows] == ["40 ms"] * 2
    pid = window.worker.pid
    await click(beside.alone)
    await until(lambda: not strip.memory.isHidden())
    await ready(window)
    assert window.worker.pid == pid
    assert "machines" not in window.views.header.subtitle
    # A worker joins machines once: the next run takes another one.
    await click(beside.run)
    await until(lambda: "on 2 machines" in window.views.header.subtitle)
    assert window.worker.pid != pid
    assert window.views.banner.isHidden()


def test_a_start_loads_the_model_over_the_machines_that_it_ran_over(
    qapp: QApplication, away: Path, tmp_path: Path
) -> None:
    async def first(window: MainWindow) -> None:
        beside = await running(window, STUDIO, MINI)
        models = window.windows.find("models")
        assert isinstance(models, ModelsWindow)
        window.controller.models.on_event(
            ModelList("", "/m", (replace(LARGE, path=_loaded(window).path),), (), 24 * GB, 70 * GB)
        )
        models.choose(LARGE.reference)
        await click(models.detail.at_start)
        assert not models.detail.at_start.isEnabled()
        # Here alone is something else, which can be wanted instead.
        await click(beside.alone)
        await until(lambda: not _loaded(window).machines)
        assert models.detail.at_start.isEnabled()

    async def second(window: MainWindow) -> None:
        await ready(window)
        assert _loaded(window).machines[1:] == ("studio", "mini")
        assert window.views.banner.isHidden()

    async def third(window: MainWindow) -> None:
        await ready(window)
        assert _loaded(window).machines[1:] == ("studio",)
        assert window.views.banner.trouble
        assert window.views.banner.trouble.title == "Fake 1M runs on 2 machines now, without mini."

    play(qapp, first, folder=tmp_path / "kept")
    play(qapp, second, model="", folder=tmp_path / "kept")
    away.write_text("mini")
    play(qapp, third, model="", folder=tmp_path / "kept")


def _loaded(window: MainWindow) -> ModelInfo:
    info = window.controller.link.info
    assert info
    return info


async def test_a_run_that_is_refused_leaves_the_model_that_was_there(window: MainWindow, away: Path) -> None:
    beside = await opened(window, STUDIO)
    away.write_text("studio")
    await click(beside.run)
    await until(lambda: "studio cannot be reached." in beside.finding)
    await ready(window)
    assert window.controller.link.model == "starter"
    assert window.controller.link.cluster is None
    assert window.views.banner.trouble
    assert "Fake 1M stays loaded." in window.views.banner.trouble.text


async def lost(window: MainWindow) -> None:
    """`mini` is lost in mid-answer, and the banner says so."""
    ask(window, "lose mini 30 slowly")
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    trouble = window.views.banner.trouble
    assert trouble
    assert trouble.title == "mini was lost."
    assert "mini is gone: its connection ended. See whether it is on." in trouble.text
    assert "30 tokens written so far" in trouble.text
    assert last(window).status == "cut_off"
    assert shown(window) == last(window).text
    assert window.views.banner.remedy_button.text() == "Restart"


async def anew(window: MainWindow) -> str:
    """By the banner's button; what is said then."""
    await click(window.views.banner.remedy_button)
    await ready(window)
    banner = window.views.banner
    return f"{banner.trouble.title} {banner.trouble.text}" if banner.trouble else ""


def test_started_anew_with_the_machines_that_are_left(qapp: QApplication, away: Path) -> None:
    async def scene(window: MainWindow) -> None:
        beside = await running(window, STUDIO, MINI)
        await lost(window)
        away.write_text("mini")
        said = await anew(window)
        assert said.startswith("Fake 1M runs on 2 machines now, without mini. mini cannot be reached.")
        assert "on 2 machines" in window.views.header.subtitle
        await until(lambda: states(beside)["studio"] == strings.AT_WORK)
        assert states(beside)["mini"] == strings.NOT_REACHED
        ask(window, "write 10")
        await ready(window)
        assert last(window).status == "finished"
        assert window.views.banner.isHidden()
        # It is back: the next start takes all of them again.
        await lost_again(window, away)
        assert "on 3 machines" in window.views.header.subtitle

    async def lost_again(window: MainWindow, away: Path) -> None:
        ask(window, "lose studio 10 slowly")
        await until(lambda: window.controller.link.phase is Phase.DEAD)
        away.write_text("")
        assert await anew(window) == ""

    play(qapp, scene)


async def test_started_anew_here_alone_if_none_is_left(window: MainWindow, away: Path) -> None:
    window.views.strip.set_pinned(True)
    await running(window, STUDIO, MINI)
    await lost(window)
    away.write_text("mini\nstudio")
    said = await anew(window)
    assert said.startswith(f"Fake 1M runs on {MACHINE} alone now, without studio and mini.")
    assert not window.views.strip.memory.isHidden()
    ask(window, "write 10")
    await ready(window)
    assert last(window).status == "finished"


async def test_what_fits_nowhere_any_more_says_why_and_can_be_tried_again(
    window: MainWindow, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running(window, MINI)
    await lost(window)
    away.write_text("mini")
    monkeypatch.setenv("FAKE_ALONE", "fail")
    await click(window.views.banner.remedy_button)
    await until(lambda: window.controller.link.phase is Phase.NO_MODEL)
    trouble = window.views.banner.trouble
    assert trouble
    assert "mini could not be used" in trouble.text
    assert "It needs 30.0 GB and 24.0 GB are given." in trouble.text
    away.write_text("")
    await click(window.views.banner.remedy_button)
    await ready(window)
    assert "on 2 machines" in window.views.header.subtitle
    assert window.controller.chats.open.turns[0].answer.status == "cut_off"
