"""Chats as PDF: pages of A4 with the title above and the page number below, selectable text, embedded fonts.

Each part of the chat is a QTextDocument of its own that begins where the part before ends, so that no call
into Qt takes long, whatever the chat's length. Creates no widgets; runs on any thread after the application
was created.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextCursor,
    QTextDocument,
    QTextOption,
)

from app.chat.export.html import STYLE
from app.theme.fonts import ui_font

# In points, which are Qt's pixels here: the writer has 72 dots an inch.
_PAGE = QPageSize(QPageSize.PageSizeId.A4)
_MARGIN_PT = 54
_HEAD_PT = 30  # from the page's edge to the baselines of title and number
_TEXT_PT = 11
_LEAST_PT = 60  # a part does not begin with less space at the end of a page
_SMALL_PT = 8
_CMAP = re.compile(rb"begincmap.*?endcmap", re.S)
_TARGETS = re.compile(rb"(?<=\[)[^\]]*(?=\])|(?<=> )<0009>(?=\n)")
_INK, _QUIET = QColor("#1d1d1f"), QColor("#63636b")


def to_pdf(title: str, blocks: Iterable[str], check: Callable[[], object] = lambda: None) -> bytes:
    """The file. `check` is called after each part of `blocks` and may raise to stop."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(72)
    writer.setTitle(title)
    writer.setCreator("Draftlight")
    writer.setPageLayout(QPageLayout(_PAGE, QPageLayout.Orientation.Portrait, QMarginsF()))
    painter = QPainter(writer)
    try:
        pages = _Pages(writer, painter, title)
        for block in blocks:
            pages.add(block)
            check()
    finally:
        painter.end()
    data: QByteArray = buffer.data()
    return _with_spaces(bytes(data.data()))


def _with_spaces(data: bytes) -> bytes:
    """`data` with the glyph of the space as a space in its text.

    Qt 6.11 gives a glyph the lowest of its characters; Inter and JetBrains Mono have one for space and tab.
    """

    def with_space(targets: re.Match[bytes]) -> bytes:
        return targets.group().replace(b"<0009>", b"<0020>")

    return _CMAP.sub(lambda cmap: _TARGETS.sub(with_space, cmap.group()), data)


class _Pages:
    """Sets one part below the other; `_y` is where the next one begins on the page."""

    def __init__(self, writer: QPdfWriter, painter: QPainter, title: str) -> None:
        self._writer, self._painter, self._title = writer, painter, title
        size = _PAGE.size(QPageSize.Unit.Point)
        self._area = QRectF(
            _MARGIN_PT, _MARGIN_PT, size.width() - 2 * _MARGIN_PT, size.height() - 2 * _MARGIN_PT
        )
        self._size = size
        self._number = 0
        self._y = 0.0
        self._font = QFont(ui_font(_TEXT_PT))
        # Alternates by context, as of the hyphen in a date, have no character in the file's text.
        self._font.setFeature(QFont.Tag("calt"), 0)
        self._font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
        self._begin_page()

    def add(self, block: str) -> None:
        """Set a part, on as many pages as it needs."""
        if self._area.height() - self._y < _LEAST_PT:
            self._next_page()
        document, end = self._laid_out(block)
        height = self._area.height()
        pages = max(1, -(-int(end + 0.999) // int(height)))
        context = QAbstractTextDocumentLayout.PaintContext()
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Text, _INK)
        context.palette = palette
        for page in range(pages):
            if page:
                self._next_page()
            top = page * height
            self._painter.save()
            self._painter.translate(self._area.left(), self._area.top() - top)
            context.clip = QRectF(0, top, self._area.width(), height)
            self._painter.setClipRect(context.clip)
            document.documentLayout().draw(self._painter, context)
            self._painter.restore()
        self._y = end - (pages - 1) * height

    def _laid_out(self, block: str) -> tuple[QTextDocument, float]:
        """The part as a document that begins at `_y` of its first page, and where it ends."""
        document = QTextDocument()
        document.setUndoRedoEnabled(False)
        document.setUseDesignMetrics(True)
        document.setDefaultFont(self._font)
        wrapping = document.defaultTextOption()
        wrapping.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(wrapping)
        document.setDefaultStyleSheet(_scaled(STYLE))
        document.setDocumentMargin(0)
        document.setHtml(block)
        frame = document.rootFrame().frameFormat()
        frame.setTopMargin(self._y)
        document.rootFrame().setFrameFormat(frame)
        document.setPageSize(QSizeF(self._area.width(), int(self._area.height())))
        layout = document.documentLayout()
        _split_at_pages(document, int(self._area.height()))
        last = document.lastBlock()
        return document, layout.blockBoundingRect(last).bottom() + last.blockFormat().bottomMargin()

    def _next_page(self) -> None:
        self._writer.newPage()
        self._begin_page()

    def _begin_page(self) -> None:
        self._number += 1
        self._y = 0.0
        self._painter.setFont(ui_font(_SMALL_PT))
        self._painter.setPen(_QUIET)
        left, width = self._area.left(), self._area.width()
        title = self._painter.fontMetrics().elidedText(self._title, Qt.TextElideMode.ElideRight, int(width))
        if self._number > 1:
            self._painter.drawText(QRectF(left, _HEAD_PT - 12, width, 16), Qt.AlignmentFlag.AlignLeft, title)
        foot = QRectF(left, self._size.height() - _HEAD_PT - 4, width, 16)
        self._painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, str(self._number))


def _split_at_pages(document: QTextDocument, height: int) -> None:
    """Begin a new block where a block goes on on the next page; no line moves.

    Qt 6.11 draws the line above the clip as well (`QTextLayout::draw`), which would be in the text twice.
    """
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        top, lines = layout.blockBoundingRect(block).top(), block.layout()
        pages = [int((top + lines.lineAt(n).y() + 1) // height) for n in range(lines.lineCount())]
        split = next((n for n, page in enumerate(pages) if page != pages[0]), 0)
        if split:
            cursor = QTextCursor(block)
            begins = cursor.blockFormat()
            goes_on = cursor.blockFormat()
            begins.setBottomMargin(0)
            goes_on.setTopMargin(0)
            goes_on.setTextIndent(0)
            cursor.setPosition(block.position() + lines.lineAt(split).textStart())
            cursor.insertBlock(goes_on)
            cursor.movePosition(QTextCursor.MoveOperation.PreviousBlock)
            cursor.setBlockFormat(begins)
        block = block.next()


def _scaled(style: str) -> str:
    """The style sheet with sizes for a text of `_TEXT_PT` instead of 15 pixels."""
    return re.sub(r"font-size: (\d+)px", lambda px: f"font-size: {int(px[1]) * _TEXT_PT // 15}px", style)
