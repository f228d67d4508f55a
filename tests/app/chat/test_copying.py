"""Copies of answers: HTML beside the plain text, without thoughts and figures, in the window and outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.answer_text import AnswerText
from app.chat.entry import AnswerEntry
from app.chat.export import ExportOptions, blocks, page
from app.controllers.titles import messages_for_title
from app.richtext.formulas import formulas
from app.richtext.html import pasted
from app.richtext.markdown.piece import Piece
from app.richtext.selection import TextPlace, TextSelection, selected_pieces, selected_text, text_of
from app.session.chats.conversation import Answer, Conversation, Turn
from app.shell.window import MainWindow
from app.store.chat_files import from_json, to_json, to_markdown
from app.store.chat_store import ChatStore
from core.answer_format import AnswerFormat
from core.events import Message
from core.typesetting import Formula
from tests.app.chat.written import FERRY, finished, token, tokens_of
from tests.app.session.chats.drawn import SECRET, answers
from tests.app.stage import ready, until

NOW = datetime(2026, 5, 4, 17, 0, tzinfo=UTC)
VOID = ("meta", "br", "hr")
BLOCKS = (
    "p",
    "li",
    "ul",
    "ol",
    "pre",
    "td",
    "th",
    "tr",
    "table",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "br",
    "hr",
)


class Read(HTMLParser):
    """What a program that takes HTML gets: words, the cells of each table, items, preformatted texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words = ""
        self.tables: list[list[list[str]]] = []
        self.code: list[str] = []
        self.depths: list[int] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.words += " " * (tag in BLOCKS)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "pre":
            self.code.append("")
        elif tag == "li":
            self.depths.append(self.open.count("li"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.words += " " * (tag in BLOCKS)

    def handle_data(self, data: str) -> None:
        self.words += data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if "pre" in self.open:
            self.code[-1] += data


def pieces_of(answer: str, format: AnswerFormat | None = None) -> list[Piece]:
    text = AnswerText()
    if format:
        text.use_format(format)
    text.append(tokens_of(answer))
    text.finish()
    return text.answer_pieces


def html_of(pieces: Sequence[Piece]) -> Read:
    return Read(pasted(pieces, lambda formula: ""))


def seen(pieces: Sequence[Piece]) -> list[str]:
    """The words that the window shows. Bullets and numbers are the list's own in HTML; boxes are words."""
    return " ".join(
        " ".join(box for box in ("☐", "☑") if box in piece.marker) + " " + piece.text for piece in pieces
    ).split()


word = st.integers(0, 10**6).map("w{}".format)
forms = (
    *("**%s**", "*%s*", "~~%s~~", "`%s`", "[%s](https://e.org/?a=1&b=%%22)", "<%s>", "&%s; \\*", '"%s" &'),
    *("${\\alpha}$ %s", "$\\frac{1}{x}$ %s", "%s<br>x"),
)
marked = st.one_of(word, word, st.tuples(st.sampled_from(forms), word).map(lambda p: p[0] % p[1]))
line = st.lists(marked, min_size=1, max_size=5).map(" ".join)
cell = st.one_of(line.map(lambda text: text.replace("|", "")), st.just(""))


@st.composite
def table(draw: st.DrawFn) -> str:
    columns = draw(st.integers(1, 4))
    row = st.lists(cell, min_size=columns, max_size=columns).map(lambda cells: f"|{'|'.join(cells)}|")
    rule = "|".join(draw(st.sampled_from(("-", ":-:", "-:"))) for _ in range(columns))
    return "\n".join((draw(row), f"|{rule}|", *draw(st.lists(row, max_size=4))))


item = st.tuples(
    *(st.integers(0, 2).map("    ".__mul__), st.sampled_from(("- ", "* ", "1. "))),
    *(st.sampled_from(("", "[ ] ", "[x] ")), line),
).map("".join)
block = st.one_of(
    line,
    st.tuples(line, line).map("\n  ".join),
    st.tuples(st.integers(1, 6), line).map(lambda p: f"{'#' * p[0]} {p[1]}"),
    st.lists(item, min_size=1).map("\n".join),
    st.tuples(line, line).map(lambda p: f"- {p[0]}\n\n  {p[1]}\n\n  ```\n  {p[1]}\n  ```"),
    st.lists(line, min_size=1, max_size=3).map(lambda lines: "\n".join(f"> {each}" for each in lines)),
    st.tuples(line, line).map(lambda p: f"> {p[0]}\n>\n> - {p[1]}"),
    st.tuples(st.sampled_from(("", "python", "<b>")), st.lists(line, max_size=4)).map(
        lambda p: "\n".join((f"```{p[0]}", *p[1], "    indented", "```"))
    ),
    table(),
    st.just("---"),
    line.map(lambda text: f"$$\n\\int_0^1 {{{text.split(' ', maxsplit=1)[0]}}}\n$$"),
)  # fmt: skip
markdown = st.lists(block, min_size=1, max_size=6).map("\n\n".join)


@settings(max_examples=50, deadline=None)
@given(markdown)
def test_the_html_of_an_answer_has_its_words_its_cells_and_its_code(answer: str) -> None:
    pieces = pieces_of(f"w0 begins\n\n{answer}")
    made = html_of(pieces)
    assert made.words.split() == seen(pieces)
    assert [[cell for row in rows for cell in row] for rows in made.tables] == [
        [piece.text[cell.start : cell.end].replace("\u2028", "") for cell in piece.cells]
        for piece in pieces
        if piece.kind == "table"
    ]
    assert made.code == [piece.text for piece in pieces if piece.kind == "code"]
    for piece in pieces:
        assert not piece.marker or piece.depth in made.depths


@settings(max_examples=50, deadline=None)
@given(markdown, st.data())
def test_a_selection_of_any_two_points_is_the_slice_between_them(answer: str, data: st.DataObject) -> None:
    pieces = pieces_of(answer)
    places = st.integers(0, len(pieces) - 1).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, len(pieces[n].text)))
    )
    anchor, head = TextPlace(*data.draw(places)), TextPlace(*data.draw(places))
    chosen = TextSelection(anchor, head)
    text, parts = selected_text(pieces, chosen), selected_pieces(pieces, chosen)
    if chosen.start.piece == chosen.end.piece:
        piece = pieces[chosen.start.piece]
        assert text == shown(piece)[chosen.start.char : chosen.end.char]
    else:
        start, end = (text_of(pieces[: each.piece + 1]) for each in (chosen.start, chosen.end))
        first = pieces[chosen.start.piece]
        begin = len(start) - len(first.text) + chosen.start.char
        if not chosen.start.char:  # all of an item has its marker
            begin -= len(text_of([first])) - len(first.text)
        last = len(end) - len(pieces[chosen.end.piece].text) + chosen.end.char
        assert text == text_of(pieces)[begin:last]
    assert html_of(parts).words.split() == seen(parts)


