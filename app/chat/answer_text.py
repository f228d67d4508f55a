"""AnswerText: an answer's source as pieces while it grows. Pure: no Qt.

Closed blocks are Markdown pieces and never change again. What follows them is the open piece:
plain text, or code once a fence was opened. `append` and `finish` say what changed; `closed` and
`open_piece` are all there is. A finished answer is read by `append` in as many parts as one
likes, so a long one need not be read at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from app.chat.blocks import Block, BlockSplitter
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
        self.closed: list[Piece] = []
        self.open_piece: Piece | None = None
        self.finished = False
        self._splitter = BlockSplitter()

    @property
    def pieces(self) -> list[Piece]:
        """Closed and open, in order."""
        return [*self.closed, self.open_piece] if self.open_piece else list(self.closed)

    def append(self, tokens: Sequence[Token]) -> Change:
        """More tokens came."""
        blocks = self._splitter.feed(self.table.extend(tokens))
        return self._change(blocks, self._open(self.table.text))

    def finish(self) -> Change:
        """No more will come."""
        self.finished = True
        return self._change(self._splitter.finish(), None)

    def _change(self, blocks: Sequence[Block], open_piece: Piece | None) -> Change:
        source = self.table.text
        closed = tuple(piece for block in blocks for piece in parse_block(source, block.start, block.end))
        self.closed += closed
        self.open_piece = open_piece
        return Change(closed, open_piece)

    def _open(self, source: str) -> Piece | None:
        start, end = self._splitter.open_start, len(source)
        code = self._splitter.open_code
        if code:
            return open_code_piece(source, code.start, code.body, end, code.language)
        piece = plain_piece(source, start, end)
        return piece if piece.text else None
