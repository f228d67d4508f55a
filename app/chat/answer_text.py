"""AnswerText: parses an answer's Markdown source into pieces while it grows. No Qt.

Pieces of complete blocks are closed and never change. The pieces of the last block are open: plain text, code
after an opening fence, or the first list items. Parts of an open block that cannot change any more are
closed early, so that only its end is parsed again. Pieces of a thought contain its source offset and follow a
head piece without text.

The texts of the tokens make the answer's source. Offsets are Python string indices into it, ranges are
end-exclusive. A token without text (a later one completes its bytes, or it ended the answer) has an empty
range; the next token with text has the character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, groupby

from msgspec import Struct
from msgspec.structs import replace

from app.chat import strings
from app.chat.tools import strings as tools_strings
from app.richtext.markdown.blocks import Block, BlockSplitter, reads_early, shown_end
from app.richtext.markdown.markdown import parse_block, read_open
from app.richtext.markdown.piece import (
    Piece,
    Span,
    TextSegment,
    open_code_piece,
    plain_piece,
)
from app.session.chats.answers import Edit, edits_between
from app.session.chats.parts import PartSpan, PartSplitter, token_ranges, words_of
from app.session.tools.calls import CallRecord
from core.answer_format import AnswerFormat, Part
from core.events import TYPED, Origin, Token

_LINE_END = re.compile("\r\n|[\r\u2028\u2029]")
_CHARACTER = re.compile("\r\n|.", re.S)


def shown_origin(token: Token, before: Token | None) -> Origin:
    """The class that the window shows for `token`, whose predecessor is `before`.

    A bonus follows at least one accepted token of its step. The worker also counts a token after an entirely
    rejected draft as a bonus; it is shown as a normal one.
    """
    alone = before is None or before.step != token.step or before.origin != "accepted"
    return "normal" if token.origin == "bonus" and alone else token.origin


class TokenTable:
    """The tokens of one answer and their ranges in its source. Tokens are only appended."""

    def __init__(self) -> None:
        self._tokens: list[Token] = []
        self.starts: list[int] = []  # offset of each
        self._parts: list[str] = []
        self.length = 0
        self._per_step: Counter[int] = Counter()
        self._origins: list[Origin] = []
        self._accepted = [0]  # how many of the tokens before each were accepted drafts

    def extend(self, tokens: Sequence[Token]) -> str:
        """Add `tokens`; returns their text."""
        for token in tokens:
            before = self._tokens[-1] if self._tokens else None
            self._origins.append(shown_origin(token, before))
            self._tokens.append(token)
            self.starts.append(self.length)
            self.length += len(token.text)
            self._per_step[token.step] += token.id != TYPED
            self._accepted.append(self._accepted[-1] + (token.origin == "accepted"))
        added = "".join(token.text for token in tokens)
        self._parts.append(added)
        return added

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> Token:
        return self._tokens[index]

    def origin_of(self, index: int) -> Origin:
        """The class that the window shows for that token: see `shown_origin`."""
        return self._origins[index]

    @property
    def tokens(self) -> Sequence[Token]:
        """All of them, in order. Not a copy: do not change it."""
        return self._tokens

    @property
    def text(self) -> str:
        """The whole source."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def steps(self) -> int:
        """Number of model steps that produced tokens."""
        return len(self._per_step)

    def in_step(self, step: int) -> int:
        """How many tokens of the model that step gave."""
        return self._per_step[step]

    def accepted_in(self, tokens: range) -> int:
        """How many of the tokens with these numbers (a step of 1) were accepted drafts."""
        return self._accepted[tokens.stop] - self._accepted[tokens.start] if tokens else 0

    def range_of(self, index: int) -> tuple[int, int]:
        """Where the token's own text is; empty if it has none."""
        start = self.starts[index]
        return start, start + len(self._tokens[index].text)

    def at(self, offset: int) -> int:
        """The token that holds the character at `offset` (0 ≤ offset < length)."""
        # Tokens without text start where the next one does, so the last of equal starts has it.
        return bisect_right(self.starts, offset) - 1

    def shown_by(self, index: int) -> int | None:
        """The token whose text shows this one: itself, or the next with text, or None at the end."""
        for later in range(index, len(self._tokens)):
            if self._tokens[later].text:
                return later
        return None


