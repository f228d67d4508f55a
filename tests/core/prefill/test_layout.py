"""Layout: what each token of a rendered prompt is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.events import Attachment, Message
from core.prefill.layout import Layout, continues, layout, unknown_layout
from core.prefill.passages import cut
from core.prompt import offsets, render
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, TAIL_TOKENS, Prefill


@pytest.fixture(scope="module")
def tokenizer(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


def laid_out(
    tokenizer: TokenizerWrapper, messages: list[Message], system: str = ""
) -> tuple[list[int], Layout]:
    prompt = render(tokenizer, messages, system)
    told = offsets(tokenizer, prompt)
    assert told is not None
    return prompt.ids, layout(prompt, told)


def text_of(tokenizer: TokenizerWrapper, ids: list[int], which: np.ndarray) -> str:  # type: ignore[type-arg]
    return str(tokenizer.decode([i for i, chosen in zip(ids, which) if chosen]))


def test_template_and_system_are_protected_and_the_question_is_the_last_words(
    tokenizer: TokenizerWrapper,
) -> None:
    messages = [
        Message("user", "First?", (Attachment("a.txt", " \nAlpha beta é ✓.\n"),)),
        Message("assistant", "First!"),
        Message("user", "  Second?  ", (Attachment("e.txt", "  "), Attachment("b.txt", "Gamma."))),
    ]
    ids, found = laid_out(tokenizer, messages, "Be brief.")
    kept = text_of(tokenizer, ids, found.protected)
    assert kept.startswith('<|system|>Be brief.<|end|><|user|><document name="a.txt">')
    for words in ("Alpha", "Gamma", "First", "Second"):
        assert words not in kept
    assert text_of(tokenizer, ids, found.question).strip() == "Second?"
    texts = {source: text_of(tokenizer, ids, found.source == source) for source in (0, 1, 2)}
    assert texts == {0: "Alpha beta é ✓.", 1: "", 2: "Gamma."}
    first = np.flatnonzero(found.source == 0)
    assert found.first_char[first[0]] == 2
    assert found.last_char[first[-1]] == 2 + len("Alpha beta é ✓.")


def test_a_long_question_is_its_ends(tokenizer: TokenizerWrapper) -> None:
    words = "Why? " + "filler " * 200 + "Because?"
    ids, found = laid_out(tokenizer, [Message("user", words)])
    assert found.question.sum() == 256
    asked = text_of(tokenizer, ids, found.question)
    assert asked.startswith("Why?")
    assert asked.endswith("Because?")
    assert render(tokenizer, [Message("user", words)]).asked.endswith("Because?")


def test_the_end_that_is_always_read_is_shorter_behind_documents(tokenizer: TokenizerWrapper) -> None:
    attached = (Attachment("a.txt", "The tide rises. " * 200),)
    for words, begins in (
        ("Why does it rise?", lambda ids, question: question - DOCUMENT_TAIL_TOKENS),
        ("Continue the text.", lambda ids, question: len(ids) - TAIL_TOKENS),
        ("Why? " + "filler " * 900 + "Because?", lambda ids, question: len(ids) - TAIL_TOKENS),
    ):
        ids, found = laid_out(tokenizer, [Message("user", words, attached)])
        always = found.always_read
        begin = begins(ids, int(np.argmax(found.question)))
        assert always[begin:].all()
        assert not always[begin - 1]
        assert always[found.question].all()
        assert always[found.protected].all()
    ids, found = laid_out(tokenizer, [Message("user", "The tide rises. " * 200 + "Why?")])
    assert found.always_read[-TAIL_TOKENS:].all()
    assert not found.always_read[-TAIL_TOKENS - 1]


def test_ids_alone_have_their_end_for_a_question() -> None:
    found = unknown_layout(1000)
    assert np.flatnonzero(found.question).tolist() == list(range(936, 1000))
    assert not found.protected.any()
    assert (found.source == -1).all()


@pytest.mark.parametrize(("words", "goes_on"), [("Continue the story.", True), ("Who came home?", False)])
def test_whether_the_text_is_to_go_on_is_asked_in_words(
    tokenizer: TokenizerWrapper, words: str, goes_on: bool
) -> None:
    prompt = render(tokenizer, [Message("user", words, (Attachment("a.txt", "Alpha beta."),))], "")
    assert layout(prompt, offsets(tokenizer, prompt)).goes_on is goes_on
    unmapped = layout(prompt, None)
    assert unmapped.goes_on is goes_on
    assert unmapped.question.sum() == min(64, len(prompt.ids))
    assert unmapped.followed_by(2).goes_on is goes_on
    assert unknown_layout(100).goes_on


def test_a_begun_answer_is_always_read(tokenizer: TokenizerWrapper) -> None:
    _, found = laid_out(tokenizer, [Message("user", "Why?", (Attachment("a.txt", "Alpha beta."),))])
    longer = found.followed_by(3)
    tokens = len(found.protected)
    assert longer.protected[tokens:].tolist() == [True] * 3
    assert not longer.question[tokens:].any()
    assert longer.source[tokens:].tolist() == [-1] * 3
    assert len(longer.first_char) == len(longer.last_char) == tokens + 3
    assert longer.borders == found.borders
    assert found.followed_by(0) is found


DOCUMENT = "".join(
    f"The pilot of berth {at} waits for the tide, and then he casts off the lines. Nobody may pass.\n"
    for at in range(40)
)


def test_passages_are_the_texts_own(tokenizer: TokenizerWrapper) -> None:
    """Whole sentences of documents and messages; what is the template's belongs to none of them."""
    pasted = (
        "Who is he?\n\n" + "The buoys are lit at night. The fee is paid in the office, before noon. " * 12
    )
    messages = [
        Message("user", "First?", (Attachment("a.txt", DOCUMENT),)),
        Message("assistant", "Yes. " * 30),
        Message("user", pasted, (Attachment("b.txt", "Gamma delta. Epsilon."),)),
    ]
    ids, found = laid_out(tokenizer, messages, "Be brief.")
    passages = found.passages(0, len(ids), Prefill())
    starts, ends = passages.firsts, passages.firsts + passages.lengths
    assert starts[0] == 0
    assert ends[-1] == len(ids)
    assert (starts[1:] == ends[:-1]).all()
    cuts = {DOCUMENT[first:last] for first, last in cut(DOCUMENT.strip())}
    texts = [str(tokenizer.decode(ids[start:end])) for start, end in zip(starts, ends)]
    assert cuts <= set(texts)
    for start, end in zip(starts, ends):
        assert len(set(found.protected[start:end].tolist())) == 1
        assert len(set(found.source[start:end].tolist())) == 1
    asks = found.question
    assert (passages.of[asks] == -1).all()
    assert (passages.of[~asks] >= 0).all()
    assert found.asked == "Who is he?"
    said = [text.text for text in found.texts]
    assert said == [DOCUMENT.strip(), "First?", "Yes. " * 30, "Gamma delta. Epsilon.", pasted]


