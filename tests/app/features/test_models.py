"""The Models window: facts of models, and the state after each event."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.controls.buttons import Button
from app.controls.text_label import TextLabel
from app.features.models import strings
from app.features.models.facts import (
    draft_of,
    drafts,
    family_colors,
    fit_facts,
    is_hub_name,
    local_path,
    memory_parts,
    names_of,
    rows,
    suggestions,
)
from app.features.models.state import ModelsState, fail, forget_worker, handle, look_up, model_to_offer
from app.features.models.window import COLUMNS, ModelsWindow
from app.shell.window import MainWindow
from core.events import (
    CancelDownload,
    DownloadModel,
    DownloadProgress,
    Failed,
    HubModel,
    MemoryNeed,
    ModelEntry,
    ModelHead,
    ModelImported,
    ModelInfo,
    ModelList,
    ModelsFound,
)
from core.settings.prefill import KvCache
from tests.app.stage import click, kill, press, ready, sent, until

GIB = 2**30


def entry(name: str, family: str, billions: float, gib: float, **more: Any) -> ModelEntry:
    reference = f"owner/{name}"
    need = MemoryNeed(weights=int(gib * GIB), growing=GIB // 8192, working=GIB)
    values: dict[str, Any] = {
        "architecture": "llama",
        "family": family,
        "family_name": family.title(),
        "parameters": int(billions * 1e9),
        "disk_bytes": int(gib * GIB),
        "bits": 4,
        "context_tokens": 8192,
        "need": need,
        **more,
    }
    return ModelEntry(reference, name, "download", f"/m/{name}", **values)


LARGE = entry("large", "alpha", 14, 8)
MIDDLE = entry("middle", "alpha", 8, 5)
SMALL = entry("small", "alpha", 1, 0.5)
OTHER = entry("other", "beta", 1, 0.5)
BROKEN = entry("broken", "alpha", 1, 0.5, problem="It lacks a file.", hint="Get it.", need=MemoryNeed())
INFO = ModelInfo("large", "/m/large", "alpha", "Alpha", "llama", "bfloat16", "4-bit", 1, 1, 8192, 1, 1, True)


def state(*models: ModelEntry, limit_gib: float = 16, **more: Any) -> ModelsState:
    return ModelsState(True, "/m", models, limit_bytes=int(limit_gib * GIB), **more)


@pytest.mark.parametrize(
    ("limit_gib", "word", "text"),
    [(16, "fits", "6.0 GB spare"), (12, "tight", "2.0 GB spare"), (9, "too-large", "1.0 GB over")],
)
def test_the_fit_is_told_in_words(limit_gib: float, word: str, text: str) -> None:
    fit = fit_facts(LARGE, 8192, int(limit_gib * GIB))
    assert fit
    assert (fit.fit, fit.text) == (word, text)
    assert strings.FIT_WORDS[fit.fit] in ("Fits", "Tight", "Too large")


def test_a_longer_context_than_the_models_own_needs_no_more() -> None:
    assert fit_facts(LARGE, 8192, 16 * GIB) == fit_facts(LARGE, 100_000, 16 * GIB)
    assert fit_facts(LARGE, 1024, 16 * GIB) != fit_facts(LARGE, 8192, 16 * GIB)
    assert fit_facts(BROKEN, 8192, 16 * GIB) is None


def test_rows_say_who_drafts_for_whom() -> None:
    found = {row.title: row for row in rows(state(LARGE, MIDDLE, SMALL, OTHER, BROKEN, info=INFO), 8192)}
    assert found["large"].drafts == "small, middle"
    assert found["small"].drafts == "Drafts for large"
    assert found["other"].drafts == strings.NO_DRAFTS
    three = [found[name] for name in ("large", "small", "broken")]
    assert [each.status for each in three] == [strings.LOADED, "", strings.UNUSABLE]
    assert [each.commands for each in three] == [(), ("load",), ()]
    assert found["broken"].note == "It lacks a file."
    assert found["large"].spoken.startswith("large, 4-bit · 8.0 GB · 8,192 context, Alpha, Fits, 6.0 GB")
    assert rows(state(LARGE, info=INFO, released=True), 8192)[1].status == "Idle"


def test_rows_are_filtered_and_one_is_on_its_way() -> None:
    known = state(LARGE, SMALL, loading="owner/small", fraction=0.5)
    _, row, _, search = rows(known, 8192, " SMA ")
    assert search.id == "SMA"
    assert (row.title, row.status, row.commands) == ("small", "Loading 50%", ())


def test_drafts_are_offered_with_the_reason_where_they_cannot() -> None:
    known = state(LARGE, MIDDLE, SMALL, OTHER, BROKEN)
    found = [(each.name, each.usable, each.why) for each in drafts(LARGE, known, 8192)]
    assert found == [
        ("small", True, strings.SAME_TOKENIZER),
        ("middle", True, strings.SLOW),
        ("other", False, strings.DIFFERENT),
        ("broken", False, "It lacks a file."),
    ]
    for other in (LARGE, entry("twin", "alpha", 1, 0.5)):
        assert [each.why for each in drafts(SMALL, state(SMALL, other), 8192)] == [strings.NOT_SMALLER]
    (tight,) = drafts(LARGE, state(LARGE, MIDDLE, limit_gib=11), 8192)
    assert (tight.usable, tight.why) == (False, strings.TOO_LARGE_BESIDE)


def test_a_quantised_cache_takes_less_memory() -> None:
    need = replace(LARGE.need, growing_8=GIB // 16384, working_quantised=GIB // 65536)
    model, kv = replace(LARGE, need=need), KvCache("8")
    parts = memory_parts(model, 4096, None, kv)
    assert [part.label for part in parts] == ["Weights", "Cache at 4,096 tokens, 8 bits", "Working space"]
    # Scores of all positions take working space in return.
    assert [part.size_bytes / GIB for part in parts] == [8, 0.25, 1 + 1 / 16]
    assert memory_parts(LARGE, 4096, None, kv) == memory_parts(LARGE, 4096)
    _, row = rows(state(model, kv=kv), 4096)
    assert row.memory == "Fits, 6.7 GB spare"
    assert rows(state(model), 4096)[1].memory != row.memory


def test_models_that_see_are_marked_and_their_eyes_take_memory_from_the_first_image_on() -> None:
    seeing = replace(LARGE, sees=True, need=replace(LARGE.need, eyes=GIB // 2))
    parts = memory_parts(seeing, 4096)
    assert parts[:-1] == memory_parts(LARGE, 4096)
    assert (parts[-1].label, parts[-1].size_bytes) == (strings.EYES, GIB // 2)
    with_draft = memory_parts(seeing, 4096, SMALL)
    assert len({(part.color, part.label) for part in with_draft if part.color == "series_purple"}) == 1
    # A text alone needs no eyes: the fit is the same.
    assert rows(state(seeing), 4096)[1].memory == rows(state(LARGE), 4096)[1].memory
    # A line of its own, which no column is too narrow for.
    told = [row.below.split("\n")[-1] for row in rows(state(seeing, SMALL), 4096) if row.id]
    assert told == [strings.SEES, "4-bit · 0.5 GB · 8,192 context"]
    assert strings.SEES in rows(state(seeing), 4096)[1].spoken
    found = (HubModel("owner/a", 3, sees=True), HubModel("owner/b", 3))
    told = [row.below for row in rows(state(asked="owner", found=found), 4096, "owner") if row.id]
    assert told == [f"downloaded 3 times\n{strings.SEES}", "downloaded 3 times"]
    (offered,) = suggestions(state(limit_gib=16, suggested=(replace(seeing, good_at="tests"),)), 4096)
    assert offered.below.endswith(f"\nTests\n{strings.SEES}")


@pytest.mark.parametrize(
    ("limit_gib", "sees", "offered"),
    [
        (32, (), "large"),
        (32, ("large", "close"), "large"),
        (32, ("close", "middle"), "close"),  # of about its size, and it sees
        (32, ("middle", "small"), "large"),  # those are far smaller
        (32, ("huge",), "large"),  # that one does not fit
        (10, ("close",), "middle"),
    ],
)
def test_the_first_pages_offer_sees_if_one_of_its_size_does(
    limit_gib: float, sees: tuple[str, ...], offered: str
) -> None:
    huge, close = entry("huge", "alpha", 15, 60), entry("close", "beta", 11, 7)
    suggested = tuple(replace(each, sees=each.name in sees) for each in (huge, LARGE, close, MIDDLE, SMALL))
    starter = replace(SMALL, source="starter")
    known = state(starter, limit_gib=limit_gib, suggested=suggested, free_bytes=200 * GIB)
    found = model_to_offer(known)
    assert found
    assert found.name == offered
    assert ("It sees images." in strings.offer_text("", 1, sees=found.sees)) is (offered in sees)


def test_the_chosen_draft_model_takes_memory_too() -> None:
    known = state(LARGE, SMALL, OTHER)
    chosen = draft_of(LARGE, known, "/m/small")
    assert chosen is known.models[1]
    assert draft_of(LARGE, known, "owner/other") is None
    assert draft_of(LARGE, known, "") is None
    parts = memory_parts(LARGE, 4096, chosen)
    assert [part.label for part in parts][1:3] == ["Cache at 4,096 tokens", "Draft model"]
    assert [part.size_bytes / GIB for part in parts] == [8, 0.5, 1.0, 1]


def test_the_best_that_fit_are_suggested() -> None:
    """`suggested` is in order of preference, not of size."""
    offered = (LARGE, MIDDLE, OTHER, SMALL)
    found = suggestions(state(limit_gib=8, suggested=offered), 8192)
    assert [each.title for each in found] == ["middle", "other", "small"]
    assert {each.commands for each in found} == {("get",)}
    assert found[-1].detail.endswith(" · 1 min at 100 Mbit/s")
    found = suggestions(state(limit_gib=8, suggested=offered), 8192, " MID")
    assert [each.title for each in found] == ["middle"]
    coming = (DownloadProgress("owner/middle", "running"),)
    found = suggestions(state(SMALL, limit_gib=8, suggested=offered, downloads=coming), 8192)
    assert [each.title for each in found] == ["other"]
    assert suggestions(state(limit_gib=1, suggested=offered), 8192) == ()


def test_families_have_colours_that_mean_nothing_else() -> None:
    colors = family_colors([LARGE, OTHER, SMALL])
    assert list(colors) == ["alpha", "beta"]
    assert not {"series_green", "series_vermilion"} & set(colors.values())
    assert len(set(colors.values())) == 2


def test_hub_names() -> None:
    assert is_hub_name("owner/name")
    assert not any(map(is_hub_name, ("name", "a/b/c", "/a", "a b/c")))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/models/Qwen3-4B", "/models/Qwen3-4B"),
        ('"/models/my model"', "/models/my model"),
        ("file:///models/my%20model", "/models/my model"),
        ("~", str(Path.home())),
        ("~/models", str(Path.home() / "models")),
        ("./models/q", str(Path.cwd() / "models" / "q")),
        ("owner/name", ""),
        ("qwen 4b", ""),
        ("", ""),
    ],
)
def test_a_path_is_no_name_for_the_hub(text: str, path: str) -> None:
    assert local_path(text) == path


def model(reference: str, name: str = "Qwen3 4B", bits: int = 4, gib: float = 2.0) -> ModelEntry:
    return ModelEntry(reference, name, "folder", reference, bits=bits, disk_bytes=int(gib * GIB))


@pytest.mark.parametrize(
    ("models", "marks"),
    [
        ([model("a/q", bits=4), model("b/q", bits=8)], ["4-bit", "8-bit"]),
        ([model("a/q", gib=2), model("b/q", gib=3)], ["2.0 GB", "3.0 GB"]),
        ([model("mlx-community/q"), model("Qwen/q")], ["mlx-community", "Qwen"]),
        ([model("/home/me/old/q"), model("/home/me/new/q")], ["old", "new"]),
        ([model("/home/me/models/mine"), model("starter")], ["mine", "starter"]),
        ([model("/home/me/models/one"), model("/home/me/models/two")], ["one", "two"]),
        ([model("/home/me/old/4/q"), model("/home/me/new/4/q")], ["old/4", "new/4"]),
        ([model("starter"), model("Qwen/q")], ["starter", "Qwen"]),
        # One difference for all of them: two of three in 4 bits are not told apart by that.
        ([model("a/q"), model("b/q"), model("c/q", bits=8)], ["a", "b", "c"]),
    ],
)
def test_models_of_one_name(models: list[ModelEntry], marks: list[str]) -> None:
    assert list(names_of(models).values()) == [f"Qwen3 4B ({mark})" for mark in marks]


def test_case_alone_tells_nothing_apart() -> None:
    assert names_of([LARGE, SMALL]) == {"owner/large": "large", "owner/small": "small"}
    assert set(names_of([model("a/q", "qwen"), model("b/q", "Qwen")]).values()) == {"qwen (a)", "Qwen (b)"}


def test_lists_say_it_too() -> None:
    listed = state(LARGE, SMALL, replace(SMALL, reference="other/small", bits=8))
    assert [row.title for row in rows(listed, 8192)][1:] == ["large", "small (4-bit)", "small (8-bit)"]
    assert {each.name for each in drafts(LARGE, listed, 8192)} == {"small (4-bit)", "small (8-bit)"}


def test_downloads_are_rows_with_what_arrived_and_what_can_be_done() -> None:
    coming = (
        DownloadProgress("a/one", "running", GIB, 4 * GIB, 2**20, 75.0),
        DownloadProgress("a/two", "paused", GIB, 4 * GIB),
        DownloadProgress("a/three", "failed", problem="No room.", hint="Delete some."),
    )
    title, *found = rows(state(downloads=coming), 8192)
    assert (title.id, title.title) == ("", strings.DOWNLOADS)
    again = ("resume", "cancel")
    assert [each.commands for each in found] == [("pause", "cancel"), again, again]
    assert (found[0].title, found[0].memory, found[0].bar) == ("one", "1.0 GB of 4.0 GB", 0.25)
    assert [each.note for each in found] == ["1.0 MB/s · 75 s left", "Paused", "No room. Delete some."]


def test_the_text_of_the_search_is_a_row() -> None:
    for text, command in (("toy", "search"), ("owner/toy", "get"), ("/models/toy", "add")):
        _, row = rows(state(), 8192, f" {text} ")
        title = strings.ask_for(text) if command == "search" else text
        assert (row.id, row.title, row.commands) == (text, title, (command,))


def test_results_of_the_hub_are_rows_but_not_those_that_are_here() -> None:
    found = (HubModel("owner/small", 1200), HubModel("owner/toy", 1200, gated=True))
    *_, row = rows(state(SMALL, asked="o", found=found), 8192, "o")
    assert (row.title, row.commands) == ("owner/toy", ("get",))
    assert row.detail == f"downloaded 1,200 times · {strings.GATED}"
    here = rows(state(SMALL, asked="o", found=found), 8192, "o")
    assert [each.id for each in here if each.id] == ["owner/small", "owner/toy"]


@pytest.mark.parametrize("wanted", ["owner/middle", "mid", "/m/small", "'/m/small/'"])
def test_no_model_is_listed_twice(wanted: str) -> None:
    folder = replace(SMALL, reference="/m/small")
    asked = {"asked": "mid", "found": (HubModel("owner/middle"),)} if wanted == "mid" else {}
    found = [row.id for row in rows(state(folder, suggested=(MIDDLE,), **asked), 8192, wanted) if row.id]
    assert found == ["/m/small" if "small" in wanted else "owner/middle"]


TOY = ModelEntry("/toy", "toy", "folder", "/toy", disk_bytes=7)
TOY_INFO = ModelInfo("toy", "/toy", "f", "toy", "llama", "float32", "", 1, 4, 512, 260, 2, True)
RUNNING = DownloadProgress("owner/name", "running", 10, 100, 5.0, 18.0)
FAILED = DownloadProgress("owner/name", "failed", 10, 100, problem="cut off")


def test_the_loaded_model_is_found_by_its_folder() -> None:
    state = handle(ModelsState(info=TOY_INFO), ModelList("", "/m", (TOY,), (), 100, 50))
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
    assert fail(state, refused, "first") == state
    stopped = fail(state, refused, "second")
    assert (stopped.finding, stopped.problem, stopped.hint) == (False, "No way.", "Try again.")
    assert look_up(stopped, "").problem == ""


def test_what_went_well_takes_the_last_problem_away() -> None:
    state = ModelsState(problem="No.", hint="Try.")
    imported = handle(state, ModelImported("", TOY))
    assert (imported.problem, imported.models) == ("", (TOY,))
    assert handle(imported, ModelImported("", TOY)).models == (TOY,)


def test_a_dead_worker_pauses_what_ran() -> None:
    state = handle(ModelsState(info=TOY_INFO, loading="/toy", busy=True), RUNNING)
    state = forget_worker(state)
    assert (state.info, state.loading, state.busy) == (None, "", False)
    (stood,) = state.downloads
    assert (stood.state, stood.done_bytes, stood.bytes_per_s, stood.seconds_left) == ("paused", 10, 0.0, None)


async def opened(window: MainWindow, *listed: Any) -> ModelsWindow:
    await ready(window)
    window.controller.models.on_list(ModelList("", "/m", *listed))
    return window.windows.show("models")


async def test_rows_have_titles_buttons_and_their_purpose(window: MainWindow) -> None:
    offered = replace(OTHER, good_at="short questions")
    coming = DownloadProgress("a/one", "running", GIB, 4 * GIB, 2**20, 75.0)
    models = await opened(window, (LARGE, SMALL), (coming,), 16 * GIB, 50 * GIB, (offered,))
    titles = [row.title for row in models.list.rows if not row.id]
    assert titles == [strings.ON_MACHINE, strings.DOWNLOADS, "Suggested for 16.0 GB of memory"]
    for each in (None, *models.list.rows):
        models.list.select(each.id if each else "")
        assert models.detail.title.text() == (each.title if each and each.id else strings.NOTHING_CHOSEN)
    row = models.list.rows[-1]
    assert row.below.splitlines() == [row.detail, "Short questions"]
    assert "Short questions" in row.spoken

    def buttons() -> dict[str, Button]:
        return {each.accessibleName(): each for each in models.list.viewport().findChildren(Button)}

    pause = buttons()["Pause one"]
    assert set(buttons()) == {"Load large", "Load small", "Pause one", "Cancel one", "Download other"}
    window.controller.models.on_progress(replace(coming, done_bytes=2 * GIB))
    await asyncio.sleep(0.05)
    assert isValid(pause)  # a click that lasts over a report of progress counts
    window.controller.models.on_progress(replace(coming, state="paused"))
    await until(lambda: set(buttons()) >= {"Resume one", "Cancel one"} and not isValid(pause))
    for name, reference in (("Download other", OTHER.reference), ("Resume one", "a/one")):
        button, commands = buttons()[name], sent(window, DownloadModel)
        cell = models.list.visualRect(models.list.index_of(reference).siblingAtColumn(len(COLUMNS) - 1))
        box = QRect(button.mapTo(models.list.viewport(), QPoint(0, 0)), button.size())
        assert cell.contains(box)
        assert abs(cell.center().y() - box.center().y()) <= 1
        await click(button)
        assert [each.model for each in commands] == [reference]


async def test_down_in_the_search_only_goes_to_the_list(window: MainWindow) -> None:
    models, commands = await opened(window, (LARGE,)), sent(window, DownloadModel)
    models.search.setText("owner/new")
    models.search.setFocus()
    await press(models, Qt.Key.Key_Down)
    await until(models.list.hasFocus)
    assert commands == []
    models.search.setFocus()
    await press(models, Qt.Key.Key_Return)
    await until(lambda: [each.model for each in commands] == ["owner/new"])
    assert models.search.hasFocus()


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["key", "row", "details"])
async def test_only_an_empty_download_is_cancelled_without_a_question(way: str, window: MainWindow) -> None:
    empty, begun = (DownloadProgress(f"a/{n}", "paused", n * GIB, 4 * GIB) for n in (0, 1))
    models = await opened(window, (LARGE,), (empty, begun))
    commands, detail = sent(window, CancelDownload), models.detail
    for each in (begun, empty):
        models.list.select(LARGE.reference if way == "row" else each.model)
        models.list.setFocus()
        buttons = (detail if way == "details" else models.list.viewport()).findChildren(Button)
        button = next(one for one in buttons if one.accessibleName() == f"Cancel {each.model[2:]}")
        await (press(models, Qt.Key.Key_Delete) if way == "key" else click(button))
        if each is begun:
            window.controller.models.on_progress(replace(begun, done_bytes=2 * GIB))
            assert (commands, detail.question.isVisible()) == ([], True)
            assert "2.0 GB of 4.0 GB" in detail.question.text()
            await click(detail.confirm)
    assert [each.model for each in commands] == ["a/1", "a/0"]


async def test_a_command_without_a_worker_says_so(window: MainWindow) -> None:
    models, controller = await opened(window, (LARGE,)), window.controller.models
    await kill(window)
    for command in (controller.download, controller.take_folder, controller.remove, controller.look_up):
        controller.dismiss()
        command("owner/name")
        assert (models.problem.text, controller.state.finding) == (strings.NO_WORKER, False)
    models.search.setText("/models/toy")
    await press(models, Qt.Key.Key_Return)
    assert models.search.text() == "/models/toy"
    window.controller.restart()
    await until(lambda: not models.problem.text)


async def test_heads_and_what_was_measured_are_said(window: MainWindow) -> None:
    found, offered = (
        ModelHead("MTP head", 400 << 20, gain=0.617),
        ModelHead("DFlash drafter", repository="z/DFlash"),
    )
    unused = ModelHead("EAGLE-3 head", 7, "The EAGLE-3 head in other is not used: another head is.")
    middle = replace(MIDDLE, exactness="no drafting on this machine")
    middle = replace(middle, readings="passages (−2.99), all of it (−3.31)")
    listed = (replace(LARGE, heads=(found, unused, offered)), middle, SMALL)
    models = await opened(window, listed)
    models.list.select(LARGE.reference)
    heads = models.detail.heads

    def lines() -> dict[str, list[str]]:
        """The words of each line, and the names of its visible buttons."""
        shown = [row for row in heads.children() if isinstance(row, QWidget) and row.findChild(Button)]
        return {
            row.findChild(TextLabel).text(): [
                each.accessibleName() for each in row.findChildren(Button) if each.isVisible()
            ]
            for row in shown
        }

    await asyncio.sleep(0.05)
    assert lines() == {
        f"MTP head, 0.4 GB. Adds 0.62 tokens per step on {strings.MACHINE}.": [],
        unused.problem: [],
        "DFlash drafter": ["Download z/DFlash"],
    }
    commands = sent(window, DownloadModel)
    await click(next(each for each in heads.findChildren(Button) if each.isVisible()))
    assert [each.model for each in commands] == ["z/DFlash"]
    coming = (DownloadProgress("z/DFlash", "running", 0, 1),)
    window.controller.models.on_list(ModelList("", "/m", listed, coming))
    assert "DFlash drafter" not in lines()
    models.list.select(MIDDLE.reference)
    assert not heads.isVisible()
    assert models.detail.exactness.text() == (
        "With “Exact”: no drafting on this machine."
        " Best reading of long texts: passages (−2.99), all of it (−3.31); in nats per token of"
        " right answers."
    )
    models.list.select(SMALL.reference)
    assert not models.detail.exactness.isVisible()
