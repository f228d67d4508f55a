"""AnswerText: the parts of an answer of several generations, as they are drawn, copied and counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat import strings
from app.chat.answer_body import ThoughtHead
from app.chat.answer_text import AnswerText
from app.chat.tools import strings as tools_strings
from app.chat.transcript import Transcript
from app.session.chats.conversation import Answer, Turn
from core.events import Message
from tests.app.chat.written import finished, tokens_of
from tests.app.painted import noted_words
from tests.app.session.chats.drawn import TOOL, answers, returned


def _text(answer: Answer, cuts: list[int]) -> AnswerText:
    text = AnswerText(answer.tools, answer.calls)
    assert answer.finished
    text.use_format(answer.finished.effective.format)
    for start, end in zip([0, *cuts], [*cuts, len(answer.tokens)]):
        text.append(answer.tokens[start:end])
    text.finish()
    return text


@given(answers(), st.data())
def test_all_parts_are_drawn_in_order_and_only_words_are_copied(answer: Answer, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer.tokens)), max_size=6)))
    text = _text(answer, cuts)
    beside = [(piece.language, piece.text) for piece in text.pieces if piece.kind == "code"]
    result = tools_strings.result_of(TOOL, "")
    assert beside == [
        (result if part.kind == "result" else strings.CALL, part.text.strip("\n"))
        for part in answer.parts
        if part.kind in ("call", "result")
    ]
    assert text.answer_source == answer.words
    assert not any("returned" in piece.text or TOOL in piece.text for piece in text.answer_pieces)
    thoughts = [part.text for part in answer.parts if part.kind == "thought"]
    assert [text.table.text[span.start : span.end] for span in text.thoughts] == thoughts
    places = [piece.source_start for piece in text.pieces]
    assert places == sorted(places)
    assert text.pieces == _text(answer, [*range(len(answer.tokens))]).pieces


def test_a_stored_result_is_painted_with_its_name(transcript: Transcript) -> None:
    tokens = tokens_of("I look. It rains.")
    answer = Answer(
        tokens, "finished", finished(), tools=("weather",), calls=(returned("weather", "rain, 9°", 2),)
    )
    transcript.show_turns([Turn("t", Message("user", "Weather?"), answer)])
    view = transcript.answer("t")
    while not view.prepare_step():
        pass
    with noted_words() as noted:
        view.grab()
    assert "Result of weather" not in " ".join(word.text for word in noted)
    head = view.findChild(ThoughtHead)
    assert head.text() == "Used weather"
    head.click()
    with noted_words() as noted:
        view.grab()
    painted = " ".join(word.text for word in noted)
    assert "Result of weather" in painted
    assert "rain, 9°" in painted
