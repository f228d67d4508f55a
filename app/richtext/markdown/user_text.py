"""OwnWords: a person's message as pieces. No Qt.

Kept as it was typed, for stars and numbers may mean anything in it; only fenced code becomes a
block of code, and addresses become links.
"""

from __future__ import annotations

from msgspec.structs import replace

from app.richtext.markdown.blocks import BlockSplitter
from app.richtext.markdown.links import bare_links
from app.richtext.markdown.markdown import parse_block
from app.richtext.markdown.piece import Piece, Styled, plain_piece


def pieces_of(content: str) -> tuple[Piece, ...]:
    """All of `content`, in order."""
    if "```" not in content and "~~~" not in content:
        return (_plain(content, 0, len(content)),)
    splitter = BlockSplitter()
    found: list[Piece] = []
    plain_from = 0
    for block in [*splitter.feed(content), *splitter.finish()]:
        pieces = parse_block(content, block.start, block.end)
        if (
            len(pieces) != 1
            or pieces[0].kind != "code"
            or not content[block.start : block.end].lstrip().startswith(("```", "~~~"))
        ):
            continue
        if content[plain_from : block.start].strip():
            found.append(_plain(content, plain_from, block.start))
        found.append(pieces[0])
        plain_from = block.end
    if content[plain_from:].strip() or not found:
        found.append(_plain(content, plain_from, len(content)))
    return tuple(found)


def _plain(content: str, start: int, end: int) -> Piece:
    piece = plain_piece(content, start, end)
    links = [Styled(low, high, "link", piece.text[low:high]) for low, high in bare_links(piece.text)]
    return replace(piece, styles=tuple(links))
