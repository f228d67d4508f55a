"""Continuing an answer that ended early, editing one, and the figures of the result. Pure.

The continued answer stays one answer: its tokens are numbered through, and its figures cover all parts. The
reading map comes from the part that processed the prompt: the first one, unless the cache was lost in
between. Time between two parts is not counted.

Tokens that an edit does not touch stay as the model wrote them, so that they keep their tints and ids. The
person's text, and the remainder of a token that the edit touches, becomes one token with the id `TYPED`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.events import TYPED, Effective, Finished, Stats, Token
from core.settings import Settings

# The text of a token that ends inside a character.
_HALF = "\ufffd"


def can_go_on(finished: Finished, model: str) -> bool:
    """Whether `model` can continue: it began the answer, which neither reached its end nor filled the
    context.
    """
    stats = finished.stats
    return (
        finished.reason != "stop"
        and finished.effective.model == model
        and stats.tokens > 0
        and not 0 < stats.context_tokens <= stats.context_used_tokens
    )


def end_of(tokens: Sequence[Token], model: str, settings: Settings) -> Finished:
    """Returns the end of an interrupted answer as far as its tokens show; figures of the prompt are
    unknown.
    """
    origins = [token.origin for token in tokens]
    steps, ttft_s, last_s = tokens[-1].step, tokens[0].time_s, tokens[-1].time_s
    decode_s = last_s - ttft_s
    accepted, tested = origins.count("accepted"), _tested(tokens)
    stats = Stats(
        tokens=len(tokens),
        accepted=accepted,
        tested=tested,
        acceptance=accepted / tested if tested else 0.0,
        bonus=origins.count("bonus"),
        normal=origins.count("normal"),
        steps=steps,
        mean_per_step=len(tokens) / steps if steps else 0.0,
        ttft_s=ttft_s,
        decode_s=decode_s,
        total_s=last_s,
        tokens_per_s=(len(tokens) - 1) / decode_s if decode_s > 0 else 0.0,
    )
    format = tokens[0].format or AnswerFormat()
    effective = Effective(model, "", settings.drafting.drafter, settings, format=format)
    return Finished(tokens[0].request, "cancelled", stats, effective)


def _tested(tokens: Sequence[Token]) -> int:
    """Returns the number of verified drafted tokens: in each step the accepted ones and the first rejected
    one.
    """
    tested = 0
    for _, step in groupby(tokens, key=lambda token: token.step):
        here = list(step)
        accepted = [token for token in here if token.origin == "accepted"]
        # A step that verified a draft ends with the model's own token, unless the answer ended before it.
        whole = here[-1].origin == "bonus"
        refused = whole and (not accepted or accepted[-1].draft_index < accepted[-1].draft_length)
        tested += len(accepted) + refused
    return tested


def to_go_on_from(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Returns the `tokens` to continue from. Half a character at the end is removed; its other half
    follows.
    """
    held = list(tokens)
    for place in range(len(held) - 1, -1, -1):
        text = held[place].text.rstrip(_HALF)
        held[place] = replace(held[place], text=text)
        if text:
            break
    return tuple(held)


def placed(token: Token, turn_id: str, after: Token) -> Token:
    """Returns `token` of a part, numbered from the last token of the part before."""
    return replace(
        token,
        request=turn_id,
        step=after.step + token.step,
        position=after.position + 1 + token.position,
        time_s=after.time_s + token.time_s,
    )


def joined(first: Finished, then: Finished, begun: int, *, new_prompt: bool = False) -> Finished:
    """Returns the end of an answer in two parts, the first of `begun` characters.

    `new_prompt`: results of calls were read between the parts.
    """
    changes = dict.fromkeys((*first.effective.changes, *then.effective.changes))
    is_read = first.stats.is_read_again(then.stats) or (new_prompt and then.effective.reading != "dense")
    read = (then if is_read else first).effective
    effective = replace(
        then.effective,
        changes=tuple(changes),
        reading=read.reading,
        reading_reason=read.reading_reason,
        scorer=read.scorer,
        unmatched=read.unmatched,
    )
    return Finished(
        first.request,
        then.reason,
        first.stats.joined(then.stats),
        effective,
        tuple(dict.fromkeys((*first.sources, *then.sources))),
        then.stopped_by,
        None if then.repeats_from is None else begun + then.repeats_from,
    )


class Edit(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of an answer's source, replaced by `text`."""

    start: int
    end: int
    text: str


# A shorter text between two changes is part of one edit, so that single words of a rewritten sentence do not
# keep their tints.
_LEAST_KEPT_CHARACTERS = 12
# Longer stretches of changed lines are not compared word by word, which takes seconds.
_MOST_COMPARED_CHARACTERS = 60_000
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"[^\W\u2e80-\uffff]+|.", re.S)


def edits_between(before: str, after: str) -> Iterator[Edit]:
    """Yields the edits that turn `before` into `after`, in order."""
    at = place = 0
    for start, end, length in (*_kept(before, after), (len(before), len(after), 0)):
        if at < start or place < end:
            yield Edit(at, start, after[place:end])
        at, place = start + length, end + length


