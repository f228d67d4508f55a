"""Which sentences of an answer a document supports."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.encoder.store import Embedder
from core.engine.engine import Engine
from core.errors import EncoderUnavailableError
from core.events import AnswerCited, Attachment, Event, Finished, Generate, Grammar, Message, Token
from core.prefill.citations import Document, answer_sentences, read_documents, search, sentences
from core.prefill.layout import unknown_layout
from core.settings import Settings, assign
from tests.tuning.citations import figures, found_by, judged

TEXT = (
    "# Harbour\n\nThe berth fee is 18 crowns per metre and night. Dogs are kept on a lead in the whole area, "
    "and\nthe showers close at 22:30. Waste oil is accepted behind the fuel pier on weekdays.\n\n"
    "- Ropes left on the quay are removed on Mondays\n- The lighthouse on Grey Skerry was built in 1887\n"
)


def cited(
    answer: str, texts: tuple[str, ...] = (TEXT,), unread: range = range(0), begun: int = 0
) -> list[str]:
    """The cited sentences' ends and what supports them, by words alone."""
    documents = {}
    for number, text in enumerate(texts):
        read = np.ones(len(text), bool)
        read[unread.start : unread.stop] = False
        documents[number] = Document(text, read)
    found = found_by(search(answer, AnswerFormat(), documents, None, begun))
    return [
        f"{answer[: begun + each.end].split()[-1]} > {texts[each.source][each.first_char : each.last_char]}"
        for each in found
    ]


FEE = "The berth fee is 18 crowns per metre and night."


def test_each_sentence_gets_what_supports_it() -> None:
    answer = (
        f"Here is an overview:\n\n- **{FEE}**\n- Waste oil is accepted on weekdays behind the fuel pier.\n"
    )
    assert cited(answer) == [
        f"night.** > {FEE}",
        "pier. > Waste oil is accepted behind the fuel pier on weekdays.",
    ]


def test_a_support_can_be_in_any_document() -> None:
    assert cited(FEE, ("Nothing of it is in here.", TEXT)) == [f"night. > {FEE}"]


@pytest.mark.parametrize(
    "answer",
    [
        "The berth fee is 19 crowns per metre and night.",  # another figure
        "The berth fee is not 18 crowns per metre and night.",  # a denial
        f"```\n{FEE}\n```",
        f"| fee |\n|---|\n| {FEE} |",
        f"## {FEE}",
        FEE.replace(".", "?"),
        FEE.replace(".", ":"),
        f"<think>{FEE}</think>\n\nYes.",
        "I hope that this overview helps with your plans for the summer.",
        "",
    ],
)
def test_nothing_else_is_cited(answer: str) -> None:
    assert cited(answer) == []


STATION = (
    "The pump delivers 1.5 litres per minute, and the tank holds 12,500 litres. The alarm sounds at −5 °C. "
    "Approx. 40 people work in the main building, e.g. technicians and cooks. "
    "Dr. Ellen Moss leads the laboratory since March 2019. The canteen serves eighteen meals in the morning. "
    "The generator is serviced twice a year. The red valve opens at 3 bar. The blue valve opens at 5 bar. "
    "We will never give up the northern site.\n"
)


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ("The pump delivers 1.50 litres per minute.", 1),
        ("The pump delivers 15 litres per minute.", 0),
        ("The tank holds 12 500 litres.", 1),
        ("The tank holds 12.5 litres.", 0),
        ("The alarm sounds at -5 °C.", 1),
        ("The alarm sounds at 5 °C.", 0),
        ("The canteen serves 18 meals in the morning.", 1),
        ("The canteen serves nineteen meals in the morning.", 0),
        ("The generator is serviced 2 times a year.", 1),
        ("The generator is serviced three times a year.", 0),
        ("Dr. Peter Moss leads the laboratory since March 2019.", 0),
        ("Dr. Ellen Moss leads the laboratory since May 2019.", 0),
        ("The blue valve opens at 5 bar.", 1),
        ("The blue valve opens at 3 bar.", 0),
        ("We will give up the northern site.", 0),
    ],
)
def test_changed_figures_names_and_denials(answer: str, count: int) -> None:
    """Also with the vectors, which are nearly equal."""
    for embedder in (None, Embedder()):
        documents = {0: Document(STATION, np.ones(len(STATION), bool))}
        found = found_by(search(answer, AnswerFormat(), documents, embedder))
        assert len(found) == count


