"""Chats as HTML and PDF. No widgets; any thread, after the application was created.

HTML: one page without scripts and links to other files, in a dark and a light colour scheme. The text is laid
out as in the window, by the same pieces.

PDF: the flat form of the same HTML, printed by Qt on pages of A4 with selectable text and embedded fonts.

Images are PNGs that another process made, in the file; Qt decodes nothing else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from itertools import groupby
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QPyTextObject,
    QTextDocument,
    QTextFormat,
    QTextOption,
)

from app.chat import strings
from app.chat.answer_text import AnswerText, spans_of
from app.controls.shapes import is_rtl
from app.richtext.formulas import Shape, typeset_now
from app.richtext.html import Renderer, formula_of, text_html
from app.richtext.markdown.markdown import pieces_of
from app.richtext.markdown.piece import Piece
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.chats.parts import generations
from app.session.origins import note_texts, origins_of_chat
from app.session.strings import WHERE_FROM
from app.session.tools.calls import CallRecord
from app.theme.fonts import ui_font
from core.events import Image
from core.typesetting import Formula

STYLE = """
p, h1, h2, h3, h4 { white-space: pre-wrap; margin: 0 0 9px 0; }
h1, h2, h3, h4 { font-weight: 600; }
h1 { font-size: 22px; } h2 { font-size: 19px; } h3 { font-size: 17px; } h4 { font-size: 15px; }
.role { color: #63636b; font-size: 12px; font-weight: 600; margin-top: 18px; }
.note, .thought { color: #63636b; font-size: 13px; }
.quote { color: #63636b; }
.code p { font-family: "JetBrains Mono", Menlo, Consolas, monospace; font-size: 12px; margin: 0; }
code { font-family: "JetBrains Mono", Menlo, Consolas, monospace; background-color: #f0f0f2; }
a { color: #0b6ba8; }
.smaller { font-size: 12px; } .smallest { font-size: 10px; }
.accepted { background-color: #cfeee1; }
.bonus { background-color: #fbe8c6; }
"""
_PAGE_STYLE = """
html { color-scheme: light dark; }
body { max-width: 720px; margin: 32px auto; padding: 0 20px; color: #1d1d1f; background: #ffffff;
  font: 15px/1.6 Inter, -apple-system, "Segoe UI", "Noto Sans", sans-serif; }
p, h1, h2, h3, h4 { overflow-wrap: anywhere; }
table.cells { margin: 0 0 12px 0; border: 0; display: block; overflow-x: auto; }
table.cells td, table.cells th { border: 1px solid #d6d6da; padding: 4px 8px; vertical-align: top; }
table.cells td, table.cells th { width: auto; } table.cells span { font-size: inherit; }
pre { background: #f4f4f6; margin: 0 0 12px 0; border-radius: 8px; padding: 10px 14px; overflow-x: auto;
  font: 12px/1.5 "JetBrains Mono", Menlo, Consolas, monospace; tab-size: 4; }
pre code { background: none; } ul, ol { margin: 0 0 9px 0; padding-left: 22px; } li { margin: 0 0 5px 0; }
li p { margin: 5px 0 0 0; }
blockquote { margin: 0 0 9px 0; padding-left: 16px; border-left: 2px solid #d6d6da; }
img { max-width: 100%; height: auto; border-radius: 8px; }
.thought { padding-left: 22px; } math[display="block"] { margin: 9px 0; }
@media screen and (prefers-color-scheme: dark) {
  body { color: #f2f2f3; background: #1c1c1e; } a { color: #5db4ea; }
  .role, .note, .thought, .quote { color: #a2a2aa; }
  pre, code { background-color: #2a2a2d; } blockquote { border-color: #48484d; }
  table.cells td, table.cells th { border-color: #48484d; }
  .accepted { background-color: #17493a; } .bonus { background-color: #574014; }
}
"""


class ExportOptions(Struct, frozen=True):
    """Whether the thoughts of answers and the tints of tokens are included."""

    thoughts: bool = False
    tints: bool = False


# Returns a PNG of an image, None if the image is missing.
Picture = Callable[[Image], bytes | None]
_LONGEST_PX = 480  # of an image in a file


def no_picture(image: Image) -> bytes | None:
    """Returns None: the image is missing."""
    return None


def _size_px(png: bytes) -> tuple[int, int]:
    """The size at which an image is shown."""
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    scale = min(1.0, _LONGEST_PX / max(width, height, 1))
    return max(1, round(width * scale)), max(1, round(height * scale))


Pictures = Mapping[str, bytes]
NO_PICTURES: Pictures = MappingProxyType({})
Formulas = Mapping[Formula, Shape]
NO_FORMULAS: Formulas = MappingProxyType({})


def formulas_in(chat: Conversation, check: Callable[[], object] = lambda: None) -> Formulas:
    """The typeset formulas of the chat. Blocks while they are typeset; `check` may raise to stop."""
    texts = (text for turn in chat.turns for text, _ in _parsed(turn.answer))
    styles = (styled for text in texts for piece in text.pieces for styled in piece.styles)
    return typeset_now((formula for styled in styles if (formula := formula_of(styled))), check)


def page(
    chat: Conversation,
    options: ExportOptions,
    title: str,
    formulas: Formulas = NO_FORMULAS,
    picture: Picture = no_picture,
) -> Iterator[str]:
    """The parts of the HTML file. Other formulas than `formulas` are shown as their source."""
    yield (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">\n'
        f"<title>{text_html(title)}</title>\n<style>{STYLE}{_PAGE_STYLE}</style></head>\n<body>\n"
    )

    def mathml(formula: Formula) -> str:
        return formulas[formula].made.mathml if formula in formulas else ""

    def shown(image: Image) -> str:
        made = picture(image)
        if made is None:
            return ""
        width, height = _size_px(made)
        source = f"data:image/png;base64,{base64.b64encode(made).decode()}"
        name = escape(image.name)
        return f'<img src="{source}" alt="{name}" title="{name}" width="{width}" height="{height}">'

    for block in _blocks(chat, options, title, Renderer("page", mathml), shown):
        yield block + "\n"
    yield "</body></html>\n"


def blocks(
    chat: Conversation,
    options: ExportOptions,
    title: str,
    formulas: Formulas = NO_FORMULAS,
    picture: Picture = no_picture,
) -> Iterator[str]:
    """The chat as HTML for `to_pdf` in parts, each with complete elements."""
    numbers = {formula: number for number, formula in enumerate(formulas)}

    def image(formula: Formula) -> str:
        if formula not in numbers:
            return ""
        return f'<img src="{numbers[formula]}" style="vertical-align:middle">'

    def shown(image: Image) -> str:
        return f'<img src="{image.hash}">' if picture(image) is not None else ""

    yield from _blocks(chat, options, title, Renderer("print", image), shown)


def _blocks(
    chat: Conversation,
    options: ExportOptions,
    title: str,
    renderer: Renderer,
    shown: Callable[[Image], str],
) -> Iterator[str]:
    date = chat.created.astimezone().strftime("%Y-%m-%d %H:%M")
    direction = ' dir="rtl"' if is_rtl(title) else ""
    yield f"<h1{direction}>{text_html(title)}</h1>{_note(date)}"
    origins = origins_of_chat(chat)
    for turn in chat.turns:
        yield _role(strings.YOU)
        for attachment in turn.user.attachments:
            yield _note(strings.EXPORTED_ATTACHMENT.format(name=attachment.name))
        yield from _pictures(turn.user.images, shown)
        if turn.user.content:
            yield from renderer.blocks(pieces_of(turn.user.content))
        yield from _answer(turn, options, renderer, shown)
        if notes := note_texts(origins[turn.id], turn.answer.text):
            yield _note(WHERE_FROM)
            yield from (_note(f"{number}. {note}") for number, note in enumerate(notes, start=1))


def _role(name: str) -> str:
    return f'<p class="role">{text_html(name)}</p>'


def _note(text: str) -> str:
    return f'<p class="note">{text_html(text)}</p>'


def _pictures(images: Iterable[Image], shown: Callable[[Image], str]) -> Iterator[str]:
    for image in images:
        if element := shown(image):
            yield f"<p>{element}</p>"
            yield _note(strings.EXPORTED_IMAGE.format(name=image.name))
        else:
            yield _note(strings.EXPORTED_IMAGE_MISSING.format(name=image.name))


def _answer(
    turn: Turn, options: ExportOptions, renderer: Renderer, shown_image: Callable[[Image], str]
) -> Iterator[str]:
    answer, plain = turn.answer, renderer
    yield _role(answer.finished.effective.model if answer.finished else strings.ANSWER_NAME)
    for text, calls in _parsed(answer):
        if options.tints:
            renderer = replace(renderer, tints=partial(_tints, text))
        shown = text.pieces if options.thoughts else text.answer_pieces
        shown = [piece for piece in shown if not (calls and piece.language == strings.CALL)]
        for is_head, pieces in groupby(shown, lambda piece: piece.kind == "thought"):
            if is_head:
                yield from (_note(strings.EXPORTED_THOUGHT) for _ in pieces)
            else:
                yield from renderer.blocks(pieces)
        for call in calls:
            yield _note(call.title)
            yield from plain.blocks(map(_code, (call.arguments, call.result)))
            yield from _pictures(call.images, shown_image)
    if answer.note:
        yield _note(answer.note)


def _code(text: str) -> Piece:
    return Piece("code", text, (), 0, 0)


def _parsed(answer: Answer) -> Iterator[tuple[AnswerText, Sequence[CallRecord]]]:
    """The texts of the answer's generations, with the calls that follow each."""
    for tokens, calls in generations(answer.tokens, answer.calls):
        text = AnswerText(answer.tools)
        if answer.finished is not None:
            text.use_format(answer.finished.effective.format)
        text.append(tokens)
        text.finish()
        yield text, calls


def _tints(text: AnswerText, piece: Piece) -> Sequence[tuple[int, int, str]]:
    """The visible characters of accepted and bonus tokens, with their class."""
    found: list[tuple[int, int, str]] = []
    for span in spans_of(piece.segments, text.table):
        origin = text.table.origin_of(span.token)
        if origin == "normal":
            continue
        if found and found[-1][1:] == (span.start, origin):
            found[-1] = (found[-1][0], span.end, origin)
        else:
            found.append((span.start, span.end, origin))
    return found


_CMAP = re.compile(rb"begincmap.*?endcmap", re.S)
_TARGETS = re.compile(rb"(?<=\[)[^\]]*(?=\])|(?<=> )<0009>(?=\n)")
_FONT_PX = 15
_TAB_PX = 30  # four characters of code
_PIXELS_PER_INCH = 96
_WIDEST_PX = 600  # of a formula on a page
_FOREGROUND = QTextFormat.Property.ForegroundBrush.value


def to_pdf(
    title: str,
    blocks: Iterable[str],
    check: Callable[[], object] = lambda: None,
    formulas: Formulas = NO_FORMULAS,
    pictures: Pictures = NO_PICTURES,
) -> bytes:
    """The file. `check` is called after each part of `blocks` and may raise to stop.

    `formulas` are those that `blocks` was made with, `pictures` the PNGs that it got, by the images' hashes.
    """
    document = QTextDocument()
    painter = _ObjectPainter(formulas, pictures)
    document.documentLayout().registerHandler(QTextFormat.ObjectTypes.ImageObject.value, painter)
    document.setUndoRedoEnabled(False)
    document.setUseDesignMetrics(True)
    font = ui_font(_FONT_PX)
    # Alternates by context, as of the hyphen in a date, have no character in the file's text.
    font.setFeature(QFont.Tag("calt"), 0)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    document.setDefaultFont(font)
    wrapping = document.defaultTextOption()
    wrapping.setTabStopDistance(_TAB_PX)
    wrapping.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    document.setDefaultTextOption(wrapping)
    document.setDefaultStyleSheet(STYLE)
    parts = []
    for block in blocks:
        parts.append(block)
        check()
    document.setHtml("".join(parts))
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(_PIXELS_PER_INCH)
    writer.setTitle(title)
    writer.setCreator("Draftlight")
    # Qt adds margins of 2 cm and the number of each page.
    page = QPageSize(QPageSize.PageSizeId.A4)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    document.print_(writer)
    data: QByteArray = buffer.data()
    return _with_spaces(bytes(data.data()))


class _ObjectPainter(QPyTextObject):
    """Draws pictures, and formulas as shapes, in the place of Qt's images.

    An image's name is the hash of its picture or its formula's number.
    """

    def __init__(self, formulas: Formulas, pictures: Pictures) -> None:
        super().__init__()
        self._shapes = list(formulas.values())
        self._pictures = pictures

    def intrinsicSize(self, document: QTextDocument, place: int, form: QTextFormat) -> QSizeF:
        if picture := self._pictures.get(form.toImageFormat().name()):
            return QSizeF(*_size_px(picture))
        shape, size_px, half_px = self._measures(form)
        width, ascent, descent = shape.size_px(size_px)
        # Qt centres it on half the height of an x: one side is higher than the formula.
        return QSizeF(width, max(2 * ascent - half_px, 2 * descent + half_px))

    def drawObject(
        self, painter: QPainter, rect: QRectF | QRect, document: QTextDocument, place: int, form: QTextFormat
    ) -> None:
        if picture := self._pictures.get(form.toImageFormat().name()):
            image = QImage()
            image.loadFromData(picture, "PNG")
            painter.drawImage(QRectF(rect), image)
            return
        shape, size_px, half_px = self._measures(form)
        painter.setPen(form.foreground().color() if form.hasProperty(_FOREGROUND) else Qt.GlobalColor.black)
        shape.fill(painter, QPointF(rect.left(), rect.top() + (rect.height() + half_px) / 2), size_px)

    def _measures(self, form: QTextFormat) -> tuple[Shape, float, float]:
        """The formula, its type size, and half the height of an x."""
        shape = self._shapes[int(form.toImageFormat().name())]
        font = form.toCharFormat().font()
        size_px = min(_FONT_PX, _FONT_PX * _WIDEST_PX / max(1.0, shape.size_px(_FONT_PX)[0]))
        return shape, size_px, QFontMetrics(font).xHeight() / 2


def _with_spaces(data: bytes) -> bytes:
    """`data` with the glyph of the space as a space in its text.

    Qt 6.11 gives a glyph the lowest of its characters; Inter and JetBrains Mono have one for space and tab.
    """

    def with_space(targets: re.Match[bytes]) -> bytes:
        return targets.group().replace(b"<0009>", b"<0020>")

    return _CMAP.sub(lambda cmap: _TARGETS.sub(with_space, cmap.group()), data)
