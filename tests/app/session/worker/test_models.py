"""The shelf of models: what is heard becomes what is known; nothing that people must read is lost."""

from __future__ import annotations

from app.session.worker.models import ModelsState, fail, forget_worker, hear, look_up
from core.events import (
    DownloadProgress,
    Failed,
    HubModel,
    ModelEntry,
    ModelImported,
    ModelInfo,
    ModelList,
    ModelsFound,
)

TOY = ModelEntry("/toy", "toy", "folder", "/toy", disk_bytes=7)
INFO = ModelInfo("toy", "/toy", "f", "toy", "llama", "float32", "", 1, 4, 512, 260, 2, True)
RUNNING = DownloadProgress("owner/name", "running", 10, 100, 5.0, 18.0)
FAILED = DownloadProgress("owner/name", "failed", 10, 100, problem="cut off")


def test_the_loaded_model_is_found_by_its_folder() -> None:
    shelf = hear(ModelsState(info=INFO), ModelList("", "/m", (TOY,), (), 100, 50))
    assert shelf.listed
    assert (shelf.loaded, shelf.disk_bytes, shelf.limit_bytes, shelf.free_bytes) == (TOY, 7, 100, 50)
    assert shelf.entry("/toy") is shelf.models[0]
    assert shelf.entry("/other") is None


def test_downloads_keep_their_places_and_go_when_they_are_done() -> None:
    other = DownloadProgress("owner/other", "running")
    shelf = hear(hear(ModelsState(), RUNNING), other)
    shelf = hear(shelf, DownloadProgress("owner/name", "running", 50, 100))
    assert [each.model for each in shelf.downloads] == ["owner/name", "owner/other"]
    assert shelf.downloads[0].done_bytes == 50
    for state in ("done", "cancelled"):
        assert hear(shelf, DownloadProgress("owner/name", state)).downloads == (other,)
    listed = hear(shelf, ModelList("", "/m", (), (other, RUNNING)))
    assert [each.model for each in listed.downloads] == ["owner/name", "owner/other"]


def test_why_a_download_failed_outlives_a_list_that_calls_it_paused() -> None:
    shelf = hear(ModelsState(), FAILED)
    paused = DownloadProgress("owner/name", "paused", 10, 100)
    assert hear(shelf, ModelList("", "/m", (), (paused,))).downloads == (FAILED,)
    assert hear(hear(shelf, RUNNING), ModelList("", "/m", (), (RUNNING,))).downloads == (RUNNING,)


def test_only_the_answer_to_the_last_question_counts() -> None:
    shelf = look_up(look_up(ModelsState(), "first"), "second")
    assert hear(shelf, ModelsFound("", "first", (HubModel("a/b"),))) == shelf
    found = hear(shelf, ModelsFound("", "second", (HubModel("c/d"),)))
    assert (found.finding, found.found) == (False, (HubModel("c/d"),))
    refused = Failed("", "look_up_models", "request", "download-failed", "No way.", "Try again.")
    stopped = fail(shelf, refused)
    assert (stopped.finding, stopped.problem, stopped.hint) == (False, "No way.", "Try again.")
    assert look_up(stopped, "").problem == ""


def test_what_went_well_takes_the_last_problem_away() -> None:
    shelf = ModelsState(problem="No.", hint="Try.")
    imported = hear(shelf, ModelImported("", TOY))
    assert (imported.problem, imported.models) == ("", (TOY,))
    assert hear(imported, ModelImported("", TOY)).models == (TOY,)


def test_a_dead_worker_pauses_what_ran() -> None:
    shelf = hear(ModelsState(info=INFO, loading="/toy", busy=True), RUNNING)
    shelf = forget_worker(shelf)
    assert (shelf.info, shelf.loading, shelf.busy) == (None, "", False)
    (stood,) = shelf.downloads
    assert (stood.state, stood.done_bytes, stood.bytes_per_s, stood.seconds_left) == ("paused", 10, 0.0, None)
