"""Looking for newer versions by itself: never unless it is turned on, and then once a day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.features.about.strings import NO_ADDRESS
from app.features.settings.window import SettingsWindow
from app.launch.application import Application
from app.launch.host import Host
from app.shell.window import MainWindow
from app.theme.theme import Theme
from tests.app.features.about.test_updates import Server
from tests.app.stage import play, ready, until


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


def test_off_nothing_is_ever_asked_and_on_once_a_day(
    qapp: Application, server: Server, tmp_path: Path
) -> None:
    async def first(window: MainWindow) -> None:
        host = Host(qapp, window, Theme("light"), releases=server.address)
        await ready(window)
        assert server.asked == []
        assert not window.menu_actions["update"].isVisible()
        about = host.show_about()
        assert not hasattr(about, "look")
        about.close()
        window.app_settings.set("updates.check", True)
        await until(lambda: window.menu_actions["update"].isVisible())
        assert window.menu_actions["update"].text() == "Get version 9.9.9…"
        assert len(server.asked) == 1
        # Any other change of a setting is no reason to ask again.
        window.app_settings.set("look.tint", "never")
        about = host.show_about()
        assert about.look.isEnabled()
        about.close()
        host.stop()

    async def soon_again(window: MainWindow) -> None:
        host = Host(qapp, window, Theme("light"), releases=server.address)
        await ready(window)
        assert host.updates.is_on
        assert len(server.asked) == 1
        found: list[object] = []
        host.updates.found.connect(found.append)
        # A day later, or with a clock that was set back.
        for count, then_s in enumerate((0.0, 4e9), start=1):
            window.controller.home.preferences.change(looked_for_update_s=then_s)
            host.updates.look_if_due()
            # It asks again only after the reply has arrived.
            await until(lambda count=count: len(found) == count)
            assert len(server.asked) == 1 + count
        window.app_settings.set("updates.check", False)
        window.controller.home.preferences.change(looked_for_update_s=0.0)
        host.updates.look_if_due()
        host.stop()

    play(qapp, first, folder=tmp_path)
    play(qapp, soon_again, folder=tmp_path)
    assert len(server.asked) == 3


def test_a_build_without_an_address_says_so(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        assert isinstance(qapp, Application)
        host = Host(qapp, window, Theme("light"), releases="")
        await ready(window)
        settings = window.windows.show("settings")
        assert isinstance(settings, SettingsWindow)
        field = settings.field("updates.check")
        assert field.note == NO_ADDRESS
        assert not field.control.isEnabled()
        assert not host.updates.is_on
        host.stop()

    play(qapp, scene)