@pytest.mark.parametrize(
    ("text", "supported", "changed"),
    [
        ("停泊费为每晚十八克朗。狗必须拴绳。", "停泊费是每晚十八克朗。", "停泊费不是每晚十八克朗。"),
        ("灯塔建于一八八七年。", "灯塔建于一八八七年。", "灯塔建于一八八九年。"),
        ("北区不对外开放。", "北区不对外开放。", "北区对外开放。"),
        ("停泊料は一泊十八クローネです。", "停泊料は一泊十八クローネです。", "一泊十九クローネです。"),
        ("北側の区域には入れません。", "北側の区域には入れません。", "北側の区域には入れます。"),
        ("북쪽 구역은 개방되지 않습니다.", "북쪽 구역은 개방되지 않습니다.", "북쪽 구역은 개방됩니다."),
        ("رسوم الرسو ١٨ كرونة لكل ليلة.", "رسوم الرسو 18 كرونة لكل ليلة.", "رسوم الرسو 19 كرونة لكل ليلة."),
        ("لا يسمح بدخول المنطقة.", "لا يسمح بدخول المنطقة.", "يسمح بدخول المنطقة."),
        ("يجب ربط الكلاب هنا.", "يجب ربط الكلاب هنا.", "هل يجب ربط الكلاب هنا؟"),
        ("Вход в зону не разрешён.", "Вход в зону не разрешён.", "Вход в зону разрешён."),
        ("Das ist nicht ohne Helm offen.", "Das ist nicht ohne Helm offen.", "Das ist ohne Helm offen."),
        ("यह स्तंभ १८८७ में बना था। वह शुल्क 18 है।", "यह स्तंभ 1887 में बना था।", "यह स्तंभ 1889 में बना था।"),
    ],
)  # fmt: skip
def test_other_languages(text: str, supported: str, changed: str) -> None:
    assert len(cited(supported, (text,))) == 1
    assert cited(changed, (text,)) == []


def test_abbreviations_do_not_end_a_sentence() -> None:
    whole = "See Fig. 3 and No. 12, e.g. approx. 40 m wide, tools etc. as listed by Dr. Moss, cf. the annex."
    text = f"{whole} नया वाक्य। هل هذا؟ Tools etc. The end."
    found = [text[first:last] for first, last in sentences(text)]
    assert found == [whole, "नया वाक्य।", "هل هذا؟", "Tools etc.", "The end."]


def test_only_what_was_read_supports() -> None:
    at = TEXT.index(FEE)
    assert cited(FEE, unread=range(at + len(FEE), len(TEXT))) == [f"night. > {FEE}"]
    assert cited(FEE, unread=range(at, at + len(FEE))) == []


def test_a_continued_answer_is_cited_from_where_its_part_begins() -> None:
    before = f"<think>{FEE} And so on</think>{FEE} Waste oil is accepted"
    answer = f"{before} behind the fuel pier on weekdays."
    assert cited(answer, begun=len(before)) == [
        "weekdays. > Waste oil is accepted behind the fuel pier on weekdays."
    ]


def test_scripts_without_spaces() -> None:
    text = "停泊费为每晚十八克朗。狗必须拴绳。灯塔建于一八八七年。"
    assert cited("停泊费是每晚十八克朗。希望对你有帮助。", (text,)) == [
        "停泊费是每晚十八克朗。 > 停泊费为每晚十八克朗。"
    ]


@given(st.text(alphabet="ab .!?\n-*`|#1;。“”<think>/", max_size=200))
def test_sentences_are_in_order_and_hold_all_words(text: str) -> None:
    ranges = list(sentences(text))
    assert all(first < last for first, last in ranges)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))
    assert re.sub(r"\s", "", "".join(text[a:b] for a, b in ranges)) == re.sub(r"\s", "", text)
    assert all(text[a:b].strip() for a, b in answer_sentences(text, AnswerFormat()))