def shown(piece: Piece) -> str:
    return piece.text.replace("\u2028", " ")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStore]:
    made = ChatStore(tmp_path_factory.mktemp("copying") / "chats.db")
    yield made
    made.close()


fragments = st.sampled_from(
    (
        *("<think>", "</think>", "<thinking>", "</thinking>", "[TOOL]", "<tool_call>{}</tool_call>"),
        *("a b", "\n", "\n\n", "```\n", "~~~\n", "`", "- x\n"),
    )
)


@settings(max_examples=300)
@given(st.lists(fragments, min_size=1, max_size=9).map("".join))
def test_the_words_of_an_answer_are_those_that_the_window_shows(source: str) -> None:
    text = AnswerText()
    text.append([token(source)])
    text.finish()
    assert Answer((token(source),), "finished").words == text.answer_source


@pytest.mark.sweep
@settings(max_examples=60, deadline=None)
@given(answers())
def test_no_thought_leaves_the_chat(store: ChatStore, answer: Answer) -> None:
    chat = Conversation("c", NOW, (Turn("t", Message("user", "asked"), answer, NOW),))
    store.do(("chats", "c"), chat)
    left = [
        answer.words,
        to_markdown(chat),
        json.loads(to_json([chat]))["chats"][0]["turns"][0]["text"],
        "".join(page(chat, ExportOptions(), "title")),
        "".join(blocks(chat, ExportOptions(tints=True), "title")),
        messages_for_title(chat)[1].content,
    ]
    if not answer.calls:
        text = AnswerEntry("t", unparsed=answer.tokens, finished=answer.finished, over=True).parse()
        assert text.answer_source == answer.words
        assert [tuple(text.table.tokens[own.start : own.stop]) for own in text.thought_tokens] == [
            part.tokens
            for part in answer.parts
            if part.kind == "thought" and part.text.strip() and part.tokens
        ]
        left += [text.answer_source, pasted(text.answer_pieces, lambda formula: "")]
    assert [each for each in left if SECRET in each] == []
    assert store.search(SECRET) == []
    shown = "".join(page(chat, ExportOptions(thoughts=True), "title"))
    assert (SECRET in shown) == (SECRET in answer.text)
    assert store.load("c").turns[0].answer.parts == answer.parts
    assert from_json(to_json([chat]))[0].turns[0].answer.parts == answer.parts


