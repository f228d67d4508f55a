"""A sparse answer of the starter model, and every place that tells its figures: they all say the same."""

from __future__ import annotations

import re

import pytest
from PySide6.QtWidgets import QApplication

from app.chat.answer import AnswerView
from app.features.race.page import RaceSide
from app.features.race.race import Recording
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.stage import last, play, ready, until

RULES = "\n\n".join(
    f"Rule {n}. The pilot of berth {n % 9} waits for the tide, whatever {n % 24} ships say."
    for n in range(1, 60)
)
ASKED = [
    ("prefill.mode", "on"),
    ("prefill.keep_pct", 30.0),
    ("sampling.max_tokens", 40),
    ("drafting.drafter", "auto"),
]


def said(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in {text!r}"
    return found[1]


def gauge(instrument: object) -> str:
    return instrument.accessibleDescription()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.slow
def test_all_figures_of_an_answer_agree(qapp: QApplication) -> None:
    estimates: set[str] = set()

    async def scene(window: MainWindow) -> None:
        await ready(window, 120)
        views = window.views
        views.inspector.set_settings(assign_all(Settings(), ASKED))
        message = Message("user", "Who waits at berth 7?", (Attachment("rules.md", RULES),))
        window.controller.asking.submit(message)
        turn_id = window.controller.chats.open.turns[-1].id
        await until(lambda: views.transcript.answer(turn_id) is not None, 60)
        answer = views.transcript.answer(turn_id)
        assert isinstance(answer, AnswerView)

        def over() -> bool:
            if answer.card is not None and answer.card._reading is not None:
                estimates.add(answer.card._estimate())
            return last(window).over

        await until(over, 240)
        await ready(window, 120)
        finished = last(window).finished
        assert finished is not None
        stats, footer = finished.stats, answer.footer.stats.text
        assert stats.skipped_tokens > 0

        # Speed, first token and drafts: footer and gauges.
        assert said(r"([\d.,]+) tok/s", footer) == said(r"^([\d.,]+) tok/s", gauge(views.strip.speed))
        assert said(r"TTFT ([\d.,]+) s", footer) == said(r"^([\d.,]+) s$", gauge(views.strip.first_token))
        assert said(r"accepted \((\d+%)\)", footer) == said(r"^(\d+%)", gauge(views.strip.acceptance))
        assert said(r"mean ([\d.]+)/step", footer) == said(
            r", ([\d.]+) per step", gauge(views.strip.acceptance)
        )

        # Tokens: footer, strip, and what arrived.
        tokens = last(window).tokens
        assert int(said(r"(\d+) tokens?(?: ·|$)", footer)) == len(tokens) == stats.tokens
        assert stats.tokens == stats.accepted + stats.bonus + stats.normal
        kinds = [token.origin for token in tokens]
        assert [kinds.count(kind) for kind in ("accepted", "bonus", "normal")] == [
            stats.accepted,
            stats.bonus,
            stats.normal,
        ]
        assert said(r"(\d+)/\d+ drafts", footer) == str(stats.accepted)
        # The last token's tooltip counts the steps that the mean is of.
        step = dict(answer.facts(len(tokens) - 1).rows)["Step"]
        assert step == f"{stats.steps} of {stats.steps}"
        assert f"{stats.tokens / stats.steps:.1f}" == said(r"mean ([\d.]+)/step", footer)

        # Prompt: what was read, cached and skipped are all of it.
        read = said(r"read ([\d,]+) of", footer)
        parts = [read, said(r"([\d,]+) skipped", footer)]
        parts += re.findall(r"([\d,]+) cached", footer)
        whole = said(r"of ([\d,]+) tokens", footer)
        assert sum(int(part.replace(",", "")) for part in parts) == int(whole.replace(",", ""))
        used = views.composer.pill.used_tokens
        assert used == stats.context_used_tokens

        # The document: the chip in the chat and the tab beside it, and the passages of the map.
        reading = last(window).reading
        assert reading is not None
        mine = [passage for passage in reading.passages if passage.source == 0]
        kept = [passage for passage in mine if passage.kept]
        share = round(
            100 * sum(each.end - each.start for each in kept) / sum(each.end - each.start for each in mine)
        )
        window.commands.show_document()
        await until(lambda: "passages" in views.document.note_label.text(), 60)
        assert f"{len(kept)} of {len(mine)} passages kept" in views.document.note_label.text()
        question = views.transcript._items[views.transcript._entries[0]]
        assert f"read {share}%" in question.chips[0].note  # type: ignore[union-attr]

        # Reading everything takes as long under the answer as it did on the card.
        offered = answer.footer._estimate.text()
        assert {words for words in estimates if "about" in words} <= {offered}
        assert f"{stats.prompt_tokens:,} tokens" in offered

        # Race tells of a recorded answer what its footer does.
        side = RaceSide("Drafted", "drafted", True)
        side.show_answer(Recording(list(tokens), finished))
        assert side.stats.text == footer
        side.deleteLater()

    play(qapp, scene, command=worker_command())
