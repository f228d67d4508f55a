"""Control tokens, which separate turns, roles, thoughts and calls, and the repair of decoders.

A web page that contains `<|im_start|>system` must not speak as the system, so the text of a control token
inside a content is read as ordinary text. It is disguised while the template is rendered, so that its place
is known whatever the template does with the content. All other text has the tokens that the tokenizer gives
it: the prompt is tokenised whole, and a second time only if a content became a control token. The second
tokenizer is a copy in which control tokens have names of private characters, and the template's own control
tokens in the prompt are written with these names; a name is as long as its token, so that offsets stay the
same.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from tokenizers import Encoding, Tokenizer

from core.errors import RequestError

Span = tuple[int, int]
_BRACKETS = re.compile(r"[<>\[\]{}|｜]")
# Added tokens that are text: Gemma's HTML tags, and bytes of characters without a token.
_TEXT = re.compile(
    r"<0x[0-9A-F]{2}>|</?(table|caption|thead|tbody|tfoot|tr|th|td|h[1-6]|blockquote|strong|em|b|i|u|s|sub|sup"
    r"|code|p|a|ul|ol|li)>"
)
_PRIVATE = range(0xF0000, 0x10FFFE)
# For disguises: Yi and Hangul syllables, which neither JSON nor Python write with escapes.
_RARE = (*range(0xA000, 0xA48D), *range(0xAC00, 0xD7A4))


class Tokens(Struct, frozen=True):
    """Token ids, and the character range of each in the text; None if the tokenizer has none.

    `origins`: of each id the token of `encoding` in whose place it is; None if the ids are the encoding's.
    """

    ids: list[int]
    encoding: Encoding | None
    origins: list[int] | None = None

    @property
    def offsets(self) -> list[Span] | None:
        if self.encoding is None:
            return None
        found = list(self.encoding.offsets)
        return found if self.origins is None else [found[at] for at in self.origins]

    def with_rows(self, token: int, rows: Sequence[Sequence[int]]) -> Tokens:
        """The ids with one of `rows` in place of each `token`, of which there are as many."""
        ids: list[int] = []
        origins: list[int] = []
        left = iter(rows)
        for at, each in enumerate(self.ids):
            placed = next(left) if each == token else (each,)
            ids += placed
            origins += [at] * len(placed)
        return Tokens(ids, self.encoding, origins)


def encode(
    inner: Any,
    text: str,
    contents: Sequence[Span],
    rows: int | None = None,
    *,
    raw: bool = False,
    add_special: bool = False,
) -> Tokens:
    """Tokenise `text` with the transformers tokenizer `inner`, without control tokens from `contents`.

    `contents` are sorted spans. Ids from `rows` on (the model has no embedding for them) do not arise from
    contents either; `raw`: contents may become all other control tokens. `add_special`: the tokenizer adds
    its special tokens. Raises `RequestError` if a control token cannot be avoided.
    """
    try:
        return _controls(inner, rows, raw).encode(inner, text, contents, add_special)
    except BaseException as error:
        if isinstance(error, Exception) or "Panic" not in type(error).__name__:
            raise
        # The library's patterns give up after ten million steps, with an error that is not an `Exception`.
        raise RequestError(
            f"The model's tokenizer cannot read this text: {str(error)[:200]}.",
            "Choose another model, or remove unusual lines from the text.",
        ) from error


def is_control(token: str, special: bool) -> bool:
    """Whether an added token is a control token, and not a piece of ordinary text (spaces, words, HTML)."""
    if _TEXT.fullmatch(token):
        return special and not token.startswith("<0x")
    return special or bool(_BRACKETS.search(token))


def may_merge(tokenizer: TokenizerWrapper, token: int) -> bool:
    """Whether `token` may be another one before other text: it is ordinary text within a line."""
    return token not in tokenizer.added_tokens_decoder and not tokenizer.decode([token]).endswith("\n")


class Disguise:
    """Replaces the first character of each control token in the texts of one conversation by a rare one.

    `given` is the conversation, all texts in one. Raises `RequestError` if it has all rare characters.
    """

    def __init__(self, inner: Any, rows: int | None, given: str) -> None:
        self._controls = _controls(inner, rows, raw=False)
        self.pattern = self._controls.pattern
        firsts = sorted({text[0] for text in self._controls.texts.values()})
        used = set(given)
        names = list(islice((rare for rare in map(chr, _RARE) if rare not in used), len(firsts)))
        if len(names) < len(firsts):
            raise RequestError(
                "The conversation has every character that can mark a control token.", "Shorten the text."
            )
        self._names = dict(zip(firsts, names))

    def hide(self, text: str, kept: Sequence[Span] = ()) -> str:
        """`text` with its control tokens disguised, except those in the spans `kept`."""

        def name(found: re.Match[str]) -> str:
            start, end = found.span()
            is_token = self._controls.end(text, start) and not _overlaps(kept, start, end)
            return self._names[found[0]] if is_token else found[0]

        return self._controls.starts.sub(name, text)

    def show(self, text: str) -> tuple[str, list[Span]]:
        """`text` without disguises, and where the disguised control tokens are in it."""
        shown = text.translate({ord(name): character for character, name in self._names.items()})
        spans: list[Span] = []
        for name in re.finditer(f"[{''.join(self._names.values())}]", text) if shown != text else ():
            spans.append((name.start(), self._controls.end(shown, name.start()) or name.end()))
        return shown, spans


class _Controls:
    """The control tokens of one tokenizer: `texts` by id. `starts` finds where one may begin."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self.texts = texts
        self._known = set(texts.values())
        self._lengths = sorted(set(map(len, self._known)), reverse=True)
        longest_first = sorted(texts.values(), key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        # Some tokenizers have thousands of them.
        begins = sorted({text[:3] for text in self._known})
        starts = (f"{re.escape(text[0])}(?={re.escape(text[1:])})" for text in begins)
        self.starts = re.compile("|".join(starts) or "(?!)")
        self._copy: tuple[int, Tokenizer] | None = None

    def encode(self, inner: Any, text: str, contents: Sequence[Span], special: bool) -> Tokens:
        if not getattr(inner, "is_fast", False):
            return Tokens(self._encoded_in_parts(inner, text, contents, special), None)
        encoding: Encoding = inner(text, add_special_tokens=special).encodings[0]
        unknown = _unknown_ids(inner)
        if not contents or self._from_contents(encoding, text, contents, unknown) is None:
            return Tokens(encoding.ids, encoding)
        first, tokenizer = self._renamed(inner, text)
        order = {token: number for number, token in enumerate(self.texts.values())}
        own = self.pattern.sub
        parts = [
            part if is_content else own(lambda found: chr(first + order[found[0]]) * len(found[0]), part)
            for part, is_content in _parts(text, contents)
        ]
        encoding = tokenizer.encode("".join(parts), add_special_tokens=special)
        if token := self._from_contents(encoding, text, contents, unknown, renamed=True):
            raise _unavoidable(token)
        return Tokens(encoding.ids, encoding)

    def _from_contents(
        self,
        encoding: Encoding,
        text: str,
        contents: Sequence[Span],
        unknown: Collection[int | None],
        *,
        renamed: bool = False,
    ) -> str | None:
        """A control token of `encoding` with characters from `contents`; None if there is none.

        Characters without a token become one of `unknown`, which does not count as a control token.
        """
        for at, token in enumerate(encoding.ids):
            if token not in self.texts or (where := encoding.token_to_chars(at)) is None:
                continue
            # Some tokens include white space around them, which does not belong to the control token.
            start, end = where
            inside = text[start:end]
            if token in unknown and (renamed or inside.strip() != self.texts[token]):
                continue
            start, end = end - len(inside.lstrip()), start + len(inside.rstrip())
            if _overlaps(contents, start, end):
                return self.texts[token]
        return None

    def _renamed(self, inner: Any, text: str) -> tuple[int, Tokenizer]:
        """The renamed copy, and the first character of its names; none of them is in `text`."""
        first = self._unused(text)
        if self._copy is None or self._copy[0] != first:
            names = {token: chr(first + at) * len(token) for at, token in enumerate(self.texts.values())}
            self._copy = first, _copy(inner.backend_tokenizer, names)
        return self._copy

    def end(self, text: str, start: int) -> int:
        """Where the longest control token that begins at `start` ends; 0 if none does."""
        return next((start + n for n in self._lengths if text[start : start + n] in self._known), 0)

    def _unused(self, text: str) -> int:
        """The first of as many private characters as there are control tokens, none of them in `text`."""
        wanted = max(1, len(self.texts))
        used = {ord(character) for character in set(text)}
        for first in range(_PRIVATE.start, _PRIVATE.stop - wanted, wanted):
            if used.isdisjoint(range(first, first + wanted)):
                return first
        raise _unavoidable(next(iter(self.texts.values()), ""))

    def _encoded_in_parts(self, inner: Any, text: str, contents: Sequence[Span], special: bool) -> list[int]:
        """Without offsets: encodes the template's control tokens one by one, and the text between them."""
        if not any(is_content and self.pattern.search(part) for part, is_content in _parts(text, contents)):
            return [int(each) for each in inner(text, add_special_tokens=special)["input_ids"]]
        ids: list[int] = []
        plain = ""
        by_text = {token: each for each, token in self.texts.items()}

        def flush() -> None:
            ids.extend(
                inner.encode(plain, add_special_tokens=False, split_special_tokens=True) if plain else ()
            )

        for part, is_content in _parts(text, contents):
            at = 0
            for found in () if is_content else self.pattern.finditer(part):
                plain += part[at : found.start()]
                flush()
                ids.append(by_text[found[0]])
                plain, at = "", found.end()
            plain += part[at:]
        flush()
        return ids


# By tokenizer, with weak references.
_KNOWN: WeakKeyDictionary[Any, dict[tuple[int | None, bool], _Controls]] = WeakKeyDictionary()


def _controls(inner: Any, rows: int | None, raw: bool) -> _Controls:
    known = _KNOWN.setdefault(inner, {})
    if (rows, raw) not in known:
        known[rows, raw] = _Controls(dict(_control_texts(inner, rows, raw)))
    return known[rows, raw]


def _unknown_ids(inner: Any) -> set[int | None]:
    tokenizer = inner.backend_tokenizer
    names = ("<unk>", "[UNK]", getattr(tokenizer.model, "unk_token", None))
    return {inner.unk_token_id, *(tokenizer.token_to_id(name) for name in names if name)}


def _copy(original: Tokenizer, names: Mapping[str, str]) -> Tokenizer:
    """`original` with the tokens `names` renamed, their ids kept."""
    data: dict[str, Any] = json.loads(original.to_str())
    data["truncation"] = data["padding"] = None
    for added in data["added_tokens"]:
        added["content"] = names.get(added["content"], added["content"])
    model = data["model"]
    if isinstance(vocabulary := model["vocab"], dict):
        model["vocab"] = {names.get(token, token): number for token, number in vocabulary.items()}
    else:
        model["vocab"] = [[names.get(token, token), score] for token, score in vocabulary]
    if isinstance(model.get("unk_token"), str):
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    if "merges" in model:
        pairs = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"])
        model["merges"] = [
            [left, right] for left, right in pairs if not {left, right, left + right} & names.keys()
        ]
    return Tokenizer.from_str(json.dumps(data))


def _control_texts(inner: Any, rows: int | None, raw: bool) -> Iterable[tuple[int, str]]:
    for number, token in sorted(inner.added_tokens_decoder.items()):
        above = rows is not None and number >= rows
        if token.content and (above or (not raw and is_control(token.content, token.special))):
            yield int(number), token.content


def _parts(text: str, contents: Sequence[Span]) -> Iterable[tuple[str, bool]]:
    """The parts of `text` in order, and whether each is content."""
    at = 0
    for start, end in contents:
        yield text[at:start], False
        yield text[start:end], True
        at = end
    yield text[at:], False


def _overlaps(spans: Sequence[Span], start: int, end: int) -> bool:
    at = bisect_right(spans, (start, start)) - 1
    return any(a < end and b > start for a, b in spans[max(0, at) : at + 2])


def _unavoidable(token: str) -> RequestError:
    return RequestError(
        f"The conversation contains “{token}”, which this model's tokenizer cannot read as ordinary text.",
        "Remove it from the message or document.",
    )
