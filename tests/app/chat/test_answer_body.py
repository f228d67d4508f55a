"""An answer's text as it grows: plain while open, Markdown once closed."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.answer_body import AnswerBody
from app.chat.entry_column import COLUMN_PX
from app.chat.transcript import Transcript
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
    transcript: Transcript, qtbot: QtBot, written: str, size: int
) -> None:
    stream(transcript, written, size=size)
    transcript.finish_answer("t", finished())
    other = AnswerBody()
    qtbot.addWidget(other)
    other.append(tokens_of(written))
    other.finish()
    body = body_of(transcript)
    assert [box.piece for box in body.boxes] == [box.piece for box in other.boxes]
    assert [box.inks.inks for box in body.boxes] == [box.inks.inks for box in other.boxes]
    assert [box.inks.runs for box in body.boxes] == [box.inks.runs for box in other.boxes]
    assert body.height_for(COLUMN_PX) == other.height_for(COLUMN_PX)


STEADY = """Berths are let in this order, and **only** in this one:

1. The *ferry* with the earlier slot, as `slots.csv` says
2. Vessels in fog
   - with a pilot on board, who may be waited for a little longer than the others are
   - without one
     1. small ones
     2. **large** ones

   Both wait for the marker.
3. All others:

   ```python
   def order(rows):
       - rows
   ```
4. Nobody

What else there is
- a bullet right under its words
* another list
10 metres is no item
# A heading at once
## And one below it
More words
1. and a list
> A quote with `code` in it
> that goes on

***

- [x] done, at \\(x^2\\)
- $$
  a + b
  $$
- 2026 was a year

2. starts at two
1984 was one too"""


@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_stands_above_the_end_never_moves_while_an_answer_is_written(qtbot: QtBot, size: int) -> None:
    """And what stands at the end keeps its place while it gets longer."""
    body = AnswerBody()
    qtbot.addWidget(body)
    before: list[tuple[float, float, str, str]] = []
    for at in range(0, len(STEADY), size):
        body.append([token(STEADY[at : at + size], position=at // size)])
        now = [(box.top, box.text_left, box.piece.marker, box.piece.text) for box in body.boxes]
        assert now[: len(before) - 1] == before[:-1], STEADY[: at + size]
        if before:
            assert now[len(before) - 1][:3] == before[-1][:3], STEADY[: at + size]
        before = now
    body.finish()
    now = [(box.top, box.text_left, box.piece.marker, box.piece.text) for box in body.boxes]
    assert now == before


def test_an_open_list_item_is_shown_as_what_it_is(transcript: Transcript) -> None:
    stream(transcript, "Some:\n\n- one **bold** word\n  - and")
    boxes = body_of(transcript).boxes
    assert [(box.piece.text, box.piece.marker, box.piece.depth) for box in boxes] == [
        ("Some:", "", 0),
        ("one bold word", "•", 1),
        ("and", "•", 2),
    ]
    transcript.append_tokens("t", [token(" more\n  -")])  # nobody knows yet what that will be
    assert [box.piece.text for box in body_of(transcript).boxes][-1] == "and more"
    assert boxes[1] is body_of(transcript).boxes[1]


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
