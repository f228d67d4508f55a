"""Chats as HTML and PDF. No widgets; any thread, after the application was created.

HTML: one page without scripts and links to other files, in a dark and a light colour scheme. The text is laid
out as in the window, by the same pieces. Qt's HTML importer has no nested lists with own markers, no flexible
boxes and a subset of CSS, so list items are paragraphs with their marker and every margin is written on its
paragraph.

PDF: the same HTML, printed by Qt on pages of A4 with selectable text and embedded fonts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from msgspec import Struct
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF
from PySide6.QtGui import (
    QFont,
    QPageLayout,
    QPageSize,
    QPdfWriter,
    QTextDocument,
    QTextOption,
)

from app.chat import strings
from app.chat.answer_text import AnswerText, spans_of
from app.controls.shapes import is_rtl
from app.richtext.markdown.markdown import pieces_of
from app.richtext.markdown.piece import Piece, Styled
from app.session.chats.conversation import Answer, Conversation, Turn
from app.theme.fonts import ui_font
from core.events import Message

_INDENT_PX = 22
# Of a table, by the size of its text: characters of a line on the page, and the padding of a cell in pixels.
_SIZES = {"usual": (80, 4), "smaller": (105, 3), "smallest": (122, 2)}
_PADDING_CHARACTERS = 2
# Longer words do not widen a column.
_WORD_CHARACTERS = 20
_TAGS = {"bold": "b", "italic": "i", "strike": "s", "code": "code"}
# Half of a character cannot be encoded.
_SURROGATES = re.compile("[\ud800-\udfff]")
# Not allowed in HTML.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")

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
table.code { background: #f4f4f6; width: 100%; margin: 0 0 12px 0; border-radius: 8px; }
table.code td { padding: 10px 14px; } table.code p { tab-size: 4; }
@media screen and (prefers-color-scheme: dark) {
  body { color: #f2f2f3; background: #1c1c1e; } a { color: #5db4ea; }
  .role, .note, .thought, .quote { color: #a2a2aa; }
  table.code, code { background-color: #2a2a2d; } table.cells td, table.cells th { border-color: #48484d; }
  .accepted { background-color: #17493a; } .bonus { background-color: #574014; }
}
"""


class ExportOptions(Struct, frozen=True):
    """Whether the thoughts of answers and the tints of tokens are included."""

    thoughts: bool = False
    tints: bool = False


def page(chat: Conversation, options: ExportOptions, title: str) -> Iterator[str]:
    """The parts of the HTML file."""
    yield (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}{_PAGE_STYLE}</style></head>\n<body>\n"
    )
    for block in blocks(chat, options, title):
        yield block + "\n"
    yield "</body></html>\n"


def blocks(chat: Conversation, options: ExportOptions, title: str) -> Iterator[str]:
    """The chat as HTML in parts, each with complete elements."""
    date = chat.created.astimezone().strftime("%Y-%m-%d %H:%M")
    yield f'<h1{_direction(title)}>{_text(title)}</h1><p class="note">{date}</p>'
    for turn in chat.turns:
        yield _role(strings.YOU)
        yield from _question(turn.user)
        yield from _answer(turn, options)


def _role(name: str) -> str:
    return f'<p class="role">{_text(name)}</p>'


def _question(message: Message) -> Iterator[str]:
    for attachment in message.attachments:
        yield f'<p class="note">{_text(strings.EXPORTED_ATTACHMENT.format(name=attachment.name))}</p>'
    if message.content:
        for piece in pieces_of(message.content):
            yield from _piece(piece, ())


def _answer(turn: Turn, options: ExportOptions) -> Iterator[str]:
    answer = turn.answer
    yield _role(answer.finished.effective.model if answer.finished else strings.ANSWER_NAME)
    text = _parsed(answer)
    for piece in text.pieces:
        if piece.thought < 0 or options.thoughts:
            yield from _piece(piece, _tints(piece, text) if options.tints else ())
    if answer.note:
        yield f'<p class="note">{_text(answer.note)}</p>'


def _parsed(answer: Answer) -> AnswerText:
    text = AnswerText()
    if answer.finished is not None:
        text.use_format(answer.finished.effective.format)
    text.append(answer.tokens)
    text.finish()
    return text


def _tints(piece: Piece, text: AnswerText) -> Sequence[tuple[int, int, str]]:
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


def _piece(piece: Piece, tints: Sequence[tuple[int, int, str]]) -> Iterator[str]:
    match piece.kind:
        case "thought":
            yield f'<p class="note">{_text(strings.EXPORTED_THOUGHT)}</p>'
        case "rule":
            yield "<hr>"
        case "table":
            yield _table(piece, tints)
        case "code":
            yield _code(piece, tints)
        case _:
            yield _paragraph(piece, tints)


def _paragraph(piece: Piece, tints: Sequence[tuple[int, int, str]]) -> str:
    tag = f"h{min(4, piece.level + 1)}" if piece.kind == "heading" else "p"
    left = _INDENT_PX * (piece.depth + piece.quotes + (piece.thought >= 0))
    style = f' style="margin-{"right" if is_rtl(piece.text) else "left"}:{left}px"' if left else ""
    kind = ' class="thought"' if piece.thought >= 0 else ' class="quote"' if piece.quotes else ""
    marker = f"{_text(piece.marker)}\u00a0\u00a0" if piece.marker else ""
    if marker:
        style = style.replace("px", f"px; text-indent:-{_INDENT_PX - 6}px")
    text = _inline(piece, 0, len(piece.text), tints)
    return f"<{tag}{kind}{_direction(piece.text)}{style}>{marker}{text}</{tag}>"


