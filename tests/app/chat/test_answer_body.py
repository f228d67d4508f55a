"""An answer's text as it grows: plain while open, Markdown once closed."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.answer_body import AnswerBody
from app.chat.transcript import COLUMN_PX, Transcript
from app.theme.theme import Theme
from core.events import Origin
from tests.app.chat.watching import body_of, stream
from tests.app.chat.written import FERRY, MERGE, finished, token, tokens_of


def test_the_answer_is_kept_as_written_and_shown_as_markdown(transcript: Transcript) -> None:
    stream(transcript, FERRY)
    transcript.finish_answer("t", finished())
    assert transcript.answer_text("t") == "".join(one.text for one in tokens_of(FERRY))
    body = body_of(transcript)
    assert [box.piece.text for box in body.boxes][:2] == [
        "Under section 7.2, three conditions have to hold at the same time:",
        "Visibility, measured at the berth and at the outer marker, is at least 500 metres",
    ]
    assert [box.piece.marker for box in body.boxes] == ["", "1.", "2.", "3.", ""]


def test_an_open_block_is_plain_text_until_it_closes(transcript: Transcript) -> None:
    stream(transcript, "Some **bold")
    assert [box.piece.text for box in body_of(transcript).boxes] == ["Some **bold"]
    transcript.append_tokens("t", [token("** text.\n\nNext")])
    assert [box.piece.text for box in body_of(transcript).boxes] == ["Some bold text.", "Next"]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("written", [FERRY, MERGE])
def test_the_size_of_flushes_leaves_no_trace(
    transcript: Transcript, theme: Theme, qtbot: QtBot, written: str, size: int
) -> None:
    stream(transcript, written, size=size)
    transcript.finish_answer("t", finished())
    other = AnswerBody(theme)
    qtbot.addWidget(other)
    other.append(tokens_of(written))
    other.finish()
    body = body_of(transcript)
    assert [box.piece for box in body.boxes] == [box.piece for box in other.boxes]
    assert [box.inks.inks for box in body.boxes] == [box.inks.inks for box in other.boxes]
    assert [box.inks.runs for box in body.boxes] == [box.inks.runs for box in other.boxes]
    assert body.height_for(COLUMN_PX) == other.height_for(COLUMN_PX)


def test_bytes_of_one_character_join(transcript: Transcript) -> None:
    transcript.begin_answer("t")
    pieces: list[tuple[str, Origin, int]] = [
        ("Hi", "normal", 1),
        ("", "accepted", 2),
        ("", "accepted", 2),
        (" 🙂", "accepted", 2),
        ("日本", "bonus", 2),
    ]
    transcript.append_tokens(
        "t", [token(text, origin, step, n) for n, (text, origin, step) in enumerate(pieces)]
    )
    body = body_of(transcript)
    assert body.boxes[0].piece.text == "Hi 🙂日本"
    assert [(run.start, run.end, run.joined_right) for run in body.boxes[0].inks.runs] == [
        (3, 4, True),
        (4, 6, False),
    ]
    assert body.token_rect(1) == body.token_rect(3)
    assert body.token_rect(4) != body.token_rect(3)
