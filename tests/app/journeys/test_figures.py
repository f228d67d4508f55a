"""All figures of one answer agree with each other, wherever they stand: real worker, tiny model."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from app.chat.reading_map import kept_passages, passages_of
from app.launch.scenario import ask
from app.session.chats.conversation import documents
from app.session.reading import totals_of
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.worker.client import worker_command
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    click,
    kill,
    last,
    ready,
    set_value,
    shown,
    stop,
    until,
)

TEXT = "\n".join(f"Rule {number}. The pilot of berth {number % 9} waits." for number in range(120))


def said(widget: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Description)


def line(window: MainWindow) -> str:
    answer = answer_view(window)
    return answer.footer.stats.accessibleName()


def agree(window: MainWindow) -> None:
    answer, strip, text = last(window), window.views.strip, line(window)
    stats = answer.finished.stats
    assert stats.tokens == len(answer.tokens) == stats.accepted + stats.bonus + stats.normal
    assert f"{stats.tokens:,} tokens" in text
    assert said(strip.speed).partition(" ")[0] in text  # “40.8 tok/s”, or “1.1 times: 40.8 instead of …”
    assert f"first token {said(strip.first_token)}" in text
    assert stats.accepted <= stats.tested
    share = re.search(r"(\d+%) of drafts accepted", text)
    assert said(strip.acceptance).startswith(share.group(1) if share else "")
    assert window.views.composer.pill.used_tokens == stats.context_used_tokens
    origins = [token.origin for token in answer.tokens]
    counted = (stats.accepted, stats.bonus, stats.normal)
    assert tuple(map(origins.count, ("accepted", "bonus", "normal"))) == counted


async def test_answers_that_were_whole_stopped_and_cut_off_by_a_crash(
    stage: Stage, toy_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    window = await stage.ready(command=worker_command(), model=str(toy_folder))
    set_value(window, "sampling.max_tokens", 60)
    await asked(window, "tide tide tide tide tide tide")
    agree(window)
    set_value(window, "sampling.max_tokens", 4000)
    ask(window, "pilot pilot pilot pilot")
    await until(lambda: len(last(window).tokens) > 20 or last(window).over)
    await stop(window)
    agree(window)
    window.controller.asking.regenerate()
    await until(lambda: len(last(window).tokens) > 5 or last(window).over)
    await stop(window)
    agree(window)

    set_value(window, "gate.mode", "always")
    ask(window, "pilot pilot pilot pilot")
    await until(lambda: [token.origin for token in last(window).tokens].count("accepted") > 3)
    window.views.composer.set_text("typed meanwhile")
    await kill(window, signal.SIGSEGV)
    written, trouble = last(window), window.views.banner.trouble
    assert written.status == "cut_off"
    assert "SIGSEGV" in trouble.text
    assert f"{len(written.tokens):,} tokens written so far" in trouble.text
    assert shown(window) == written.text
    await click(window.views.banner.remedy_button)
    await ready(window)
    assert window.views.composer.text == "typed meanwhile"
    window.views.composer.clear()
    window.controller.asking.continue_answer()
    await until(lambda: len(last(window).tokens) > len(written.tokens) + 5 or last(window).over)
    await stop(window)
    agree(window)
    await stage.close()
    assert "broke the protocol" not in caplog.text


async def test_what_is_written_on_and_what_is_read_have_one_figure_each(window: MainWindow) -> None:
    await answering(window)
    await stop(window)
    before = len(last(window).tokens)
    window.controller.asking.continue_answer()
    await until(lambda: len(last(window).tokens) > before + 6)
    assert "first token 0.10 s" in line(window)
    assert said(window.views.strip.first_token) == "0.10 s"
    await stop(window)
    assert said(window.views.strip.first_token) == "0.10 s"

    window.controller.chat.start()
    message = Message("user", "skim slowly write 4", (Attachment("rules.txt", TEXT),))
    window.controller.asking.submit(message)
    turn_id = window.controller.chats.open.turns[-1].id

    def notes() -> list[str]:
        answer = window.views.transcript.answer(turn_id)
        facts = answer.card.facts if answer and answer.card else None
        return [phase.note for phase in facts.phases] if facts else []

    await until(lambda: last(window).reading is not None and "tokens" in "".join(notes()[1:2]))
    scored, chosen = (int(re.sub(r"\D.*", "", note.replace(",", ""))) for note in notes()[:2])
    (document,) = documents(window.controller.chats.open)
    assert document.reading
    assert chosen == totals_of(document.reading).chosen
    note = window.views.document.note_label.text()
    kept = kept_passages(passages_of(document.reading, document.source))
    assert note.endswith(f"{kept:,} of {scored:,} passages kept")
    await ready(window)
    assert window.views.document.note_label.text() == note
