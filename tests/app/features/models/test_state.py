"""The state of models: what is heard becomes what is known; nothing that people must read is lost."""

from __future__ import annotations

from app.features.models.state import ModelsState, fail, forget_worker, handle, look_up
from core.events import (
    DownloadProgress,
    Failed,
    HubModel,
    MachineFigures,
    MachinesChecked,
    MachineSeen,
    MachineUse,
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
    state = handle(ModelsState(info=INFO), ModelList("", "/m", (TOY,), (), 100, 50))
    assert state.listed
    assert (state.loaded, state.disk_bytes, state.limit_bytes, state.free_bytes) == (TOY, 7, 100, 50)
    assert state.entry("/toy") is state.models[0]
    assert state.entry("/other") is None


def test_downloads_keep_their_places_and_go_when_they_are_done() -> None:
    other = DownloadProgress("owner/other", "running")
    state = handle(handle(ModelsState(), RUNNING), other)
    state = handle(state, DownloadProgress("owner/name", "running", 50, 100))
    assert [each.model for each in state.downloads] == ["owner/name", "owner/other"]
    assert state.downloads[0].done_bytes == 50
    for ended in ("done", "cancelled"):
        assert handle(state, DownloadProgress("owner/name", ended)).downloads == (other,)
    listed = handle(state, ModelList("", "/m", (), (other, RUNNING)))
    assert [each.model for each in listed.downloads] == ["owner/name", "owner/other"]


def test_why_a_download_failed_outlives_a_list_that_calls_it_paused() -> None:
    state = handle(ModelsState(), FAILED)
    paused = DownloadProgress("owner/name", "paused", 10, 100)
    assert handle(state, ModelList("", "/m", (), (paused,))).downloads == (FAILED,)
    assert handle(handle(state, RUNNING), ModelList("", "/m", (), (RUNNING,))).downloads == (RUNNING,)


def test_only_the_answer_to_the_last_question_counts() -> None:
    state = look_up(look_up(ModelsState(), "first"), "second")
    assert handle(state, ModelsFound("", "first", (HubModel("a/b"),))) == state
    found = handle(state, ModelsFound("", "second", (HubModel("c/d"),)))
    assert (found.finding, found.found) == (False, (HubModel("c/d"),))
    refused = Failed("", "look_up_models", "request", "download-failed", "No way.", "Try again.")
    stopped = fail(state, refused)
    assert (stopped.finding, stopped.problem, stopped.hint) == (False, "No way.", "Try again.")
    assert look_up(stopped, "").problem == ""


def test_what_went_well_takes_the_last_problem_away() -> None:
    state = ModelsState(problem="No.", hint="Try.")
    imported = handle(state, ModelImported("", TOY))
    assert (imported.problem, imported.models) == ("", (TOY,))
    assert handle(imported, ModelImported("", TOY)).models == (TOY,)


def test_a_dead_worker_pauses_what_ran() -> None:
    state = handle(ModelsState(info=INFO, loading="/toy", busy=True), RUNNING)
    state = forget_worker(state)
    assert (state.info, state.loading, state.busy) == (None, "", False)
    (stood,) = state.downloads
    assert (stood.state, stood.done_bytes, stood.bytes_per_s, stood.seconds_left) == ("paused", 10, 0.0, None)


def test_machines_at_work_are_known_until_the_worker_is_gone() -> None:
    checked = MachinesChecked("k", (MachineSeen("here", ""),), True)
    use = (MachineUse("here", 1, 2, 0.1), MachineUse("studio", 1, 2, 0.2))
    state = handle(handle(ModelsState(), checked), MachineFigures(use))
    assert (state.checked, state.machines) == (checked, use)
    gone = forget_worker(state)
    assert (gone.checked, gone.machines) == (checked, ())