def _code(piece: Piece, tints: Sequence[tuple[int, int, str]]) -> str:
    language = f'<p class="note">{_text(piece.language)}</p>' if piece.language else ""
    return (
        '<table class="code" width="100%" bgcolor="#f4f4f6" cellpadding="8" cellspacing="0"'
        ' style="margin-top:9px; margin-bottom:9px"><tr><td>'
        f'{language}<p dir="ltr">{_inline(piece, 0, len(piece.text), tints)}</p></td></tr></table>'
    )


def _table(piece: Piece, tints: Sequence[tuple[int, int, str]]) -> str:
    rows: dict[int, list[str]] = {}
    size, widths = _columns(piece)
    kind = f' class="{size}"' if size != "usual" else ""
    for cell in piece.cells:
        tag = "td" if cell.row else "th"
        align = piece.aligns[cell.column] if cell.column < len(piece.aligns) else "left"
        width = f' width="{widths[cell.column]}%"' if widths else ""
        text = piece.text[cell.start : cell.end]
        content = _inline(piece, cell.start, cell.end, tints)
        rows.setdefault(cell.row, []).append(
            f'<{tag} align="{align}"{width}><span{kind}{_direction(text)}>{content}</span></{tag}>'
        )
    head, *body = [f"<tr>{''.join(cells)}</tr>" for cells in rows.values()]
    lines = 'border="1" style="border-collapse:collapse; margin-top:9px; margin-bottom:9px"'
    padding = f'cellspacing="0" cellpadding="{_SIZES[size][1]}"'
    looks = f'class="cells" {padding} {lines}{_direction(piece.text)}'
    return f"<table {looks}><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _columns(piece: Piece) -> tuple[str, list[float]]:
    """The size of a table's text, one of `_SIZES`, and the widths of the columns of a wide one in percent.

    Without widths Qt breaks words in narrow columns into letters.
    """
    count = 1 + max(cell.column for cell in piece.cells)
    words, texts = [1] * count, [1] * count
    for cell in piece.cells:
        text = piece.text[cell.start : cell.end]
        word = max(map(len, text.split()), default=0)
        word += not cell.row or text[:1].isdigit()  # bold text and figures are wider
        words[cell.column] = max(words[cell.column], min(word, _WORD_CHARACTERS))
        texts[cell.column] = max(texts[cell.column], len(text))
    padding = _PADDING_CHARACTERS * count
    if sum(texts) + padding <= _SIZES["usual"][0]:
        return "usual", []
    needed = sum(words) + padding
    size = next((name for name, (most, _) in _SIZES.items() if needed <= most), "smallest")
    spare = max(0, _SIZES[size][0] - needed)
    shares = [min(text, 200) ** 0.5 for text in texts]
    parts = [
        word + _PADDING_CHARACTERS + spare * share / sum(shares)
        for word, share in zip(words, shares, strict=True)
    ]
    return size, [round(100 * part / sum(parts), 1) for part in parts]


def _inline(piece: Piece, start: int, end: int, tints: Sequence[tuple[int, int, str]]) -> str:
    """The characters [start, end) with their styles and tints."""
    styles = [each for each in piece.styles if each.start < end and start < each.end]
    shown = [each for each in tints if each[0] < end and start < each[1]]
    edges = {start, end}
    for low, high in [*((s.start, s.end) for s in styles), *(each[:2] for each in shown)]:
        edges |= {max(start, low), min(end, high)}
    places = sorted(edges)
    made, style_at, tint_at = [], 0, 0
    open_styles: list[Styled] = []
    styles.sort(key=lambda each: each.start)
    for low, high in pairwise(places):
        while style_at < len(styles) and styles[style_at].start <= low:
            open_styles.append(styles[style_at])
            style_at += 1
        open_styles = [each for each in open_styles if each.end > low]
        while tint_at < len(shown) and shown[tint_at][1] <= low:
            tint_at += 1
        run = _text(piece.text[low:high]).replace("\n", "<br>").replace("\u2028", "<br>")
        if tint_at < len(shown) and shown[tint_at][0] <= low:
            run = f'<span class="{shown[tint_at][2]}">{run}</span>'
        for each in open_styles:
            if tag := _TAGS.get(each.style):
                run = f"<{tag}>{run}</{tag}>"
            elif each.style == "link":
                run = f'<a href="{escape(each.target)}">{run}</a>'
        made.append(run)
    return "".join(made)


def _direction(text: str) -> str:
    return ' dir="rtl"' if is_rtl(text) else ""


def _text(text: str) -> str:
    return escape(_CONTROLS.sub("\ufffd", _SURROGATES.sub("\ufffd", text)), quote=False)


_CMAP = re.compile(rb"begincmap.*?endcmap", re.S)
_TARGETS = re.compile(rb"(?<=\[)[^\]]*(?=\])|(?<=> )<0009>(?=\n)")
_FONT_PX = 15
_TAB_PX = 30  # four characters of code
_PIXELS_PER_INCH = 96


def to_pdf(title: str, blocks: Iterable[str], check: Callable[[], object] = lambda: None) -> bytes:
    """The file. `check` is called after each part of `blocks` and may raise to stop."""
    document = QTextDocument()
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


def _with_spaces(data: bytes) -> bytes:
    """`data` with the glyph of the space as a space in its text.

    Qt 6.11 gives a glyph the lowest of its characters; Inter and JetBrains Mono have one for space and tab.
    """

    def with_space(targets: re.Match[bytes]) -> bytes:
        return targets.group().replace(b"<0009>", b"<0020>")

    return _CMAP.sub(lambda cmap: _TARGETS.sub(with_space, cmap.group()), data)