def turn(number: int) -> Turn:
    answer = f"<think>\nsecret reasoning\n</think>\n\nThe **answer** is {number}. {FERRY}"
    return Turn(f"t{number}", Message("user", "q"), Answer(tuple(tokens_of(answer)), "finished", finished()))


@pytest.mark.sweep
async def test_the_last_answer_is_copied_alike_in_sight_and_out_of_it(window: MainWindow) -> None:
    await ready(window)
    chats, transcript = window.controller.chats, window.views.transcript
    chats.keep(chats.open.with_turns(tuple(turn(n) for n in range(20))))
    window.controller.chat.show()
    await until(lambda: transcript.answer("t19") is not None)
    copied = []
    for place in (None, 0):
        if place is not None:
            transcript.verticalScrollBar().setValue(place)
            await until(lambda: transcript.answer("t19") is None)
        QGuiApplication.clipboard().clear()
        window.commands.copy_answer()
        data = QGuiApplication.clipboard().mimeData()
        copied.append((data.text(), data.html()))
    assert copied[0] == copied[1]
    text, html = copied[0]
    assert text.startswith("The **answer** is 19.")
    assert "<b>answer</b>" in html
    assert "<ol><li>" in html
    assert "secret" not in text + html
    assert "tok/s" not in text + html


async def test_all_messages_are_copied_with_their_looks(window: MainWindow) -> None:
    await ready(window)
    chats, transcript = window.controller.chats, window.views.transcript
    chats.keep(chats.open.with_turns(tuple(turn(n) for n in range(3))))
    window.controller.chat.show()
    await until(lambda: transcript.answer("t2") is not None)
    view = transcript.answer("t2")
    assert view is not None
    view.body.select_all()
    QGuiApplication.clipboard().clear()
    assert view.body.copy()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == transcript.selected_text()
    read = Read(data.html())
    assert data.html().count("<ol>") == 3
    assert [number for number in "012" if f"The answer is {number}." in read.words] == ["0", "1", "2"]
    assert "secret" not in read.words


def test_formulas_that_were_never_shown_are_copied_too(qtbot: QtBot) -> None:
    source = "An answer with $\\frac{a}{b_{91}}$."
    entry = AnswerEntry("t", unparsed=(token(source),), over=True)
    entry.copy()
    assert QGuiApplication.clipboard().mimeData().text() == source
    qtbot.waitUntil(lambda: "<mfrac>" in QGuiApplication.clipboard().mimeData().html(), timeout=60_000)
    assert QGuiApplication.clipboard().mimeData().text() == source
    AnswerEntry("t", unparsed=(token(source.replace("91", "92")),), over=True).copy()
    QGuiApplication.clipboard().setText("another")
    qtbot.waitUntil(lambda: formulas().knows(Formula("\\frac{a}{b_{92}}", False)), timeout=60_000)
    assert QGuiApplication.clipboard().mimeData().text() == "another"
