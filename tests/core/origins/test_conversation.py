"""Origins of answers to messages: their sources, what was read, thoughts, earlier answers."""

from __future__ import annotations

import msgspec

from core.answer_format import AnswerFormat
from core.cli.generate import origins_of
from core.cli.json_lines import Line, with_origins
from core.events import Attachment, Effective, Finished, Message, Passage, ReadingMap, Stats, Token, ToolCall
from core.origins import Conversation, Place, spans_read
from core.settings import Settings

RULES = "The tenant shall pay the rent of 1,200 euros in advance.\n\nThe deposit is 3,600 euros."
PASTED = f"Is this right? {'It was said before. ' * 20} The fee is 75 euros."


def _token(text: str, position: int) -> Token:
    return Token("cli", position, text, "normal", position + 1, position, format=AnswerFormat())


def test_documents_come_first_then_pasted_texts_then_results() -> None:
    messages = (
        Message("user", PASTED),
        Message("assistant", "Yes.", tool_calls=(ToolCall("1", "look", "{}"),)),
        Message("tool", "The fee is 80 euros.", tool_call_id="1"),
        Message("user", "And the rent?", (Attachment("rules.md", RULES),)),
    )
    given = Conversation(messages)
    assert [each.name for each in given.sources] == ["rules.md", "Pasted text", "Result of a tool"]
    facts = given.trace("It is 1,200 euros; the fee is 75 or 80 euros, not 85 euros.").facts
    assert [(each.state, each.place and each.place.source) for each in facts] == [
        ("document", 0), ("document", 1), ("document", 2), ("nowhere", None),
    ]  # fmt: skip


def test_a_fact_in_a_skipped_passage_is_told_with_its_place() -> None:
    at = RULES.index("The deposit")
    passages = (
        Passage(0, 10, True, 1.0, 0, 0, at),
        Passage(10, 20, False, 0.1, 0, at, len(RULES)),
        Passage(20, 30, False, 0.1),
    )
    assert spans_read(passages, 0, len(RULES)) == [(0, at)]
    assert spans_read(passages, 1, 100) is None
    given = Conversation((Message("user", "How much?", (Attachment("rules.md", RULES),)),))
    paid, deposit = given.trace("The rent is 1,200 and the deposit 3,600 euros.", passages).facts
    assert paid.state == "document"
    start = RULES.index("3,600")
    assert (deposit.state, deposit.place) == ("skipped", Place(0, start, start + len("3,600 euros")))


def test_a_fact_of_an_earlier_answer_keeps_its_state() -> None:
    document = Message("user", "How much?", (Attachment("rules.md", RULES),))
    answers = ("Together, 1,200 + 3,600 are 4,800 euros.", "It is 4,800 euros.")
    first = Conversation((document,)).trace(answers[0]).facts[-1]
    later = (document, Message("assistant", answers[0]), Message("user", "Again?"))
    [again] = Conversation(later).trace(answers[1]).facts
    assert first.state == again.state == "computed"
    [alone] = Conversation((document,)).trace(answers[1]).facts
    assert alone.state == "nowhere"


def test_the_last_line_has_the_origins_of_the_text_and_not_of_the_thought() -> None:
    messages = (Message("user", "How much?", (Attachment("rules.md", RULES),)),)
    texts = ["<think>Perhaps 9,999 euros.</think>", "The tenant shall pay the rent", " of 1,300 euros."]
    tokens = [_token(text, at) for at, text in enumerate(texts)]
    origins = origins_of(messages, tokens, None)
    assert origins is not None
    answer = "".join(texts)
    assert [answer[run.start : run.end] for run in origins.runs] == ["The tenant shall pay the rent of"]
    assert [(answer[fact.start : fact.end], fact.state) for fact in origins.facts] == [
        ("1,300 euros", "nowhere")
    ]
    finished = Finished("cli", "stop", Stats(), Effective("m", "bf16", "off", Settings()))
    line = msgspec.json.encode(with_origins(finished, origins))
    decoded = msgspec.json.decode(line, type=Line)
    assert msgspec.json.decode(line)["type"] == "finished"
    assert decoded == with_origins(finished, origins)
    assert origins_of((Message("user", "How much?"),), tokens, None) is None


def test_a_map_is_used_where_the_prompt_was_read_sparsely() -> None:
    at = RULES.index("The deposit")
    skipped = (Passage(10, 20, False, 0.1, 0, at, len(RULES)),)
    reading = ReadingMap("cli", "lexical", 20, 10, skipped)
    messages = (Message("user", "How much?", (Attachment("rules.md", RULES),)),)
    origins = origins_of(messages, [_token("It is 3,600 euros.", 0)], reading)
    assert origins is not None
    assert [fact.state for fact in origins.facts] == ["skipped"]
