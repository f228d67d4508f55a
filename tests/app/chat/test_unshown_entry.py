"""Entries whose widgets fail: they say so, can be copied, and the rest of the chat is there."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.answer_footer import AnswerFooter
from app.chat.entry_column import UnshownEntry
from app.chat.transcript import Transcript
from app.chat.user_message import MessageChip
from app.richtext import strings
from app.session.chats.conversation import Answer as Words
from app.session.chats.conversation import Turn
from core.events import Attachment, Finished, Message, Stats
from tests.app.chat.watching import picture, readable
from tests.app.chat.written import finished, tokens_of

SAID = strings.UNSHOWN


def turns() -> list[Turn]:
    attached = (Attachment("handbook.txt", "words"),)
    return [
        Turn("0", Message("user", "one"), Words(tuple(tokens_of("First.")), "finished", finished())),
        Turn(
            "1", Message("user", "two", attached), Words(tuple(tokens_of("Second.")), "finished", finished())
        ),
    ]


def fail_once(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
    before: Callable[..., object] = getattr(kind, name)
    calls = 0

    def failing(self: object, *given: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OverflowError("cannot convert float infinity to integer")
        return before(self, *given, **more)

    monkeypatch.setattr(kind, name, failing)


@pytest.mark.parametrize(
    ("kind", "name", "texts", "source"),
    [
        (MessageChip, "show_passages", ["one", "First.", SAID, "Second."], "two"),
        (AnswerFooter, "finish", ["one", SAID, "two", "Second."], "First."),
    ],
)
def test_an_entry_that_fails_says_so(
    transcript: Transcript,
    monkeypatch: pytest.MonkeyPatch,
    unshown: list[str],
    kind: type,
    name: str,
    texts: list[str],
    source: str,
) -> None:
    fail_once(monkeypatch, kind, name)
    transcript.show_turns(turns())
    picture(transcript)
    assert readable(transcript) == texts
    stand_in = transcript.findChild(UnshownEntry)
    assert stand_in.isVisible()
    assert stand_in.height() > 20
    stand_in.copy_button.click()
    assert QGuiApplication.clipboard().text() == source
    assert ["OverflowError" in line for line in unshown] == [True]
    unshown.clear()


def test_an_entry_that_cannot_be_measured_says_so(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch, unshown: list[str], qtbot: QtBot
) -> None:
    transcript.show_turns(turns())

    def failing(self: AnswerView, width: int) -> int:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(AnswerView, "height_for", failing)
    transcript.show_turns(turns())
    picture(transcript)
    assert readable(transcript) == ["one", SAID, "two", SAID]
    transcript.resize(500, 600)
    picture(transcript)
    assert len(unshown) == 2
    unshown.clear()


def test_an_answer_under_way_whose_widget_fails_goes_on_unseen(
    transcript: Transcript, monkeypatch: pytest.MonkeyPatch, unshown: list[str]
) -> None:
    def failing(*given: object) -> None:
        raise ValueError("no such figure")

    monkeypatch.setattr(AnswerFooter, "__init__", failing)
    transcript.begin_answer("t")
    transcript.append_tokens("t", tokens_of("Words."))
    transcript.finish_answer("t", finished())
    assert readable(transcript) == [SAID]
    assert transcript.answer_text("t") == "Words."
    transcript.clear()
    assert len(unshown) == 1
    unshown.clear()


_HUGE = 2**63 - 1
_HOSTILE = [
    Stats(prefill_s=1e308, read_tokens=1, prompt_tokens=10**6),
    Stats(prefill_s=5e-324, read_tokens=_HUGE, prompt_tokens=_HUGE),
    Stats(ttft_s=math.nan, tokens_per_s=math.nan, mean_per_step=math.nan, prefill_s=math.nan),
    Stats(
        ttft_s=math.inf, tokens_per_s=-math.inf, mean_per_step=math.inf, prefill_s=math.inf, score_s=math.inf
    ),
    Stats(ttft_s=-1.0, tokens_per_s=-1.0, tokens=-1, tested=-1, accepted=_HUGE, prompt_tokens=-1),
]


@pytest.mark.parametrize("stats", _HOSTILE)
def test_figures_of_any_kind_leave_the_chat_readable(transcript: Transcript, stats: Stats) -> None:
    end = finished()
    hostile = Finished(
        "r", "length", stats, replace(end.effective, drafter="", reading="sparse", scorer="no such", gate=".")
    )
    message = Message("user", "", (Attachment("", "", -1), Attachment("\n\u202e" * 500, "", _HUGE)))
    tokens = tuple(
        replace(token, step=-_HUGE, time_s=math.nan, draft_length=-1) for token in tokens_of("It is.")
    )
    turn = Turn("h", message, Words(tokens, "finished", hostile))
    transcript.show_turns([turn, *turns()])
    picture(transcript)
    answer = transcript.answer("h")
    assert answer.body.readable_text == "It is."
    answer.facts(0)
    transcript.show_turns(turns())
    assert readable(transcript) == ["one", "First.", "two", "Second."]
