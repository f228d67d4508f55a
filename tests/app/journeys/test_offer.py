"""The first page leads with a model that can answer: offered once, downloaded, loaded, and asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.features.models import strings
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.folders.catalogue import suggestions
from core.settings import Settings, assign
from tests.app.stage import Stage, click, until
from tests.core.toy import write_toy_model
from tests.hub import Hub, serving
from tests.processes import set_home

ROOMY = [sys.executable, "-m", "tests.app.roomy_worker"]


@pytest.mark.parametrize(
    ("memory_gb", "free_gb", "name", "size"),
    [
        ("16", "100", "Nine 9B", "9.0"),
        ("3", "100", "Two 2B", "2.0"),
        ("1", "100", "", ""),
        ("8", "1", "", ""),
    ],
)
async def test_the_first_page_leads_with_the_best_model_that_memory_and_disk_have_room_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, memory_gb: str, free_gb: str, name: str, size: str
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", memory_gb)
    monkeypatch.setenv("FAKE_FREE_GB", free_gb)

    window = await stage.open()
    page = window.views.first_page
    if not name:
        await until(lambda: window.controller.models.state.listed, what="no list")
        assert page.title == "Fake 1M is ready."
        assert not page.lead_button.isVisible()
        return
    await until(lambda: page.title == strings.offer_title(name), what="no offer")
    assert f"{size} GB, about" in page.subtitle
    assert "good at" in page.subtitle
    assert page.lead_button.isVisible()
    assert page.other_button.text() == strings.USE_STARTER


@pytest.mark.parametrize("accepted", [True, False])
async def test_it_is_never_offered_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accepted: bool
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", "8")

    window = await stage.open(folder=tmp_path)
    page, models = window.views.first_page, window.controller.models
    await until(lambda: page.lead_button.isVisible(), what="no offer")
    await click(page.lead_button if accepted else page.other_button)
    if accepted:
        await until(lambda: models.state.download("hub/Three 3B") is not None, what="no download")
        assert page.title == strings.fetching_title("Three 3B")
        assert page.other_button.text() == strings.CANCEL_DOWNLOAD
    else:
        assert page.title == "Fake 1M is ready."
        assert not page.other_button.isVisible()
    assert not page.lead_button.isVisible()
    assert window.views.composer.edit.hasFocus()
    window = await stage.ready(folder=tmp_path)
    window.controller.models.watch()
    await until(lambda: window.controller.models.state.listed, what="no list")
    assert window.views.first_page.title == "Fake 1M is ready."


# ---- with the real worker and a hub on this machine


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serves a tiny model under the name of every suggestion."""
    set_home(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    write_toy_model(tmp_path / "served", hidden_size=256, intermediate_size=1024)
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.folders = {row.repository: tmp_path / "served" for row in suggestions()}
        yield hub


async def accept(window: MainWindow) -> str:
    """Accepts the offer. Returns the suggested hub name."""
    page = window.views.first_page
    await until(lambda: page.lead_button.isVisible(), what="no offer")
    name = page.title.removeprefix(strings.offer_title(""))
    window.views.inspector.set_settings(assign(Settings(), "sampling.max_tokens", 8))
    await click(page.lead_button)
    return next(row.repository for row in suggestions() if row.name == name)


def send(window: MainWindow, question: str) -> None:
    window.views.composer.set_text(question)
    window.views.composer.submit()


def stored(window: MainWindow) -> Callable[[], bool]:
    """Whether the first question is answered and no question waits."""
    chats = window.controller.chats

    def done() -> bool:
        turns = chats.open.turns
        return bool(turns) and turns[0].answer.finished is not None and not chats.open.queued

    return done


@pytest.mark.sweep
async def test_the_first_question_waits_for_the_model_and_is_answered_by_it(
    stage: Stage, hub: Hub, tmp_path: Path, toy_folder: Path
) -> None:
    hub.trouble.bytes_per_s = 1_500_000

    window = await stage.ready(command=ROOMY, folder=tmp_path / "kept", model=str(toy_folder))
    repository = await accept(window)
    send(window, "hello")
    assert window.controller.chats.open.turns == ()
    assert [each.message.content for each in window.controller.chats.open.queued] == ["hello"]
    assert window.views.queue_list.text.startswith("Sent when ")
    await until(stored(window), what="no answer")
    info = window.controller.link.info
    assert info.reference == repository
    told = window.controller.models.last_stats
    assert told[0] == info.path
    assert window.controller.home.preferences.now.model == repository
    assert len(window.controller.chats.open.turns) == 1


@pytest.mark.sweep
async def test_a_question_that_was_only_typed_stays_in_the_field(stage: Stage, hub: Hub) -> None:
    window = await stage.ready(command=ROOMY)
    repository = await accept(window)
    window.views.composer.set_text("Who signed it?")

    def loaded() -> bool:
        link = window.controller.link
        return link.phase is Phase.READY and link.info is not None and link.info.reference == repository

    await until(loaded, what="not loaded")
    assert window.views.composer.text == "Who signed it?"
    assert window.controller.chats.open.turns == ()


@pytest.mark.sweep
async def test_without_a_network_it_says_so_once_and_the_starter_answers(
    stage: Stage, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    window = await stage.ready(command=ROOMY)
    notices: list[str] = []
    bar = window.views.notice_bar
    show = bar.show_notice
    monkeypatch.setattr(
        bar, "show_notice", lambda text, *more, **named: (notices.append(text), show(text, *more, **named))
    )
    await accept(window)
    send(window, "hello")
    await until(stored(window), what="no answer")
    (notice,) = notices
    assert "connection was refused" in notice
    assert "Error" not in notice
    assert not window.views.first_page.lead_button.isVisible()
    assert window.views.banner.trouble is None


@pytest.mark.sweep
async def test_cancelling_removes_what_arrived_and_the_starter_answers(
    stage: Stage, hub: Hub, tmp_path: Path
) -> None:
    hub.trouble.bytes_per_s = 200_000

    window = await stage.ready(command=ROOMY)
    await accept(window)
    send(window, "hello")
    models = window.controller.models
    await until(lambda: any(each.done_bytes for each in models.state.downloads), what="nothing arrived")
    await click(window.views.first_page.other_button)
    await until(stored(window), what="no answer")
    assert models.state.downloads == ()
    assert window.controller.link.info.reference == "starter"
    await stage.close()
    assert not list((tmp_path / "home").rglob("*.part"))