def test_a_long_text_is_searched_quickly_and_a_hostile_one_ends() -> None:
    long = (
        "".join(f"Item {n} of shelf {n % 97} weighs {n * 7} grams and is blue. " for n in range(4_000)) + TEXT
    )
    assert cited(FEE, (long,)) == [f"night. > {FEE}"]
    for hostile in (
        "a" * 100_000,
        "1," * 50_000,
        "\n-" * 50_000,
        ". " * 50_000,
        "`" * 50_000,
        "(" * 50_000,
        "ない" * 50_000,
    ):
        begun_s = time.thread_time()
        cited(hostile, (hostile,))
        assert time.thread_time() - begun_s < 5, hostile[:4]


def test_precision_on_the_held_out_half() -> None:
    """As `python -m tests.tuning citations` reports it; these documents did not shape the thresholds."""
    some = judged("held out", 1, (Embedder(),))
    supported, found, correct, unsupported = figures(some)
    assert supported >= 30 <= unsupported
    assert correct >= 0.95 * found
    assert correct >= 0.9 * supported


def test_a_prompt_of_ids_has_no_documents() -> None:
    assert read_documents(unknown_layout(9), np.arange(12, dtype=np.int32), ()) == {}


OIL = "Waste oil is accepted behind the fuel pier on weekdays."
DOCUMENT = f" \n{TEXT}"
# The grammar makes the random model write two sentences.
QUOTES = Grammar("json_schema", json.dumps({"const": f"{FEE} {OIL}"}))
QUESTION = Message("user", "What is it?", (Attachment("empty", " "), Attachment("harbour.md", DOCUMENT)))
ASKED = Generate("r", (QUESTION,), Settings(), grammar=QUOTES, chat="c")


@pytest.fixture
def said(toy_folder: Path) -> Iterator[tuple[Engine, list[Event]]]:
    """An engine of its own and the events that it sends on its own account."""
    events: list[Event] = []
    engine = Engine(say=events.append)
    engine.load(str(toy_folder))
    yield engine, events
    engine.close()


def answer(engine: Engine, request: Generate) -> list[Token]:
    *events, finished = engine.generate(request)
    assert isinstance(finished, Finished)
    assert not finished.citations
    return [event for event in events if isinstance(event, Token)]


def supports(tokens: list[Token], event: Event) -> list[tuple[str, str]]:
    text = "".join(token.text for token in tokens)
    assert isinstance(event, AnswerCited)
    assert all(each.source == 1 for each in event.citations)
    return [
        (text[: each.end].split()[-1], DOCUMENT[each.first_char : each.last_char]) for each in event.citations
    ]


def test_an_answer_is_cited_after_its_end_and_a_new_question_goes_first(
    said: tuple[Engine, list[Event]],
) -> None:
    engine, events = said
    tokens = answer(engine, ASKED)
    for _ in range(3):
        assert engine.idle_work()
    assert not events
    again = answer(engine, replace(ASKED, request="second"))
    assert not events
    while engine.cite_piece():
        pass
    assert [each.request for each in events if isinstance(each, AnswerCited)] == ["second", "r"]
    assert supports(again, events[0]) == supports(tokens, events[1]) == [("night.", FEE), ('weekdays."', OIL)]
    answer(engine, replace(ASKED, chat=""))  # a request of the server
    assert not engine.cite_piece()


def test_each_part_of_an_answer_has_its_citations(said: tuple[Engine, list[Event]]) -> None:
    """The first part stops inside the first sentence."""
    engine, events = said
    first = answer(engine, replace(ASKED, settings=assign(Settings(), "sampling.max_tokens", 9)))
    while engine.cite_piece():
        pass
    assert not events
    then = answer(engine, replace(ASKED, continuation=tuple(token.id for token in first)))
    while engine.cite_piece():
        pass
    assert supports(then, events[0]) == [("night.", FEE), ('weekdays."', OIL)]


def test_without_the_encoder_words_decide(said: tuple[Engine, list[Event]], monkeypatch: Any) -> None:
    def unavailable(self: Embedder, texts: Sequence[str]) -> None:
        raise EncoderUnavailableError("The sentence encoder is damaged.", "Install Draftlight again.")

    monkeypatch.setattr(Embedder, "texts", unavailable)
    engine, events = said
    tokens = answer(engine, ASKED)
    while engine.cite_piece():
        pass
    assert supports(tokens, events[0]) == [("night.", FEE), ('weekdays."', OIL)]
