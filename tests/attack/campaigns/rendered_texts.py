"""Campaign: texts that no model should write, streamed into a real transcript and treated as people do.

A case is a text of nested Markdown, formulas, code, tables, HTML, links, entities, writing from right
to left, emoji of many parts and of halves, control characters and endless lines. It goes through the
protocol's codec as tokens with origins, in flushes of any size, into a transcript on the offscreen
screen. Then it is selected, copied, scrolled, resized, zoomed, stored in a database, read back and
shown again. Every fortieth case streams one shape at two lengths, and compares what both take; every
tenth has a place of the window fail on purpose, and the rest of the chat has to be there.
"""

from __future__ import annotations

import faulthandler
import itertools
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

from markdown_it import MarkdownIt
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.chat.answer import AnswerView
from app.chat.entry import AnswerEntry
from app.chat.transcript import Transcript
from app.launch.application import Application
from app.richtext import strings
from app.richtext.markdown.piece import LOG as UNSHOWN
from app.richtext.markdown.piece import Piece
from app.richtext.piece_box import PieceBox
from app.session.chats.conversation import Answer, Conversation, Turn
from app.store.chat_files import from_json, to_json, to_markdown
from app.store.chat_store import ChatStore
from app.theme.theme import theme
from core.events import Effective, Finished, Message, Origin, Stats, Token, decode_event, encode
from core.events.wire import well_formed
from core.settings import Settings
from tests.attack.campaign import Campaign, Outcome, case_random

_NAME = "rendered-texts"
# Of the processor's time, so that what else the machine does is not counted. Generous: a frame has 16 ms.
_LONGEST_FLUSH_S = 2.0
_LONGEST_CASE_S = 240.0
_DOUBLING_EVERY = 40
_DOUBLING_CHARACTERS = 6_000
_FAILING_EVERY = 10
_SPOILT = "unspeakable"
# Each of the two takes so little that a clock's and a collector's whims count.
_SLACK_S = 0.25
_LONGEST_TEXT = 6_000
_ORIGINS: tuple[Origin, ...] = get_args(Origin)

Make = Callable[[random.Random, int], str]