def _kept(before: str, after: str) -> Iterator[tuple[int, int, int]]:
    """Yields the texts that both have: their offsets in `before` and in `after`, and their length."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    yield 0, 0, head
    yield from (
        (head + at, head + place, length)
        for at, place, length in _shared(
            before[head : len(before) - tail], after[head : len(after) - tail], _LINES
        )
        if length >= _LEAST_KEPT_CHARACTERS
    )
    yield len(before) - tail, len(after) - tail, tail


def _shared(before: str, after: str, units: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Like `_kept`, in whole `units`; between equal lines, also in words."""
    one, other = units.findall(before), units.findall(after)
    starts, places = [0, *accumulate(map(len, one))], [0, *accumulate(map(len, other))]
    at = place = 0
    for block in SequenceMatcher(None, one, other).get_matching_blocks():
        start, end = starts[block.a], places[block.b]
        changed = before[at:start], after[place:end]
        if units is _LINES and all(changed) and sum(map(len, changed)) <= _MOST_COMPARED_CHARACTERS:
            yield from ((at + a, place + b, length) for a, b, length in _shared(*changed, _WORDS))
        at, place = starts[block.a + block.size], places[block.b + block.size]
        if block.size:
            yield start, end, at - start


def _common(first: str, second: str) -> int:
    """The number of characters at the beginning that both texts have."""
    pairs = enumerate(zip(first, second))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def with_edits(tokens: Sequence[Token], edits: Sequence[Edit]) -> tuple[Token, ...]:
    """Returns `tokens` with `edits`, which are in order and refer to the text before all of them."""
    kept = _without_end(tokens)
    source = "".join(token.text for token in kept)
    boundaries = list(_boundaries(kept))
    offsets = [offset for _, offset in boundaries]
    made: list[Token] = []
    done = 0  # boundary up to which the tokens are in `made`
    for low, high, some in _grouped(edits, offsets):
        first, last = boundaries[low][0], boundaries[high][0]
        made += kept[boundaries[done][0] : first]
        parts, at = [], offsets[low]
        for edit in some:
            parts += [source[at : edit.start], edit.text]
            at = edit.end
        text = "".join((*parts, source[at : offsets[high]]))
        # An empty one separates tokens that were not neighbours.
        if text or last < len(kept):
            near = made[-1] if made else kept[0]
            made.append(
                Token(near.request, TYPED, text, "normal", near.step, near.position, time_s=near.time_s)
            )
        done = high
    made += kept[boundaries[done][0] :]
    return tuple(each if each.position == at else replace(each, position=at) for at, each in enumerate(made))


def _grouped(edits: Sequence[Edit], offsets: Sequence[int]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Yields the edits that touch the same tokens, with the boundaries around them: indices of `offsets`."""
    group: list[Edit] = []
    low = high = 0
    for edit in edits:
        first, last = bisect_right(offsets, edit.start) - 1, bisect_left(offsets, edit.end)
        if group and first <= high:
            high = max(high, last)
        else:
            if group:
                yield low, high, group
            low, high, group = first, max(first, last), []
        group.append(edit)
    if group:
        yield low, high, group


def cut_after(tokens: Sequence[Token], end: int) -> tuple[Token, ...]:
    """Returns the tokens up to the one that contains the character before offset `end`."""
    last, at = next(each for each in _boundaries(tokens) if each[1] >= end)
    kept = tuple(tokens[:last])
    if at > end and kept[-1].id == TYPED:
        kept = (*kept[:-1], replace(kept[-1], text=kept[-1].text[: end - at]))
    return kept


def all_typed(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Returns one token with the text of `tokens`, for a model that did not write them."""
    text = "".join(token.text for token in tokens)
    return (
        replace(tokens[0], id=TYPED, text=text, origin="normal", draft_index=0, draft_length=0, source=""),
    )


# Figures that depend on the tokens. The others describe the prompt and the machine.
_OF_TOKENS = (
    *("tokens", "accepted", "tested", "acceptance", "bonus", "normal", "steps", "mean_per_step"),
    *("ttft_s", "decode_s", "total_s", "tokens_per_s", "positions", "drafted"),
)


def end_of_edited(finished: Finished, tokens: Sequence[Token]) -> Finished:
    """Returns the end of an answer whose tokens are now `tokens`."""
    counted = end_of(tokens, finished.effective.model, finished.effective.settings).stats
    stats = replace(finished.stats, **{name: getattr(counted, name) for name in _OF_TOKENS})
    return replace(finished, reason="cancelled", stats=stats, sources=(), stopped_by="", repeats_from=None)


def _boundaries(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the places between tokens where a character ends: the number of tokens and of characters before
    them. A token without text holds the first bytes of the next character.
    """
    yield 0, 0
    at = 0
    for number, token in enumerate(tokens, start=1):
        at += len(token.text)
        if token.text:
            yield number, at


def _without_end(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """`tokens` without the stop token and other tokens without text at the end."""
    last = len(tokens)
    while last and not tokens[last - 1].text:
        last -= 1
    return tuple(tokens[:last])
