"""The models' words over the wire: a real worker, a real hub on this machine, real files."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import DownloadError
from core.events import (
    CancelDownload,
    DownloadModel,
    DownloadProgress,
    Failed,
    Finished,
    ImportModel,
    ListModels,
    LoadModel,
    LookUpModels,
    ModelImported,
    ModelList,
    ModelLoaded,
    ModelsFound,
    PauseDownload,
    RemoveModel,
    Token,
)
from core.machine.exactness import PROFILES, Profile, machine_parts
from core.worker.model_service import Downloads
from tests.core.toy import write_toy_model
from tests.core.worker.test_worker import Conversation, ask, worker
from tests.hub import Hub, Trouble, serving
from tests.processes import set_home

NAME = "tests/Toy-1M"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "toy"
    write_toy_model(folder, hidden_size=256, intermediate_size=1024)
    return folder


@pytest.fixture
def hub(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    set_home(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.folders = {NAME: source}
        yield hub


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 100))


async def progress(talk: Conversation, *states: str, share: float = 0.0) -> DownloadProgress:
    while True:
        heard = await talk.until(DownloadProgress)
        if heard.state in states and (not share or heard.done_bytes > share * heard.total_bytes > 0):
            return heard


async def test_listing_importing_removing(hub: Hub, toy_folder: Path) -> None:
    async with worker() as talk:
        await talk.client.send(ListModels("a"))
        listed = await talk.until(ModelList)
        assert listed.request == "a"
        assert [entry.reference for entry in listed.models] == ["starter"]
        assert listed.limit_bytes > 0 < listed.free_bytes
        await talk.client.send(ImportModel("b", str(toy_folder)))
        imported = await talk.until(ModelImported)
        assert (imported.request, imported.model.reference) == ("b", str(toy_folder))
        key, name = " ".join(map(str, ("k", *machine_parts(), 1))), imported.model.name
        PROFILES.save(Profile(key, name, streams=1, folder=str(toy_folder)))
        assert len((await talk.until(ModelList)).models) == 2
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.until(ModelLoaded)
        await talk.client.send(ListModels("settled"))
        found = [entry.exactness for entry in (await talk.until(ModelList)).models]
        assert found == ["", "0 of 15,000 rows compared; nothing is drafted before"]
        await talk.client.send(RemoveModel("c", str(toy_folder)))
        failed = await talk.until(Failed)
        assert (failed.request, failed.command, failed.code) == ("c", "remove_model", "bad-model")
        assert "in use" in failed.message
        await talk.client.send(LoadModel("/nowhere"))
        await talk.until(Failed)
        await talk.client.send(ask("r"))
        assert (await talk.until(Finished)).stats.tokens == 40
        await talk.client.send(ImportModel("d", "/nowhere"))
        assert "no folder /nowhere" in (await talk.until(Failed)).message


@pytest.mark.sweep
async def test_a_download_with_pause_resume_and_use(hub: Hub) -> None:
    hub.trouble = Trouble(bytes_per_s=2_000_000)
    async with worker() as talk:
        await talk.client.send(LookUpModels("l", "toy"))
        assert [each.model for each in (await talk.until(ModelsFound)).models] == [NAME]
        await talk.client.send(DownloadModel(NAME))
        running = await progress(talk, "running", share=0.2)
        assert running.total_bytes > 3_000_000
        assert running.bytes_per_s > 0
        await talk.client.send(PauseDownload(NAME))
        paused = await progress(talk, "paused", "done", "failed")
        assert paused.state == "paused"
        assert paused.done_bytes >= running.done_bytes
        listed = await talk.until(ModelList)
        assert [(each.model, each.state) for each in listed.downloads] == [(NAME, "paused")]
        hub.asked.clear()
        await talk.client.send(DownloadModel(NAME))
        done = await progress(talk, "done", "failed")
        assert done.done_bytes == done.total_bytes == running.total_bytes
        assert len(hub.asked) == 1
        assert hub.asked[0][1].startswith("bytes=")
        states = [each.state for each in talk.of(DownloadProgress)]
        assert states.count("paused") == states.count("done") == 1
        assert NAME in [entry.reference for entry in (await talk.until(ModelList)).models]
        await talk.client.send(LoadModel(NAME))
        assert (await talk.until(ModelLoaded)).info.name == "Toy 1M"


@pytest.mark.sweep
async def test_a_hub_that_thinks_for_long_holds_nothing_up(hub: Hub) -> None:
    hub.trouble = Trouble(bytes_per_s=1_000_000, search_takes_s=4.0)
    async with worker() as talk:
        await talk.client.send(DownloadModel(NAME))
        await progress(talk, "running", share=0.1)
        await talk.client.send(LookUpModels("l", "toy"))
        await talk.client.send(PauseDownload(NAME))
        await progress(talk, "paused")
        assert (await talk.until(ModelsFound)).request == "l"
        await talk.client.send(CancelDownload(NAME))
        await progress(talk, "cancelled")


async def test_cancel_leaves_nothing(hub: Hub, tmp_path: Path) -> None:
    hub.trouble = Trouble(bytes_per_s=1_000_000)
    async with worker() as talk:
        await talk.client.send(DownloadModel(NAME))
        await progress(talk, "running", share=0.1)
        await talk.client.send(CancelDownload(NAME))
        await progress(talk, "cancelled")
        assert (await talk.until(ModelList)).downloads == ()
        await talk.client.send(DownloadModel(NAME))
        await progress(talk, "running", share=0.1)
        await talk.client.send(PauseDownload(NAME))
        await progress(talk, "paused")
        await talk.client.send(CancelDownload(NAME))
        await progress(talk, "cancelled")
    left = [path for path in (tmp_path / "home" / "data" / "models").rglob("*") if path.suffix != ".lock"]
    assert [path.name for path in left] == [".downloads"]


@pytest.mark.sweep
async def test_a_worker_that_is_killed_takes_its_downloads_along_and_they_go_on(hub: Hub) -> None:
    hub.trouble = Trouble(bytes_per_s=2_000_000)
    async with worker() as talk:
        await talk.client.send(DownloadModel(NAME))
        await progress(talk, "running", share=0.3)
        talk.client.kill()
    async with worker() as talk:
        await talk.client.send(ListModels("a"))
        (stood,) = (await talk.until(ModelList)).downloads
        assert stood.state == "paused"
        assert 0.3 <= stood.done_bytes / stood.total_bytes < 1
        time.sleep(0.5)  # its child sees the closed pipe and lets go of the lock
        await talk.client.send(DownloadModel(NAME))
        assert (await progress(talk, "done", "failed")).state == "done"


@pytest.mark.sweep
async def test_what_fails_says_why_and_can_go_on(hub: Hub) -> None:
    async with worker() as talk:
        await talk.client.send(DownloadModel("nobody/nothing"))
        failed = await progress(talk, "failed")
        assert "no model “nobody/nothing”" in failed.problem
        assert failed.hint
        hub.trouble = Trouble(wrong_hash=True)
        await talk.client.send(DownloadModel(NAME))
        assert "checksum" in (await progress(talk, "failed")).problem
        await talk.client.send(CancelDownload(NAME))
        await progress(talk, "cancelled")
        hub.trouble = Trouble()
        await talk.client.send(DownloadModel(NAME))
        await progress(talk, "done")


@pytest.mark.parametrize("program", [[sys.executable, "-c", "input()"], ["/no/such/program"]])
def test_a_download_whose_end_fails_is_listed_as_failed(hub: Hub, tmp_path: Path, program: list[str]) -> None:
    changes: list[int] = []
    downloads = Downloads(lambda progress: None, lambda: changes.append(1), program)
    lock = tmp_path / "home" / "data" / "models" / ".downloads" / ".tests--Toy-1M.lock"
    lock.mkdir(parents=True)  # which no file can be made of
    downloads.start(NAME)
    with suppress(DownloadError):
        downloads.cancel(NAME)
    assert [(each.model, each.state) for each in downloads.states()] == [(NAME, "failed")]
    assert len(changes) == 1


@pytest.mark.sweep
async def test_a_download_does_not_wait_for_an_answer_nor_the_answer_for_it(
    hub: Hub, toy_folder: Path
) -> None:
    hub.trouble = Trouble(bytes_per_s=3_000_000)
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("r", **{"sampling.max_tokens": 400}))
        await talk.until(Token)
        await talk.client.send(ListModels("now"))
        await talk.client.send(DownloadModel(NAME))
        await talk.until(ModelList)
        await progress(talk, "done")
        heard = [type(each) for each in talk.heard]
        assert heard.index(ModelList) < (heard.index(Finished) if Finished in heard else len(heard))