def spans_of(segments: Sequence[TextSegment], table: TokenTable, first_token: int = 0) -> Iterator[Span]:
    """Whose the visible characters are, in order, from token `first_token` on.

    Together the spans hold every visible character that has a source, once.
    """
    open_span: Span | None = None
    for segment in segments:
        # No token covers the end of the text.
        source_end = min(segment.source + segment.length, table.length)
        offset = segment.source
        if first_token:
            offset = max(offset, table.range_of(first_token)[0])
        while offset < source_end:
            token = table.at(offset)
            stop = min(source_end, table.range_of(token)[1])
            start = segment.start + offset - segment.source
            end = start + stop - offset
            if open_span and open_span.token == token and open_span.end == start:
                open_span = Span(token, open_span.start, end)
            else:
                if open_span:
                    yield open_span
                open_span = Span(token, start, end)
            offset = stop
    if open_span:
        yield open_span


class PartFigures(Struct, frozen=True):
    """Token count and duration of a thought, or of the answer without its thoughts.

    A thought contains its tags. Durations add up to the time from the first to the last token of the answer.
    `accepted` is the number of accepted drafted tokens, None if the whole answer has none.
    """

    tokens: int
    accepted: int | None
    took_s: float

    @property
    def percent(self) -> int | None:
        """The accepted percentage."""
        if self.accepted is None:
            return None
        return round(100 * self.accepted / self.tokens) if self.tokens else 0


def figures_of(table: TokenTable, tokens: range) -> PartFigures:
    """The figures of these token indices. The time before the answer's first token is not counted."""
    if not tokens:
        return PartFigures(0, None, 0.0)
    before_s = table[max(0, tokens.start - 1)].time_s
    took_s = max(0.0, table[tokens[-1]].time_s - before_s)
    accepted = table.accepted_in(tokens) if table.accepted_in(range(len(table))) else None
    return PartFigures(len(tokens), accepted, took_s)


def figures_without(table: TokenTable, thoughts: Sequence[range]) -> PartFigures | None:
    """The figures of all tokens outside `thoughts`, which are in order; None without thoughts."""
    if not thoughts:
        return None
    whole = figures_of(table, range(len(table)))
    apart = [figures_of(table, tokens) for tokens in thoughts]
    return PartFigures(
        whole.tokens - sum(part.tokens for part in apart),
        None if whole.accepted is None else whole.accepted - sum(part.accepted or 0 for part in apart),
        max(0.0, whole.took_s - sum(part.took_s for part in apart)),
    )


# A longer open block is shown as plain text until it is complete, because it is parsed again for each token.
_MAX_OPEN_CHARACTERS = 8_000
_BEYOND = 2**40


class TextChange(Struct, frozen=True):
    """New `closed` pieces, and all pieces that are `open` now.

    `again`: the whole text was parsed again, and `closed` contains all closed pieces.
    """

    closed: tuple[Piece, ...]
    open: tuple[Piece, ...]
    again: bool = False