def test_passages_from_a_place_and_of_fixed_length(tokenizer: TokenizerWrapper) -> None:
    ids, found = laid_out(tokenizer, [Message("user", "Who?", (Attachment("a.txt", DOCUMENT),))])
    every = found.passages(0, len(ids), Prefill()).firsts
    later = found.passages(500, 900, Prefill())
    assert later.firsts.tolist() == [500, *every[(every > 500) & (every < 900)].tolist()]
    assert (later.of[:500] == -1).all()
    assert (later.of[900:] == -1).all()
    fixed = found.passages(500, 900, Prefill(passages="fixed"))
    assert fixed.firsts.tolist() == list(range(500, 900, 32))
    alone = unknown_layout(100).passages(0, 100, Prefill())
    assert alone.firsts.tolist() == [0, 32, 64, 96]


def test_passages_move_with_what_is_quoted_before_the_question(tokenizer: TokenizerWrapper) -> None:
    ids, found = laid_out(tokenizer, [Message("user", "Who?", (Attachment("a.txt", DOCUMENT),))])
    at = int(np.argmax(found.question))
    quoting = found.quoting(at, 7)
    before, after = found.passages(0, len(ids), Prefill()), quoting.passages(0, len(ids) + 7, Prefill())
    moved = np.where(before.firsts >= at, before.firsts + 7, before.firsts)
    assert set(moved.tolist()) <= set(after.firsts.tolist())
    assert quoting.texts[-1].start == found.texts[-1].start + 7


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("Who came home?", "Who came home?"),
        ("Summarise:\n" + "filler words. " * 60, "Summarise:"),
        ("filler words. " * 60 + "\nWho came home?", "Who came home?"),
        ("Read this.\n" + "filler words. " * 60 + "\nWho came home?", "Who came home?"),
    ],
)
def test_the_question_is_not_what_was_pasted(tokenizer: TokenizerWrapper, words: str, asked: str) -> None:
    assert laid_out(tokenizer, [Message("user", words)])[1].asked == asked


# ---- requests to continue


@pytest.mark.parametrize(
    "request_",
    [
        "Continue.",
        "continue the story",
        "Please continue where the text ends.",
        "Could you go on?",
        "Here is my draft. Keep writing in the same voice.",
        "What happens next?",
        "Write the next chapter.",
        "Schreib die Geschichte weiter.",
        "Bitte fahre fort.",
        "Setze den Text fort.",
        "Fahren Sie fort.",
        "Bitte schreiben Sie den Brief weiter.",
        "Bitte weiterschreiben.",
        "Wie geht es weiter?",
        "Ga verder.",
        "Schrijf het verhaal verder.",
        "Continue l'histoire, s'il te plaît.",
        "Poursuivez le récit.",
        "Écris la suite.",
        "Continúa la historia.",
        "Sigue escribiendo.",
        "Continua il racconto.",
        "Continui, per favore.",
        "Por favor continue.",
        "Продолжи рассказ.",
        "Что было дальше?",
        "请继续写这个故事。",
        "続きを書いてください。",
        "이야기를 계속 써 줘.",
    ],
)
def test_requests_to_continue(request_: str) -> None:
    assert continues(request_)


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "Does the parking ban continue until May?",
        "When did the talks go on?",
        "Who continued the work of Ada?",
        "What is the next deadline?",
        "Wann geht der Zug weiter nach Ulm?",
        "Ist die Frist weiter gültig?",
        "Qui continue le travail ?",
        "Quando continua o curso?",
        "Кто продолжил работу?",
        "合同是谁签的？",
        "契約に署名したのは誰ですか。",
        "계약서에 서명한 사람은 누구야?",
    ],
)
def test_questions_that_sound_like_a_continuation(request_: str) -> None:
    assert not continues(request_)


@pytest.mark.parametrize(("before", "after"), [("Continue this:\n", ""), ("", "\n\nPlease go on.")])
def test_words_in_a_pasted_text_are_no_request(before: str, after: str) -> None:
    pasted = "They will learn from it.\nContinue to the next page.\n" * 20
    filler = "It was a quiet year. " * 20
    assert not continues(filler + pasted + filler)
    assert continues(before + filler + pasted + filler + after)