_RAW = (
    "\u05e9\u05dc\u05d5\u05dd ", "\u0645\u0631\u062d\u0628\u0627 ", "\u202eback\u202c", "\u2066in\u2069",
    "\u200f", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u2028", "\u2029", "\x85", "\0", "\x01\x1b[31m",
    "\x7f", "\r", "\r\n", "\t", "\u3000", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\ud83d", "\ude00", "\U0001f600", "\ufffd", "\uffff",
    "\U0010ffff", "e\u0301", "\u0f77", "\ufdfd", "\u0e33", "\u4f60\u597d", "\U00020000",
    "\u1100\u1161\u11a8",
)  # fmt: skip
_MARKUP = (
    "*", "**", "***", "_", "__", "`", "``", "```", "~~~", "~~", "[", "]", "](", ")", "![", "<", ">", "<!--",
    "-->", "<br>", "</div>", "<think>", "</think>", "&amp;", "&#0;", "&#xD800;", "&#x1F600;", "&nope;",
    "\\", "\\\\", "\\*", "$", "$$", "\\[", "\\]", "\\(", "\\)", "|", "|-|", "\n", "\n\n", "\n---\n",
    "\n===\n", "\n# ", "\n> ", "\n- ", "\n1. ", "\n        ", "\n\t", "    ", "http://a.b/c_(d)",
    "<http://a.b>", "[a]: b", "mailto:a@b", "www.", "1) ",
)  # fmt: skip
_COMMANDS = (
    "\\frac", "\\sqrt", "\\sqrt[", "\\hat", "\\binom", "\\nosuch", "{", "}", "^", "_", "^{", "\\text{",
    "\\mathbb", "\\overline", "\\left", "\\right", "\\begin{pmatrix}", "\\end{pmatrix}", "\\begin{a", "&",
    "\\\\", "\\not", "x",
)  # fmt: skip
_FLOODS = (
    "x", "> ", "- ", "#", "*a ", "a\u0301", "\u0301", "\u200b", "[", "|", " ", "\t", "\u202e", "$a ", "\\(",
    "**a ", "`", "\n", "<", "&amp;", "\U0001f469\u200d",
)  # fmt: skip
_LANGUAGES = ("python", "html", "json", "", "nosuch", "c++", "latex", "sh", "x" * 300)


def _words(rng: random.Random, depth: int) -> str:
    return " ".join(f"w{rng.randrange(10**6)}" for _ in range(rng.randint(1, 12)))


def _raw(rng: random.Random, depth: int) -> str:
    return "".join(rng.choice(_RAW) for _ in range(rng.randint(1, 20)))


def _markup(rng: random.Random, depth: int) -> str:
    return "".join(rng.choice((*_MARKUP, "a ")) for _ in range(rng.randint(1, 60)))


def _formula(rng: random.Random, depth: int) -> str:
    opening, closing_ = rng.choice((("$", "$"), ("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("\\[", "")))
    if rng.random() < 0.5:
        inside = rng.choice(_COMMANDS) * rng.choice((3, 80, 1_500))
    else:
        inside = "".join(rng.choice(_COMMANDS) for _ in range(rng.randint(1, 80)))
    return f"{opening}{inside}{closing_}"


def _inline(rng: random.Random, depth: int) -> str:
    mark = rng.choice(("*", "**", "_", "~~", "`", "``"))
    return f"{mark}{_any(rng, depth - 1)}{mark}"


def _link(rng: random.Random, depth: int) -> str:
    bang = rng.choice(("", "!"))
    target = rng.choice(("http://a.b", "javascript:x", "<a b>", "http://x/" + "y" * 500))
    return f'{bang}[{_any(rng, depth - 1)}]({target} "t")'


def _html(rng: random.Random, depth: int) -> str:
    tag = rng.choice(("div", "script", "details", "think", "table", "svg"))
    return f'<{tag} onclick="x">{_any(rng, depth - 1)}</{tag}>'


def _code(rng: random.Random, depth: int) -> str:
    fence = rng.choice(("```", "~~~", "````"))
    end = rng.choice((f"\n{fence}\n", "", "\n``\n"))
    return f"\n{fence}{rng.choice(_LANGUAGES)}\n{_any(rng, depth - 1)}{end}"


def _prefixed(mark: str) -> Make:
    def make(rng: random.Random, depth: int) -> str:
        lines = _any(rng, depth - 1).split("\n")
        return "\n" + "\n".join(mark + line for line in lines) + rng.choice(("\n", "\n\n"))

    return make


def _item(rng: random.Random, depth: int) -> str:
    mark = rng.choice(("- ", "* ", "1. ", "999999999) "))
    body = _any(rng, depth - 1).replace("\n", "\n" + " " * len(mark))
    return f"\n{mark}{body}\n"


def _table(rng: random.Random, depth: int) -> str:
    columns = rng.randint(1, 8)

    def row() -> str:
        return "|".join(_any(rng, 0).replace("\n", " ") for _ in range(columns))

    rule = "|".join(rng.choice(("-", ":-", "-:", ":-:")) for _ in range(columns))
    return f"\n\n|{row()}|\n|{rule}|\n" + "".join(f"|{row()}|\n" for _ in range(rng.randint(0, 8)))


def _flood(rng: random.Random, depth: int) -> str:
    return rng.choice(_FLOODS) * rng.choice((30, 30, 300, 2_000))


_BLOCKS: tuple[Make, ...] = (_prefixed("> "), _item, _table, _code, _prefixed("# "), _prefixed("    "))
_MAKES: tuple[Make, ...] = (_words, _raw, _markup, _formula, _inline, _link, _html, _flood, *_BLOCKS)


def _any(rng: random.Random, depth: int) -> str:
    if depth <= 0:
        return rng.choice((_words, _raw, _words))(rng, 0)
    return "".join(rng.choice(_MAKES)(rng, depth) for _ in range(rng.randint(1, 3)))


def _plain(rng: random.Random, depth: int) -> str:
    """Quotes, lists and headings around words: nothing in it may hide one."""
    if depth <= 0:
        return _words(rng, 0)
    mark = rng.choice(("> ", "- ", "7. ") if depth > 1 else ("# ", ""))
    inside = _plain(rng, depth - 1)
    rest = "> " if mark == "> " else " " * len(mark)
    return f"{mark}{inside}".replace("\n", "\n" + rest) + "\n" + rest.rstrip() + "\n" + _words(rng, 0)


_SHAPES: tuple[str, ...] = (
    "words and words ", "> quoted\n", "- item\n", "x", "**bold** ", "`code` ", "[a](http://a.b) ", "a|b\n",
    "| a ", "$x_1$ ", "\\[ a\n", "\\( ", "<b> ", "```\na\n```\n", "# h\n\n", "e\u0301", "\u0301",
    "\U0001f469\u200d", "&amp;", "*a ", "- a\n  > b\n", "\u05e9 a ", "http://a.b/) ", "\t- ", "1. a\n\n",
    "a\n",
)  # fmt: skip


class _Listener(logging.Handler):
    """Whatever Qt, the interpreter or the window complains about."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))

    def qt(self, kind: QtMsgType, context: object, message: str) -> None:
        self.said.append(f"Qt: {message}")

    def hook(self, kind: type[BaseException], error: BaseException, trace: object) -> None:
        self.said.append(f"{kind.__name__}: {error}")


@contextmanager
def _listening() -> Iterator[_Listener]:
    listener = _Listener()
    before, hook = qInstallMessageHandler(listener.qt), sys.excepthook
    sys.excepthook = listener.hook
    UNSHOWN.addHandler(listener)
    try:
        yield listener
    finally:
        UNSHOWN.removeHandler(listener)
        sys.excepthook = hook
        qInstallMessageHandler(before)


class _Stage:
    """One transcript and one database for all cases."""

    def __init__(self, folder: Path) -> None:
        self.transcript = Transcript()
        self.transcript.resize(800, 600)
        self.transcript.show()
        self.store = ChatStore(folder / "chats.db")
        self.flushes = 0
        self.worst_s = 0.0

    def stream(self, tokens: Sequence[Token], sizes: Iterator[int]) -> float:
        """Write an answer; the processor's time it took."""
        self.transcript.clear()
        self.transcript.begin_answer("t", "auto")
        at, total_s = 0, 0.0
        while at < len(tokens):
            size = next(sizes)
            started_s = time.process_time()
            self.transcript.append_tokens("t", tokens[at : at + size])
            _paint()
            spent_s = time.process_time() - started_s
            at, total_s = at + size, total_s + spent_s
            self.flushes, self.worst_s = self.flushes + 1, max(self.worst_s, spent_s)
        self.transcript.finish_answer("t", _FINISHED)
        _paint()
        return total_s

    def texts(self) -> list[str]:
        """What the answer's pieces show."""
        answer = self.transcript.answer("t")
        assert answer is not None
        return [piece.text for piece in answer.body.pieces]

    def close(self) -> None:
        self.store.close()
        self.transcript.close()
        self.transcript.deleteLater()
        _paint()


_FINISHED = Finished(
    "r", "stop", Stats(prompt_tokens=9, read_tokens=9), Effective("toy", "float32", "auto", Settings())
)


def _paint() -> None:
    QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 50)
    # Outside of an event loop nothing else deletes the widgets of the cases before.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def _tokens(rng: random.Random, text: str, longest: int) -> list[Token]:
    """`text` as the worker tells it, cut anywhere, and through the protocol."""
    found: list[Token] = []
    at = step = 0
    while at < len(text):
        size = rng.randint(0, longest)
        origin = rng.choice(_ORIGINS)
        step += origin != "accepted"
        token = Token("r", 7, text[at : at + size], origin, step, len(found), time_s=0.01 * len(found))
        told = decode_event(encode(token))
        assert isinstance(told, Token)
        found.append(told)
        at += size
    return found


def _words_of(texts: Sequence[str]) -> list[str]:
    return [word for word in " ".join(texts).split() if word.startswith("w")]


def _treat(rng: random.Random, stage: _Stage, text: str, *, deep: bool = False) -> str:
    """One text, all the way; what was wrong."""
    tokens = _tokens(rng, text, rng.choice((3, 8, 40)))
    flushes = rng.choice((8, 25, 60))
    most = max(2, 2 * len(tokens) // flushes)
    transcript = stage.transcript
    stage.stream(tokens, iter(lambda: rng.randint(1, most), 0))
    source = "".join(token.text for token in tokens)
    if transcript.answer_text("t") != source:
        return "the answer's source is not what was streamed"
    streamed = stage.texts()
    answer = transcript.answer("t")
    assert answer is not None
    answer.body.select_all()
    copied = answer.body.selected_text
    answer.body.copy()
    answer.footer.buttons["copy"].click()
    # Qt's clipboard takes a byte-order mark at the beginning for what it says, and drops it.
    expected = source.removeprefix("\ufeff")
    if "<" not in source and "[" not in source and QGuiApplication.clipboard().text() != expected:
        return "copying the answer gives another text"
    bar = transcript.verticalScrollBar()
    for _ in range(2):
        bar.setValue(rng.randint(0, max(1, bar.maximum())))
        _paint()
    transcript.resize(rng.randint(200, 1400), rng.randint(100, 900))
    _paint()
    theme.set_zoom(rng.choice((0.8, 1.0, 1.5)))
    _paint()
    transcript.resize(800, 600)
    theme.set_zoom(1.0)
    _paint()
    answer = transcript.answer("t")
    if answer is not None and answer.body.selected_text != copied:
        return "another size of the window changed what is selected"
    return _store(stage, Message("user", text[:2_000]), tuple(tokens), streamed, deep)


def _store(stage: _Stage, asked: Message, tokens: tuple[Token, ...], streamed: list[str], deep: bool) -> str:
    turn = Turn("t", asked, Answer(tokens, "finished", _FINISHED), _NOW)
    chat = Conversation("chat", _NOW, (turn,))
    with stage.store.transaction():
        stage.store.do(("chats", "chat"), chat)
    kept = stage.store.load("chat")
    if kept.turns[0].answer != turn.answer or kept.turns[0].user.content != well_formed(asked.content):
        return "the stored chat is another"
    if from_json(to_json([kept]))[0].turns[0].answer.text != turn.answer.text:
        return "the exported chat is another"
    to_markdown(kept).encode()
    stage.transcript.show_turns(kept.turns)
    _paint()
    # Of what is as deep as the reader goes the paragraphs may be cut elsewhere, but no word is lost.
    shown = stage.texts()
    if shown != streamed and (not deep or sorted(_words_of(shown)) != sorted(_words_of(streamed))):
        return "reopened, the answer shows another text"
    return ""


_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _double(rng: random.Random, stage: _Stage) -> str:
    """One shape at two lengths."""
    unit, first = rng.choice(_SHAPES), rng.choice(("", "", "> ", "- ", "$$ ", "```\n", "| a |\n|-|\n"))
    spent: list[float] = []
    for length in (_DOUBLING_CHARACTERS, 2 * _DOUBLING_CHARACTERS):
        text = first + unit * (length // len(unit))
        spent.append(stage.stream(_tokens(rng, text, 8), itertools.repeat(25)))
    if spent[1] > 4 * spent[0] + _SLACK_S:
        took = " and ".join(f"{seconds:.2f}" for seconds in spent)
        return f"{first + unit!a} at {_DOUBLING_CHARACTERS:,} characters and at twice as many took {took} s"
    return ""


def _fail(rng: random.Random, stage: _Stage, heard: _Listener) -> str:
    """One of three answers meets an error while it is read, laid out, painted, made or measured."""
    kind, name, whole = rng.choice(_PLACES)
    raised: list[object] = []
    before = getattr(kind, name)

    def failing(self: Any, *given: Any, **more: Any) -> Any:
        told = (self, *given, getattr(self, "piece", None), getattr(self, "_entry", None))
        if any(_SPOILT in _said_by(one) for one in told):
            raised.append(self)
            raise rng.choice((RecursionError, ValueError, OverflowError))("on purpose")
        return before(self, *given, **more)

    spoilt = f"{_words(rng, 0)}\n\n> *{_SPOILT}* {_words(rng, 0)}"
    texts = [_words(rng, 0), spoilt, _words(rng, 0)]
    turns = [
        Turn(
            str(n),
            Message("user", "asked"),
            Answer(tuple(_tokens(rng, text, 8)), "finished", _FINISHED),
            _NOW,
        )
        for n, text in enumerate(texts)
    ]
    transcript = stage.transcript
    with patch.object(kind, name, failing):
        transcript.show_turns(turns)
        transcript.verticalScrollBar().setValue(0)
        _paint()
        transcript.grab()
        shown = [item.body.readable_text for item in transcript._items.values()]
        transcript.resize(rng.randint(300, 900), 600)
        _paint()
        transcript.resize(800, 600)
    said, heard.said = heard.said, []
    where = f"{kind.__name__}.{name} failed"
    if not raised:
        return f"{where} never: it is not called"
    if len(shown) != 2 * len(turns) or any(text not in shown for text in (texts[0], texts[2])):
        return f"{where}, and the other answers are not there: {shown}"
    if whole and strings.UNSHOWN not in shown:
        return f"{where}, and nothing says so: {shown}"
    if not whole and not any(_SPOILT in text for text in shown):
        return f"{where}, and the block does not stand as it was written: {shown}"
    if not said or any("could not be shown" not in line for line in said):
        return f"{where}, and the log says {said}"
    if transcript.answer_text("1") != spoilt:
        return f"{where}, and the answer's source is another"
    transcript.show_turns(turns)
    _paint()
    return "" if heard.said == [] else f"after {where} it was not shown again: {heard.said[0]}"


def _said_by(one: object) -> str:
    if isinstance(one, Piece):
        return one.text
    return one.source if isinstance(one, AnswerEntry) else one if isinstance(one, str) else ""


# What may fail, and whether all of the answer is lost to the eye with it, or one block's marks.
_PLACES: tuple[tuple[type, str, bool], ...] = (
    (PieceBox, "__init__", True),
    (PieceBox, "paint_around", True),
    (AnswerView, "__init__", True),
    (AnswerView, "finish", True),
    (AnswerView, "height_for", True),
    (MarkdownIt, "parse", False),
)


def _case(rng: random.Random, stage: _Stage, number: int, heard: _Listener) -> str:
    if number % _FAILING_EVERY == _FAILING_EVERY - 3:
        return _fail(rng, stage, heard)
    if number % _DOUBLING_EVERY == _DOUBLING_EVERY - 1:
        return _double(rng, stage)
    if number % 3 == 0:
        depth = rng.choice((1, 3, 8, 25))
        text = _plain(rng, depth)
        fault = _treat(rng, stage, text, deep=depth == 25)
        shown = " ".join(stage.texts()).split()
        hidden = set(text.replace("#", " ").split()) & {w for w in text.split() if w.startswith("w")} - set(
            shown
        )
        return fault or (f"{len(hidden)} words are not shown, {min(hidden)} among them" if hidden else "")
    return _treat(
        rng, stage, "".join(_any(rng, rng.randint(0, 4)) for _ in range(rng.randint(1, 4)))[:12_000]
    )


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    application: Any = QApplication.instance() or Application([_NAME])
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(_Stage(Path(folder))) as stage,
        _listening() as heard,
    ):
        for case in cases:
            # What hangs ends the process, and with it the campaign, with its traceback in the log.
            faulthandler.dump_traceback_later(_LONGEST_CASE_S, exit=True)
            stage.flushes, stage.worst_s = 0, 0.0
            heard.said.clear()
            fault = ""
            try:
                fault = _case(case_random(_NAME, seed, case), stage, case, heard)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if not fault and heard.said:
                fault = heard.said[0]
            if not fault and stage.worst_s > _LONGEST_FLUSH_S:
                fault = f"a flush took {stage.worst_s:.1f} s"
            faulthandler.cancel_dump_traceback_later()
            yield Outcome(case, fault, {"flushes": float(stage.flushes)}, {"flush_ms": 1_000 * stage.worst_s})
    del application


CAMPAIGN = Campaign(
    _NAME,
    "Any text is streamed, painted, copied, resized, stored and shown again without an exception, a warning"
    " of Qt or a hidden word, and what fails leaves the rest to be seen; no flush takes"
    f" {_LONGEST_FLUSH_S:.0f} s, and twice the text not four times.",
    8,
    4_000,
    _run,
)