class AnswerText:
    """`table` holds the tokens. The answer's format comes from its first token or from `use_format`.

    `tools` and `calls` are those of `Answer`. Calls and results are code, which
    `answer_pieces` and `answer_source` exclude; a result ends the generation before it.

    A call with a record has a head piece, like a thought; below it are its code, its result and the images
    of that. A call that waits for permission is not shown, since its card shows it. `call_at` has the records
    by the source offset that names the head.
    """

    def __init__(self, tools: Sequence[str] = (), calls: Sequence[CallRecord] = ()) -> None:
        self.table = TokenTable()
        self._tools, self.calls = tools, tuple(calls)
        self._format: AnswerFormat | None = None
        self._begin()

    def _begin(self) -> None:
        """Reset the parser; the tokens are kept."""
        self.open: tuple[Piece, ...] = ()
        self.finished = False
        self.repeats_from: int | None = None  # where the folded repetition begins
        self._again = False
        self.call_at: dict[int, CallRecord] = {}
        self._others = count()  # calls without code of their own
        self._coming = [(after, list(calls)) for after, calls in groupby(self.calls, lambda call: call.after)]
        self._beside: list[Piece] = []  # calls and results
        self._earlier: tuple[list[PartSpan], list[Piece]] = [], []  # of earlier generations
        self._begin_generation()

    def _begin_generation(self) -> None:
        self._parts = PartSplitter(self._format, self._tools)
        self._first = len(self.table.text)  # source offset of the generation
        self._begin_blocks()

    def _begin_blocks(self) -> None:
        self.closed = list(self._earlier[1])
        self._splitter = BlockSplitter()
        self._splitter.skip(self._first)
        self._fed = self._first  # end of the source in `_splitter`
        self._certain = self._first  # end of the closed pieces of the open block
        self._before = ""  # prefix that opens the same lists at `_certain`
        self._thought = -1  # source offset of the open thought

    def show_calls(self, calls: Sequence[CallRecord]) -> TextChange | None:
        """Take the calls as they are now. None if all pieces stay as they are."""
        before, self.calls = self.calls, tuple(calls)
        by_id = {call.id: call for call in calls}
        self.call_at = {key: by_id.get(call.id, call) for key, call in self.call_at.items()}
        if list(map(_shape, before)) == list(map(_shape, calls)):
            return None
        tokens, finished, repeats_from = self.table.tokens, self.finished, self.repeats_from
        self.table = TokenTable()
        self._begin()
        self.append(tokens)
        if finished:
            self.finish(repeats_from)
        return TextChange(tuple(self.closed), self.open, again=True)

    @property
    def call_tokens(self) -> list[range]:
        """The token indices of each call that the model wrote."""
        spans = self._spans
        ranges = token_ranges(spans, self.table.starts)
        return [own for span, own in zip(spans, ranges) if span.kind == "call" and own]

    def use_format(self, format: AnswerFormat) -> None:
        """Sets the format. Ignored after the first token, and for the default format."""
        if not len(self.table) and format != AnswerFormat():
            self._format = format
            self._begin()

    @property
    def pieces(self) -> list[Piece]:
        """All pieces in order."""
        return [*self.closed, *self.open]

    @property
    def answer_pieces(self) -> list[Piece]:
        """The pieces without thoughts; a folded repetition is part of the answer."""
        words = (each for each in self.pieces if each.kind != "thought" and each not in self._beside)
        return [replace(each, thought=-1) for each in words if each.thought in (-1, self.repeats_from)]

    @property
    def answer_source(self) -> str:
        """The source without thoughts and marks."""
        source = self.table.text
        if self._is_whole:
            return source
        return words_of(source, (source[start:end] for start, end in self._texts))

    @property
    def answer_ranges(self) -> list[tuple[int, int]]:
        """The ranges of the source that `answer_source` consists of."""
        return [(0, len(self.table.text))] if self._is_whole else self._texts

    @property
    def _is_whole(self) -> bool:
        """Whether all of the source is the answer: no part is left out, but its end is not split yet."""
        is_split = self._first + self._parts.end >= len(self.table.text)
        return not (is_split or self.thoughts or self._beside)

    @property
    def _texts(self) -> list[tuple[int, int]]:
        """The ranges of the source without thoughts and marks."""
        return [(span.start, span.end) for span in self._spans if span.kind == "text"]

    @property
    def thoughts(self) -> list[PartSpan]:
        return [span for span in self._spans if span.kind == "thought"]

    @property
    def _spans(self) -> list[PartSpan]:
        """The spans of all generations."""
        earlier, first, spans = self._earlier[0], self._first, self._parts.spans
        return [*earlier, *(span.moved(first) for span in spans)] if first else spans

    def edits(self, text: str) -> tuple[Edit, ...]:
        """The edits of the source after which `answer_source` is `text`; thoughts and marks stay.

        Line ends are equal to each other, because text fields have only one kind.
        """
        source, shown = self.table.text, self.answer_source
        ranges = [(0, len(source))] if shown == source else self._texts
        offsets = [offset for start, end in ranges for offset in range(start, end)]
        skipped = "".join(source[offset] for offset in offsets).index(shown)
        # The source range of each character of `shown`, with one for each line end.
        places = [
            (offsets[skipped + match.start()], offsets[skipped + match.end() - 1] + 1)
            for match in _CHARACTER.finditer(shown)
        ]
        found: list[Edit] = []
        for edit in edits_between(_LINE_END.sub("\n", shown), _LINE_END.sub("\n", text)):
            changed = places[edit.start : edit.end]
            if not changed:
                at = places[edit.start][0] if edit.start < len(places) else places[-1][1] if places else 0
                changed = [(at, at)]
            typed = edit.text
            for start, end in _runs(changed):
                found.append(Edit(start, end, typed))
                typed = ""
        return tuple(found)

    @property
    def thought_tokens(self) -> list[range]:
        """The token indices of each thought with its tags; empty thoughts are left out."""
        source = self.table.text
        found = self._thought_tokens
        return [own for span, own in found if own and source[span.start : span.end].strip()]

    @property
    def _thought_tokens(self) -> list[tuple[PartSpan, range]]:
        spans = self._spans
        ranges = token_ranges(spans, self.table.starts)
        return [(span, own) for span, own in zip(spans, ranges) if span.kind == "thought"]

    def thought_figures(self, start: int) -> tuple[PartFigures, bool]:
        """The figures of the thought at source offset `start`, and whether it is complete."""
        span, own = next(found for found in self._thought_tokens if found[0].start == start)
        return figures_of(self.table, own), self.finished or not span.open

    @property
    def figures(self) -> PartFigures | None:
        """The figures of the answer without its thoughts; None without thoughts."""
        return figures_without(self.table, self.thought_tokens)

    def append(self, tokens: Sequence[Token]) -> TextChange:
        if tokens and tokens[0].format:
            self.use_format(tokens[0].format)
        made: list[Piece] = []
        while self._coming and self._coming[0][0] <= len(self.table) + len(tokens):
            after, calls = self._coming.pop(0)
            own = max(0, after - len(self.table))
            self.table.extend(tokens[:own])
            tokens = tokens[own:]
            self._end_generation(calls)
        self.table.extend(tokens)
        return self._change(made + self._feed(whole=False))

    def finish(self, repeats_from: int | None = None) -> TextChange:
        """Close all pieces; no more tokens follow. Repetitions from an offset on can be folded."""
        self.finished = True
        made: list[Piece] = []
        while self._coming:
            self._end_generation(self._coming.pop(0)[1])
        made += self._feed(whole=True)
        made += self._pieces(self._splitter.finish())
        change = self._change(made, over=True)
        if repeats_from is None or not self._fold(repeats_from):
            return change
        return TextChange(tuple(self.closed), (), again=True)

    def _fold(self, start: int) -> bool:
        """Make the source from `start` on foldable like a thought. A paragraph is divided there; another
        piece, or one inside a thought, stays whole.
        """
        source = self.table.text
        first = next(
            (at for at, piece in enumerate(self.closed) if piece.source_end > start), len(self.closed)
        )
        pieces = self.closed[first:]
        if any(piece.thought >= 0 for piece in pieces):
            return False
        if pieces and pieces[0].source_start < start:
            divided, *pieces = pieces
            kept: tuple[Piece, ...] = (divided,)
            if divided.kind == "text" and not (divided.depth or divided.quotes):
                kept = parse_block(source, divided.source_start, start)
                pieces = [*parse_block(source, start, divided.source_end), *pieces]
            self.closed[first : first + 1] = kept
            first += len(kept)
        if not pieces:
            return False
        self.repeats_from = start
        self.closed[first:] = [_head(start), *(replace(piece, thought=start) for piece in pieces)]
        return True

    # ---- inside

    def _change(self, made: list[Piece], over: bool = False) -> TextChange:
        certain, self.open = ((), ()) if over else self._read_open()
        made += self._close(certain)
        if self.open and self._thought >= 0 and not self._is_headed:
            self.closed.append(_head(self._thought))
            made.append(self.closed[-1])
        if self._again:
            self._again = False
            return TextChange(tuple(self.closed), self.open, again=True)
        return TextChange(tuple(made), self.open)

    def _feed(self, whole: bool) -> list[Piece]:
        """Pass new source to the splitters. Returns the pieces closed by it."""
        parts, again = self._parts.read(self.table.text[self._first :], whole=whole)
        if again:
            self._begin_blocks()
            self._again = True
        return [piece for part in parts for piece in self._part(part)]

    def _end_generation(self, calls: Sequence[CallRecord]) -> None:
        """Close the pieces of the generation that wrote `calls`, which take the places of their code."""
        self._feed(whole=True)
        self._pieces(self._splitter.finish())
        self._thought = -1
        first = len(self._earlier[1])
        written = [piece for piece in self.closed[first:] if piece in self._beside]
        self._beside = [piece for piece in self._beside if piece not in written]
        shown = [(self._key(written[n : n + 1]), call) for n, call in enumerate(calls)]
        closed: list[Piece] = []
        for piece in self.closed[first:]:
            if piece not in written:
                closed.append(piece)
                continue
            # Several calls may be in one piece, the last one of the generation.
            own = 1 if piece is not written[-1] else len(shown)
            closed += self._called(shown[:own], piece, piece.source_end)
            shown = shown[own:]
        closed += self._called(shown, None, len(self.table.text))
        self.closed[first:] = closed
        self._again = True
        self._earlier = self._spans, list(self.closed)
        self._begin_generation()

    def _key(self, code: Sequence[Piece]) -> int:
        """The number that names a call's head: where its code begins, or one beyond all offsets."""
        return code[0].source_start if code else _BEYOND + next(self._others)

    def _called(self, calls: Sequence[tuple[int, CallRecord]], code: Piece | None, at: int) -> list[Piece]:
        """The pieces of calls with their keys, after `code`, which shows them as the model wrote them."""
        made: list[Piece] = []
        for number, (key, call) in enumerate(calls):
            self.call_at[key] = call
            parts = [code] if code is not None and number == 0 else []
            if call.state != "waiting":
                made.append(Piece("thought", "", (), parts[0].source_start if parts else at, at, thought=key))
            if not call.is_open:
                parts += _result(call, at)
            inside = [replace(piece, thought=key) for piece in parts]
            self._beside += inside
            made += inside
        if code is not None and not calls:
            self._beside.append(code)
            made.append(code)
        return made

    def _add_beside(self, piece: Piece) -> list[Piece]:
        self._beside.append(piece)
        return self._close([piece])

    def _part(self, part: Part) -> list[Piece]:
        start, self._fed = self._fed, self._fed + len(part.text)
        if part.kind == "call":
            made = self._pieces(self._splitter.skip(len(part.text)))
            self._thought = -1
            text, end = part.text.strip("\n"), start + len(part.text)
            segments = (TextSegment(0, start + part.text.index(text), len(text)),)
            return made + self._add_beside(Piece("code", text, segments, start, end, language=strings.CALL))
        if part.kind == "mark":
            made = self._pieces(self._splitter.skip(len(part.text)))
            self._thought = -1
            return made
        made = []
        if (part.kind == "thought") != (self._thought >= 0):
            made = self._pieces(self._splitter.skip(0))
            self._thought = start if part.kind == "thought" else -1
        return made + self._pieces(self._splitter.feed(part.text))

    def _pieces(self, blocks: Sequence[Block]) -> list[Piece]:
        """The closed pieces of `blocks`, assigned to the open thought."""
        return self._close([piece for block in blocks for piece in self._parse(block)])

    def _close(self, pieces: Sequence[Piece]) -> list[Piece]:
        made = self._in_thought(pieces)
        self.closed += made
        return made

    def _parse(self, block: Block) -> tuple[Piece, ...]:
        if block.end <= self._certain:  # all its pieces are closed already
            return ()
        if block.start < self._certain:
            return parse_block(self.table.text, self._certain, block.end, self._before)
        return parse_block(self.table.text, block.start, block.end)

    def _in_thought(self, pieces: Sequence[Piece]) -> list[Piece]:
        start = self._thought
        if start < 0 or not pieces:
            return list(pieces)
        inside = [replace(piece, thought=start) for piece in pieces]
        return inside if self._is_headed else [_head(start), *inside]

    @property
    def _is_headed(self) -> bool:
        """Whether the last thought has its head piece."""
        last = next((piece for piece in reversed(self.closed) if piece.kind == "thought"), None)
        return last is not None and last.thought == self._thought

    def _read_open(self) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        """Parse the open block. Returns the pieces that cannot change any more, and the open ones."""
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
            if end - self._certain <= _MAX_OPEN_CHARACTERS and reads_early(source, start, end):
                read = read_open(source, self._certain, end, self._before)
                self._certain, self._before = read.start, read.before
                certain, pieces = read.pieces[: read.certain], read.pieces[read.certain :]
            else:
                piece = plain_piece(source, self._certain, end)
                pieces = (piece,) if piece.text else ()
        if self._thought >= 0:
            pieces = tuple(replace(piece, thought=self._thought) for piece in pieces)
        return certain, pieces


def _runs(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins ranges that touch. They are in order."""
    begin, last = ranges[0]
    for start, end in ranges[1:]:
        if start != last:
            yield begin, last
            begin = start
        last = end
    yield begin, last


def _result(call: CallRecord, at: int) -> list[Piece]:
    """The pieces of a result: its images, and its text with the descriptions of other parts."""
    made = [Piece("images", "", (), at, at, level=len(call.images))] if call.images else []
    if text := tools_strings.shown_result(call):
        language = tools_strings.result_of(call.tool or call.name, call.server)
        made.append(Piece("code", text, (), at, at, language=language))
    return made


def _shape(call: CallRecord) -> tuple[object, ...]:
    """The properties of a call on which its pieces depend."""
    waits = call.state == "waiting"
    return call.id, call.after, waits, call.is_open, call.result, call.images, call.left_out


def _head(start: int) -> Piece:
    return Piece("thought", "", (), start, start, thought=start)
