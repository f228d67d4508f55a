"""Thoughts in an answer: found while it is written, whatever the flushes, and folded on the screen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.answer_body import ThoughtHead
from app.chat.answer_text import AnswerText
from app.chat.entry import AnswerEntry
from app.chat.transcript import Transcript
from app.session.chats.answers import with_edits
from core.answer_format import AnswerFormat, answer_format
from core.answer_format.formats import ThoughtTags
from core.events import Token
from tests.app.chat.watching import body_of, picture
from tests.app.chat.written import finished, tokens_of

WRITTEN = "<think>\nThe user asks.\n\nSo **answer** </nothing>.\n</think>\n\nYes, [x] < y."
PREFILLED = "The user asks.\n\nSo answer.\n</think>\n\nYes."


def letters(source: str) -> list[Token]:
    """A token a character, one a tenth of a second."""
    return [Token("r", 7, c, "normal", n + 1, n, time_s=n / 10) for n, c in enumerate(source)]


def shown(text: AnswerText) -> list[tuple[str, bool]]:
    return [(piece.text, piece.thought >= 0) for piece in text.pieces if piece.kind != "thought"]


def read(source: str, format: AnswerFormat | None = None, *, size: int = 1) -> AnswerText:
    """The answer `source`, whose first token has `format`."""
    text, tokens = AnswerText(), letters(source)
    tokens[0] = replace(tokens[0], format=format)
    for at in range(0, len(tokens), size):
        text.append(tokens[at : at + size])
    text.finish()
    return text


@pytest.mark.parametrize(
    ("source", "edited", "expected"),
    [
        (WRITTEN, "No, [x] < y.", WRITTEN.replace("Yes", "No")),
        (WRITTEN, "Yes, [x] < y. And z.", WRITTEN + " And z."),
        (WRITTEN, "New.\n\nText", WRITTEN[: WRITTEN.index("Yes")] + "New.\n\nText"),
        (PREFILLED, "Oh, Yes.", PREFILLED.replace("Yes", "Oh, Yes")),
        ("One two three", "One three", "One three"),
        ("Two\n", "Two!\n", "Two!\n"),
        # Text fields have one kind of line end only.
        ("One\r\ntwo\u2028three\r", "One\ntwo\nthree!\n", "One\r\ntwo\u2028three!\r"),
        ("One\r\ntwo", "One two", "One two"),
    ],
)
def test_an_edit_leaves_thoughts_as_they_are(source: str, edited: str, expected: str) -> None:
    text, tokens = AnswerText(), letters(source)
    text.append(tokens)
    text.finish()
    assert text.edits(text.answer_source) == ()
    changed = with_edits(tokens, text.edits(edited))
    assert "".join(token.text for token in changed) == expected
    again = AnswerText()
    again.append(changed)
    again.finish()
    assert " ".join(again.answer_source.split()) == " ".join(edited.split())
    assert len(again.thoughts) == len(text.thoughts)


def test_an_edit_across_a_thought_keeps_it() -> None:
    format = AnswerFormat((ThoughtTags("<think>", "</think>", anywhere=True),))
    source = "One two.<think>Hm.</think>Three four."
    text, tokens = AnswerText(), letters(source)
    text.use_format(format)
    text.append(tokens)
    text.finish()
    assert text.answer_source == "One two.Three four."
    changed = with_edits(tokens, text.edits("One six four."))
    assert "".join(token.text for token in changed) == "One six<think>Hm.</think> four."


@pytest.mark.parametrize(
    ("source", "pieces", "said"),
    [
        (
            WRITTEN,
            [("The user asks.", True), ("So answer </nothing>.", True), ("Yes, [x] < y.", False)],
            "Yes, [x] < y.",
        ),
        ("<think>\n\n</think>\n\nYes.", [("Yes.", False)], "Yes."),
        (
            "First I check.</think>It is **J**.",
            [("First I check.", True), ("It is J.", False)],
            "It is **J**.",
        ),
        *(
            (source, [(shown, False)], source)
            for source, shown in (
                ("```\n<think>\n</think>\n```", "<think>\n</think>"),
                ("He writes <think> and </think> here.", "He writes <think> and </think> here."),
                ("Write `</think>` there.", "Write </think> there."),
                ("Text </nothing> and more.", "Text </nothing> and more."),
            )
        ),
    ],
)
def test_what_is_thought_and_what_is_said(source: str, pieces: list[tuple[str, bool]], said: str) -> None:
    text = read(source)
    assert shown(text) == pieces
    assert text.answer_source.strip() == said
    if not any(thought for _, thought in pieces):
        assert text.figures is None


@pytest.mark.parametrize(
    "tokens", [letters(WRITTEN), tokens_of("<think>\n{Let| me}^.\n</think>\n{No|,} it^ is.")]
)
def test_figures_of_thought_and_answer_are_those_of_the_whole(tokens: list[Token]) -> None:
    text = AnswerText()
    text.append(tokens)
    text.finish()
    thought, over = text.thought_figures(text.thoughts[0].start)
    alone = text.figures
    accepted = sum(token.origin == "accepted" for token in tokens)
    assert over
    assert thought.tokens + alone.tokens == len(tokens)
    assert (thought.accepted or 0) + (alone.accepted or 0) == accepted
    assert thought.took_s + alone.took_s == pytest.approx(tokens[-1].time_s - tokens[0].time_s)
    if accepted:
        assert thought.percent == round(100 * thought.accepted / thought.tokens)
    else:
        ends = WRITTEN.index("</think>") + len("</think>")
        assert (thought.tokens, thought.accepted) == (ends, None)
        assert thought.took_s == pytest.approx((ends - 1) / 10)


def test_a_closing_tag_alone_makes_all_before_it_a_thought() -> None:
    text = AnswerText()
    change = text.append(letters("The user asks.\n\nSo"))
    assert not change.again
    assert shown(text) == [("The user asks.", False), ("So", False)]
    change = text.append(letters(" answer.\n</think>\n\nYes."))
    assert change.again
    assert shown(text) == [("The user asks.", True), ("So answer.", True), ("Yes.", False)]
    assert text.answer_source == "Yes."


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("template", "tail", "source"),
    [
        ("<think></think>", "<a><think>", "First I check.\nSo it is J.</think>The answer is **J**."),
        ("<think></think>", "<a><think>\n", "Check.\n</think>\n\nThe answer is **J**."),
        ("<|channel>", "<a>", "<|channel>thought\nCheck.\n<channel|>The answer is **J**."),
        (
            "<|channel|><|message|>",
            "<|start|>assistant",
            "<|channel|>analysis<|message|>Check.<|end|><|start|>assistant<|channel|>final<|message|>"
            "The answer is **J**.",
        ),
    ],
)
def test_the_prompt_says_how_the_answer_begins(template: str, tail: str, source: str, size: int) -> None:
    text = read(source, answer_format(template, tail), size=size)
    assert text.answer_source == "The answer is **J**."
    assert ("The answer is J.", False) in shown(text)
    assert all(thought or words == "The answer is J." for words, thought in shown(text))
    assert any(thought and "heck." in words for words, thought in shown(text))


def test_a_thought_that_the_prompt_opened_is_one_before_it_ends() -> None:
    text, [first, *rest] = AnswerText(), letters("Check.")
    text.append([replace(first, format=answer_format("<think></think>", "<a><think>")), *rest])
    assert shown(text) == [("Check.", True)]


def test_an_answer_from_a_store_has_its_format_from_its_figures() -> None:
    ended = finished()
    known = replace(ended.effective, format=answer_format("<|channel>", "<a>"))
    source = "<|channel>thought\nCheck.\n<channel|>Yes."
    stored = replace(ended, effective=known)
    entry = AnswerEntry("t", unparsed=tuple(letters(source)), finished=stored, over=True)
    assert entry.parse().answer_source == "Yes."


def test_a_thought_is_folded_until_it_is_opened(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.begin_answer("t")
    transcript.append_tokens("t", letters(WRITTEN[:20]))
    (head,) = transcript.findChildren(ThoughtHead)
    assert head.text() == "Thinking, 1.9 s · 20 tokens"
    transcript.append_tokens("t", letters(WRITTEN)[20:])
    transcript.finish_answer("t", finished())
    said = WRITTEN.index("</think>") + len("</think>")
    assert head.text() == f"Thought for {(said - 1) / 10:.1f} s · {said} tokens"
    item = transcript.answer("t")
    rest = len(WRITTEN) - said
    assert f"answer {rest} tokens in {rest / 10:.1f}" in item.footer.stats.figures
    body = body_of(transcript)
    assert [box.piece.text for box in body.boxes if not box.hidden] == ["", "Yes, [x] < y."]
    folded = body.height()
    body.select_all()
    assert transcript.selected_text() == "Yes, [x] < y."
    qtbot.mouseClick(head, Qt.MouseButton.LeftButton)
    assert head.isChecked()
    assert body.height() > folded + 30
    body.select_all()
    assert transcript.selected_text().startswith("The user asks.")
    qtbot.keyClick(head, Qt.Key.Key_Return)
    assert body.height() == folded
    item = transcript.answer("t")
    qtbot.mouseClick(item.footer.buttons["copy"], Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Yes, [x] < y."


def test_an_unfolded_thought_stays_so_when_its_widget_is_made_anew(transcript: Transcript) -> None:
    transcript.begin_answer("t")
    transcript.append_tokens("t", tokens_of(WRITTEN))
    transcript.finish_answer("t", finished())
    (head,) = transcript.findChildren(ThoughtHead)
    head.click()
    body, strip = body_of(transcript), transcript.answer("t").footer.strip
    dimmed = picture(strip)
    strip.set_thoughts([])
    assert picture(strip) != dimmed
    height = body.height()
    body.lay_out_again()
    assert body.height_for(720) == pytest.approx(height, abs=2)


LOOP = "The lamp is lit every night. "


@pytest.mark.parametrize(
    ("source", "at", "kept", "folded"),
    [
        (LOOP * 3, len(LOOP), [LOOP.strip()], [(LOOP * 2).strip()]),
        (f"One.\n\n{LOOP}\n\n{LOOP}\n\n{LOOP}", 37, ["One.", LOOP.strip()], [LOOP.strip(), LOOP.strip()]),
        # Only a paragraph is divided.
        ("- a b\n- a b\n\nEnd.", 4, ["a b"], ["a b", "End."]),
        ("```\na\na\na\n```", 8, ["a\na\na"], []),
        ("<think>\nSo so so.\n</think>\n\nYes.", 12, [], []),
        # It begins with a piece, or there is nothing behind it.
        ("```\na\n```\n\n```\na\n```", 11, ["a"], ["a"]),
        ("One.", 4, ["One."], []),
    ],
)
def test_what_repeats_is_folded_and_stays_part_of_the_source(
    source: str, at: int, kept: list[str], folded: list[str]
) -> None:
    text = AnswerText()
    text.append(letters(source))
    text.finish(at)
    pieces = [piece for piece in text.pieces if piece.kind != "thought"]
    if text.thoughts:  # a thought is foldable already
        assert text.repeats_from is None
        return
    assert [piece.text.strip() for piece in pieces if piece.thought >= 0] == folded
    assert [piece.text.strip() for piece in pieces if piece.thought < 0] == kept
    assert text.repeats_from == (at if folded else None)
    assert text.answer_source == source
