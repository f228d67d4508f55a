"""The offer of a larger model at the first start: computed, answered once, never repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.shell.window import MainWindow
from tests.app.stage import click, play, ready, until

MACHINE = "Mac" if sys.platform == "darwin" else "computer"


@pytest.mark.parametrize(("memory_gb", "name", "size"), [("8", "Three 3B", "3.0"), ("3", "Two 2B", "2.0")])
def test_the_largest_model_that_fits_is_offered(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, memory_gb: str, name: str, size: str
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", memory_gb)

    async def scene(window: MainWindow) -> None:
        await until(lambda: window.views.offer_bar.isVisible(), what="no offer")
        text = f"This starter is tiny. {name} ({size} GB) answers far better and fits this {MACHINE}."
        assert window.views.offer_bar.text == text

    play(qapp, scene)


@pytest.mark.parametrize("accepted", [True, False])
def test_it_is_never_offered_again(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accepted: bool
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", "8")

    async def first(window: MainWindow) -> None:
        bar = window.views.offer_bar
        await until(lambda: bar.isVisible(), what="no offer")
        await click(bar.download_button if accepted else bar.later_button)
        assert not bar.isVisible()
        models = window.controller.models
        if accepted:
            await until(lambda: models.state.download("hub/Three 3B") is not None, what="no download")
        assert (window.windows.find("models") is not None) is accepted

    async def second(window: MainWindow) -> None:
        await ready(window)
        window.controller.models.watch()
        await until(lambda: window.controller.models.state.listed, what="no list")
        assert not window.views.offer_bar.isVisible()

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)


@pytest.mark.parametrize("memory_gb", ["1", "0"])
def test_nothing_is_offered_that_does_not_fit(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, memory_gb: str
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", memory_gb)

    async def scene(window: MainWindow) -> None:
        await until(lambda: window.controller.models.state.listed, what="no list")
        assert not window.views.offer_bar.isVisible()

    play(qapp, scene)
