"""Colours of code: from Pygments, in slices, and only where no token is tinted."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.richtext.markdown.markdown import pieces_of
from app.richtext.text_style import Highlight
from core.events import Message
from tests.app.chat.watching import colour, colours, picture, stream
from tests.app.chat.written import MERGE, finished

CODE = 'def f(x):  # doubled\n    return "a" * 2\n'


def kinds(highlight: Highlight, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.kind) for s in highlight.stretches]


def test_words_have_kinds() -> None:
    highlight = Highlight("python")
    highlight.set_text(CODE, whole=True)
    assert highlight.advance(lambda: False)
    assert kinds(highlight, CODE) == [
        ("def", "keyword"),
        ("f", "name"),
        ("# doubled", "comment"),
        ("return", "keyword"),
        ('"', "string"),
        ("a", "string"),
        ('"', "string"),
        ("2", "number"),
    ]


def test_slices_give_the_same() -> None:
    once, sliced = Highlight("python"), Highlight("python")
    once.set_text(CODE * 30, whole=True)
    once.advance(lambda: False)
    sliced.set_text(CODE * 30, whole=True)
    slices = 1
    while not sliced.advance(lambda: True):
        slices += 1
        assert sliced.stretches == []
    assert slices > 5
    assert sliced.stretches == once.stretches


def test_growing_text_is_lexed_again_in_proportion() -> None:
    highlight, lexed = Highlight("python"), 0
    text = CODE * 100
    for end in range(0, len(text), 7):
        highlight.set_text(text[:end], whole=False)
        lexed += not highlight.advance(lambda: True)
        highlight.advance(lambda: False)
    assert lexed < 40
    highlight.set_text(text, whole=True)
    highlight.advance(lambda: False)
    whole = Highlight("python")
    whole.set_text(text, whole=True)
    whole.advance(lambda: False)
    assert highlight.stretches == whole.stretches


def test_unknown_languages_have_no_colours() -> None:
    for language in ("", "klingon"):
        highlight = Highlight(language)
        highlight.set_text(CODE, whole=True)
        assert highlight.advance(lambda: False)
        assert highlight.stretches == []


def test_tinted_code_has_no_colours_until_the_tint_is_off(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, MERGE)
    blue = {colour("series_purple"), colour("accepted_tint")}
    assert blue & colours(picture(transcript)) == {colour("accepted_tint")}
    for mode in ("origins", "off"):
        transcript.set_token_colors(mode)
        qtbot.wait(20)
        assert blue & colours(picture(transcript)) == {colour("series_purple")}


def test_code_of_normal_tokens_is_coloured_though_tints_are_on(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "```python\ndef f():\n    return None\n```\n")
    transcript.finish_answer("t", finished())
    qtbot.wait(20)
    assert colour("series_purple") in colours(picture(transcript))


def test_pasted_code_in_a_message(transcript: Transcript, qtbot: QtBot) -> None:
    content = "What is *this*?\n\n```python\ndef f():\n    return None\n```\n1. one"
    assert [(p.kind, p.text) for p in pieces_of(content)] == [
        ("text", "What is this?"),
        ("code", "def f():\n    return None"),
        ("text", "one"),
    ]
    transcript.add_user("t", Message("user", content))
    qtbot.wait(20)
    assert colour("series_purple") in colours(picture(transcript))
