"""AnswerText: an answer's source as pieces while it grows. Pure: no Qt.

Closed blocks are Markdown pieces and never change again. What follows them is the open piece:
plain text, or code once a fence was opened. `append` and `finish` say what changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from app.chat.blocks import BlockSplitter
from app.chat.markdown import parse_block
from app.chat.piece import Piece, open_code_piece, plain_piece
from app.chat.token_table import TokenTable
from core.events import Token


class Change(Struct, frozen=True):
    """`closed` follow the pieces that were closed before; `open_piece` is all that is open now."""

    closed: tuple[Piece, ...]
    open_piece: Piece | None


class AnswerText:
    """`table` holds the tokens."""

    def __init__(self) -> None:
        self.table = TokenTable()
        self._splitter = BlockSplitter()

    def append(self, tokens: Sequence[Token]) -> Change:
        """More tokens came."""
        blocks = self._splitter.feed(self.table.extend(tokens))
        source = self.table.text
        closed = tuple(piece for block in blocks for piece in parse_block(source, block.start, block.end))
        return Change(closed, self._open(source))

    def finish(self) -> Change:
        """No more will come."""
        source = self.table.text
        blocks = self._splitter.finish()
        return Change(tuple(p for block in blocks for p in parse_block(source, block.start, block.end)), None)

    def _open(self, source: str) -> Piece | None:
        start, end = self._splitter.open_start, len(source)
        code = self._splitter.open_code
        if code:
            return open_code_piece(source, code.start, code.body, end, code.language)
        piece = plain_piece(source, start, end)
        return piece if piece.text else None
