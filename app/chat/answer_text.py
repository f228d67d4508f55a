"""AnswerText: an answer's source as pieces while it grows. Pure: no Qt.

Closed blocks are Markdown pieces and never change again. What follows them is open: plain text,
code once a fence was opened, or what a list item reads as so far; what is certain of that is closed
at once, so that only its last part is read again. `append` and `finish` say what
changed; `closed` and `open` are all there is. Thoughts are pieces like others that say which thought they are
of, with a piece without text at their head. A finished answer is read by `append` in as many
parts as one likes, so a long one need not be read at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from app.richtext.markdown.blocks import Block, BlockSplitter, reads_early, shown_end
from app.richtext.markdown.markdown import parse_block, read_open
from app.richtext.markdown.piece import Piece, open_code_piece, plain_piece
from app.richtext.markdown.token_table import TokenTable
from core.answer_format import AnswerFormat, AnswerSplitter, Part, lone_closing_tag
from core.events import Token


class PartFigures(Struct, frozen=True):
    """`accepted` of `tokens` were accepted drafts; None where the whole answer has none."""

    tokens: int
    accepted: int | None
    took_s: float

    @property
    def percent(self) -> int | None:
        """The accepted share."""
        if self.accepted is None:
            return None
        return round(100 * self.accepted / self.tokens) if self.tokens else 0


def figures_of(table: TokenTable, tokens: range) -> PartFigures:
    """Of the tokens with these numbers. Before its first token an answer has no time."""
    if not tokens:
        return PartFigures(0, None, 0.0)
    before_s = table[max(0, tokens.start - 1)].time_s
    took_s = max(0.0, table[tokens[-1]].time_s - before_s)
    accepted = table.accepted_in(tokens) if table.accepted_in(range(len(table))) else None
    return PartFigures(len(tokens), accepted, took_s)


def figures_without(table: TokenTable, thoughts: Sequence[range]) -> PartFigures | None:
    """Of all tokens but those of `thoughts`, in order; None if there are none."""
    if not thoughts:
        return None
    whole = figures_of(table, range(len(table)))
    apart = [figures_of(table, tokens) for tokens in thoughts]
    return PartFigures(
        whole.tokens - sum(part.tokens for part in apart),
        None if whole.accepted is None else whole.accepted - sum(part.accepted or 0 for part in apart),
        max(0.0, whole.took_s - sum(part.took_s for part in apart)),
    )


# Characters that are read again with all that comes; more of them stand as written until their end.
_LONGEST_OPEN = 8_000


class TextChange(Struct, frozen=True):
    """`closed` follow the pieces that were closed before; `open` is all that is open now.

    `again`: all that was said before no longer holds, and `closed` is everything.
    """

    closed: tuple[Piece, ...]
    open: tuple[Piece, ...]
    again: bool = False


class Thought(Struct):
    """A thought stands from `start` to `end` (None while it goes on), its tags not counted.

    With its tags it takes the source from `opens` to `closes`.
    """

    start: int
    end: int | None = None
    opens: int = 0
    closes: int | None = None


class AnswerText:
    """`table` holds the tokens. The first token, or `use_format`, says in which format the answer is written.

    In an answer of unknown format a closing tag that nothing opened makes all before it a thought.
    """

    def __init__(self) -> None:
        self.table = TokenTable()
        self._format: AnswerFormat | None = None
        self._begin()

    def _begin(self) -> None:
        """Clear what was read of the tokens."""
        self.closed: list[Piece] = []
        self.open: tuple[Piece, ...] = ()
        self.finished = False
        self.thoughts: list[Thought] = []
        self._answer = AnswerSplitter((self._format or AnswerFormat()).without_calls())
        self._seen = 0  # how much of the source the answer's splitter has
        self._said: list[tuple[int, int]] = []  # ranges of the answer without thoughts and marks
        self._splitter = BlockSplitter()
        self._fed = 0  # how much of the source the splitter of blocks has
        self._certain = 0  # up to where the open block's pieces are closed
        self._before = ""  # what stands for the lists that are open there
        self._marked = 0  # where the marks before `_fed` begin
        self._searched = 0  # up to where no closing tag is to be found
        self._thinks = False  # whether a thought is open
        self._again = False

    def use_format(self, format: AnswerFormat) -> None:
        """Read the answer in `format`; ignored after the first token, and if it is an unknown model's."""
        if not len(self.table) and format != AnswerFormat():
            self._format = format
            self._begin()

    @property
    def pieces(self) -> list[Piece]:
        """Closed and open, in order."""
        return [*self.closed, *self.open]

    @property
    def answer_source(self) -> str:
        """What was written, without thoughts and marks."""
        source = self.table.text
        if self._fed < len(source) and not self.thoughts:
            return source
        said = "".join(source[start:end] for start, end in self._said)
        return said if said == source else said.strip("\n")

    @property
    def thought_tokens(self) -> list[range]:
        """The numbers of the tokens of each thought, its tags among them; an empty one is none."""
        source = self.table.text
        said = [each for each in self.thoughts if source[each.start : each.end].strip()]
        return [tokens for tokens in map(self._tokens_of, said) if tokens]

    def thought_figures(self, start: int) -> tuple[PartFigures, bool]:
        """Figures of the thought at `start` so far, and whether it is over."""
        thought = next(thought for thought in self.thoughts if thought.start == start)
        return figures_of(self.table, self._tokens_of(thought)), self.finished or thought.end is not None

    @property
    def figures(self) -> PartFigures | None:
        """Those of the answer without its thoughts; None if it has none."""
        return figures_without(self.table, self.thought_tokens)

    def _tokens_of(self, thought: Thought) -> range:
        """A token that ends a thought and begins the answer is the thought's."""
        table = self.table
        end = table.length if thought.closes is None else min(thought.closes, table.length)
        if thought.opens >= end:
            return range(0)
        # What goes on is all of it, tokens without text of their own yet included.
        last = len(table) if thought.closes is None else table.at(end - 1) + 1
        first = table.at(thought.opens)
        return range(first, last)

    def append(self, tokens: Sequence[Token]) -> TextChange:
        """More tokens came."""
        if tokens and tokens[0].format:
            self.use_format(tokens[0].format)
        self.table.extend(tokens)
        return self._change(self._feed(whole=False))

    def finish(self) -> TextChange:
        """No more will come."""
        self.finished = True
        made = self._feed(whole=True)
        made += self._pieces(self._splitter.finish())
        return self._change(made, over=True)

    # ---- inside

    def _change(self, made: list[Piece], over: bool = False) -> TextChange:
        certain, self.open = ((), ()) if over else self._read_open()
        made += self._close(certain)
        if self.open and self._thinks and not self._is_headed:
            self.closed.append(_head(self.thoughts[-1].start))
            made.append(self.closed[-1])
        if self._again:
            self._again = False
            return TextChange(tuple(self.closed), self.open, again=True)
        return TextChange(tuple(made), self.open)

    def _feed(self, whole: bool) -> list[Piece]:
        """Give the splitters what is new; the pieces that were closed by it."""
        source = self.table.text
        parts = self._answer.add(source[self._seen :]) + (self._answer.end() if whole else [])
        self._seen = len(source)
        made: list[Piece] = []
        for part in parts:
            made += self._part(part)
            if self._format is None and not self.thoughts and self._closes_alone(source):
                self._again = True
                return self._feed(whole)
        return made

    def _part(self, part: Part) -> list[Piece]:
        start, end = self._fed, self._fed + len(part.text)
        if part.kind == "mark":
            self._fed = end
            made = self._pieces(self._splitter.skip(len(part.text)))
            if self._thinks:
                self._thinks = False
                self.thoughts[-1].end, self.thoughts[-1].closes = start, end
                self._marked = end
            return made
        if part.kind == "thought" and not self._thinks:
            self._thinks = True
            self.thoughts.append(Thought(start, opens=self._marked))
        elif part.kind != "thought":
            joins = self._said and self._said[-1][1] == start
            self._said.append((self._said.pop()[0] if joins else start, end))
        self._fed = self._marked = end
        return self._pieces(self._splitter.feed(part.text))

    def _closes_alone(self, source: str) -> bool:
        """Whether a closing tag came that nothing opened; then begin again, in a thought."""
        found = lone_closing_tag(source[: self._fed], self._searched)
        if found is None:
            self._searched = self._fed
            return False
        at, tag = found
        self._searched = at + len(tag)
        before = BlockSplitter()
        before.feed(source[:at])
        if before.in_fence or source[:at].endswith("`"):
            return False  # code that speaks of tags
        self._format = AnswerFormat(begins="thought", thought_end=tag)
        self._begin()
        return True

    def _pieces(self, blocks: Sequence[Block]) -> list[Piece]:
        """The pieces of `blocks`, which were closed under the thought that is open, if one is."""
        return self._close([piece for block in blocks for piece in self._parse(block)])

    def _close(self, pieces: Sequence[Piece]) -> list[Piece]:
        made = self._in_thought(pieces)
        self.closed += made
        return made

    def _parse(self, block: Block) -> tuple[Piece, ...]:
        if block.start < self._certain < block.end:
            return parse_block(self.table.text, self._certain, block.end, self._before)
        return parse_block(self.table.text, block.start, block.end)

    def _in_thought(self, pieces: Sequence[Piece]) -> list[Piece]:
        if not self._thinks or not pieces:
            return list(pieces)
        start = self.thoughts[-1].start
        inside = [replace(piece, thought=start) for piece in pieces]
        return inside if self._is_headed else [_head(start), *inside]

    @property
    def _is_headed(self) -> bool:
        """Whether the last thought has its head."""
        last = next((piece for piece in reversed(self.closed) if piece.kind == "thought"), None)
        return last is not None and last.thought == self.thoughts[-1].start

    def _read_open(self) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        """What the open block reads as: the pieces that are certain now, and the open ones."""
        source = self.table.text
        start, end = self._splitter.open_start, self._fed
        certain: tuple[Piece, ...] = ()
        pieces: tuple[Piece, ...]
        if code := self._splitter.open_code:
            pieces = (open_code_piece(source, code.start, code.body, end, code.language),)
        else:
            end = shown_end(source, start, end)
            if self._certain <= start:
                self._certain, self._before = start, ""
            if end - self._certain <= _LONGEST_OPEN and reads_early(source, start, end):
                read = read_open(source, self._certain, end, self._before)
                self._certain, self._before = read.start, read.before
                certain, pieces = read.pieces[: read.certain], read.pieces[read.certain :]
            else:
                piece = plain_piece(source, self._certain, end)
                pieces = (piece,) if piece.text else ()
        if self._thinks:
            pieces = tuple(replace(piece, thought=self.thoughts[-1].start) for piece in pieces)
        return certain, pieces


def _head(start: int) -> Piece:
    return Piece("thought", "", (), start, start, thought=start)
