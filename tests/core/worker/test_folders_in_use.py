"""A model's folder stays from the moment its loading is asked for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.events import Failed, LoadModel, ModelLoaded, ModelRemoved, RemoveModel, UnloadModel
from core.folders.download import NOTE
from core.folders.places import download_folder
from core.worker.model_service import FoldersInUse
from tests.core.toy import write_toy_model
from tests.core.worker.test_worker import worker
from tests.processes import set_home

NAME = "tests/Toy-1M"


def test_what_comes_and_what_is_there_is_in_use(tmp_path: Path) -> None:
    in_use = FoldersInUse()
    in_use.coming(str(tmp_path), str(tmp_path), "no/such-model", "nu\0ll")
    with in_use.removing() as folders:
        assert folders == (str(tmp_path),)
    in_use.settled(("/loaded",), str(tmp_path))
    with in_use.removing() as folders:
        assert folders == ("/loaded", str(tmp_path))
    in_use.settled((), str(tmp_path), "no/such-model", "nu\0ll")
    with in_use.removing() as folders:
        assert folders == ()


def test_loading_waits_for_a_removal() -> None:
    in_use = FoldersInUse()
    began = threading.Event()

    def load() -> None:
        in_use.loading()
        began.set()

    with in_use.removing():
        thread = threading.Thread(target=load)
        thread.start()
        assert not began.wait(0.1)
    assert began.wait(5)
    thread.join()


async def test_a_model_that_is_being_loaded_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path)
    folder = download_folder(NAME)
    write_toy_model(folder)
    (folder / NOTE).write_text("{}")
    async with worker() as talk:
        await talk.client.send(LoadModel(NAME))
        await talk.client.send(RemoveModel("r", NAME))
        refused = await talk.until(Failed)
        assert (refused.request, refused.command) == ("r", "remove_model")
        assert "in use" in refused.message
        assert talk.of(ModelLoaded) == []  # it was still being loaded
        await talk.until(ModelLoaded)
        await talk.client.send(UnloadModel())
        await talk.client.send(LoadModel("no/such-model"))
        await talk.until(Failed)
        await talk.client.send(RemoveModel("now", NAME))
        assert (await talk.until(ModelRemoved)).request == "now"
    assert not folder.exists()
