"""Limits of tokenizer.json, which is untrusted: what its rules may do to a text, tried before it is used.

A normaliser can double a text thirty times, and a pattern can take for ever on a short line; neither can be
interrupted in the tokenizer library. Growth is computed from the rules. Patterns are tried in a process with
limits, on texts of their own characters; a file that passed is not tried again. What a pattern does to texts
that are unlike all of these is not covered: the window then offers to restart the worker.
"""

from __future__ import annotations

import base64
import hashlib
import os
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import ModelError, RequestError, reason_of
from core.folders.json_files import read_bytes
from core.system.child_bounds import LineOutput, read_within
from core.system.children import child_command
from core.system.files import write_atomic
from core.system.paths import cache_dir
from core.system.prepared import prepared
from core.system.private import make_folder
from core.system.reader_process import ReaderFaultError, ReaderProcess

MOST_BYTES = 100_000_000
# Real tokenizers at most double the characters of a text.
_MOST_GROWTH = 64
_MOST_RULES = 100
_MOST_TOKEN_CHARACTERS = 10_000
_MOST_PADDING = 8_192
_MOST_WORD_CHARACTERS = 10_000
# The trial of a tokenizer with 260,000 tokens takes 3 s and 900 MB on a slow machine.
_TRIAL_S = 60.0
_TRIAL_CPU_S = 20
_TRIAL_BYTES = 3 << 30
_REPEATED = 400
_SCRIPTS = "aZäß9 \t\n.,!?'\"-_/\\()[]{}<>@#$%^&*+=|~`éñçøЖשع漢字かな한ไ😀\u200d\u0301\u3000"
_CHOOSE = "Choose another model, or download its tokenizer files again."


class _Model(Struct):
    vocab: dict[str, int] | list[tuple[str, float]]
    max_input_chars_per_word: int = 0


class _Added(Struct):
    id: int
    content: str


class TokenizerFile(Struct):
    """The parts of tokenizer.json that Draftlight reads itself."""

    model: _Model
    added_tokens: list[_Added] = []
    normalizer: Any = None
    pre_tokenizer: Any = None
    decoder: Any = None
    padding: Any = None

    def vocabulary(self) -> dict[str, int]:
        """Ids by token, with the added tokens."""
        given = self.model.vocab
        pieces = (
            given if isinstance(given, dict) else {token: index for index, (token, _) in enumerate(given)}
        )
        return pieces | {each.content: each.id for each in self.added_tokens if each.content not in pieces}


def read_tokenizer(path: Path) -> TokenizerFile:
    """Raises `OSError`, and `ValueError` for a file of another shape."""
    return _parsed(read_bytes(path, MOST_BYTES))


def _parsed(content: bytes) -> TokenizerFile:
    try:
        return msgspec.json.decode(content, type=prepared(TokenizerFile))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_tokenizer(path: Path) -> None:
    """Raises `ModelError` if the tokenizer could exhaust memory or time. The file `path` may be missing."""
    try:
        content = read_bytes(path, MOST_BYTES)
        file = _parsed(content)
        rules = [list(_rules(part)) for part in (file.normalizer, file.pre_tokenizer, file.decoder)]
        why = _why_too_much(file, rules)
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {reason_of(error)}.", _CHOOSE) from error
    if why:
        raise ModelError(f"The tokenizer in {path} {why}.", _CHOOSE)
    if any(_pattern(rule, "Regex") for rule in (*rules[0], *rules[1], *rules[2])):
        _try_once(path, hashlib.sha256(content).hexdigest())


def _why_too_much(file: TokenizerFile, rules: Sequence[Sequence[dict[str, Any]]]) -> str:
    if sum(map(len, rules)) > _MOST_RULES:
        return f"has more than {_MOST_RULES} rules"
    # The pre-tokenizer gets what the normaliser wrote; the decoder works on tokens.
    growth = max(_growth((*rules[0], *rules[1])), _growth(rules[2]))
    if growth > _MOST_GROWTH:
        return f"can make a text {growth:,.0f} times as long; at most {_MOST_GROWTH} times is accepted"
    longest = max(map(len, file.vocabulary()), default=0)
    if longest > _MOST_TOKEN_CHARACTERS:
        return f"has a token of {longest:,} characters; at most {_MOST_TOKEN_CHARACTERS:,} are accepted"
    if file.model.max_input_chars_per_word > _MOST_WORD_CHARACTERS:
        return f"accepts words of {file.model.max_input_chars_per_word:,} characters, which takes too long"
    padding = file.padding if isinstance(file.padding, dict) else {}
    strategy = padding.get("strategy")
    fixed = strategy.get("Fixed") if isinstance(strategy, dict) else 0
    if max((each for each in (fixed, padding.get("pad_to_multiple_of")) if each), default=0) > _MOST_PADDING:
        return f"fills every text up to more than {_MOST_PADDING:,} tokens"
    return ""


def _rules(part: Any) -> Iterator[dict[str, Any]]:
    """The single rules of a part, in order; sequences may be nested."""
    if not isinstance(part, dict):
        return
    inner = next((part[key] for key in ("normalizers", "pretokenizers", "decoders") if key in part), None)
    if isinstance(inner, list):
        for each in inner:
            yield from _rules(each)
    else:
        yield part


def _growth(rules: Sequence[dict[str, Any]]) -> float:
    """Limit of the growth of a long text by these rules; patterns are tried instead."""
    growth = 1.0
    for rule in rules:
        match rule.get("type"):
            case "Replace":
                pattern, content = _pattern(rule, "String"), rule.get("content")
                if pattern is not None and isinstance(content, str):
                    growth *= max(1.0, len(content) / len(pattern)) if pattern else 1.0 + len(content)
            case "ByteLevel":  # a byte becomes a character of one or two bytes
                growth *= 2
            case "Precompiled":
                map = base64.b64decode(rule.get("precompiled_charsmap") or "")
                replacements = map[4 + int.from_bytes(map[:4], "little") :].split(b"\0")
                growth *= max(1.0, max(len(each) for each in replacements) / 4)
            case "Prepend" | "Metaspace":  # once, or once a word
                written = rule.get("prepend", rule.get("replacement"))
                growth *= max(1, len(written)) if isinstance(written, str) else 1
            case _:
                pass
    return growth


def _pattern(rule: dict[str, Any], kind: str) -> str | None:
    pattern = rule.get("pattern")
    found = pattern.get(kind) if isinstance(pattern, dict) else None
    return found if isinstance(found, str) else None


# ---- the trial


def _try_once(path: Path, digest: str) -> None:
    passed = cache_dir() / "tokenizers" / digest[:32]
    if passed.is_file():
        return
    command = [*child_command("--try-tokenizer"), str(path.absolute())]
    process = ReaderProcess(command, silence_s=_TRIAL_S, whole_s=_TRIAL_S, most_bytes=1 << 20)
    why = "has a pattern that fails for a short text"  # or the process ended
    try:
        for line in process.lines():
            why = str(msgspec.json.decode(line))
    except ReaderFaultError as fault:
        if fault.kind == "not started":
            raise ModelError(f"The tokenizer in {path} cannot be tried: {fault}.", "Start again.") from fault
        why = _TOO_SLOW
    if why:
        raise ModelError(f"The tokenizer in {path} {why}.", _CHOOSE)
    try:
        make_folder(passed.parent)
        write_atomic(passed, b"", durable=False)
    except OSError:
        pass  # it is tried again


_TOO_SLOW = "takes too long for a short text"


def main(arguments: Sequence[str]) -> int:
    """The process of a trial: writes why the tokenizer in the file `arguments[0]` is refused, or nothing."""
    output = LineOutput()
    # The library prints its panics and Python their tracebacks; the parent reports them in a sentence.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    os.close(silent)

    def write(why: str) -> None:
        output.write(msgspec.json.encode(why))

    def try_out() -> None:
        write(_tried(Path(arguments[0])))

    too_large = RequestError("needs too much memory for a short text", "")
    return read_within(
        _TRIAL_BYTES,
        _TRIAL_CPU_S,
        try_out,
        lambda error: write(error.message),
        too_large,
        lambda name: RequestError(f"fails for a short text ({name})", ""),
    )


def _tried(path: Path) -> str:
    from tokenizers import Tokenizer

    file = read_tokenizer(path)
    tokenizer = Tokenizer.from_file(str(path))
    rules = [rule for part in (file.normalizer, file.pre_tokenizer, file.decoder) for rule in _rules(part)]
    patterns = [found for rule in rules if (found := _pattern(rule, "Regex"))]
    for text in trial_texts(patterns):
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        if len(normal) > _MOST_GROWTH * len(text):
            return f"makes a text {len(normal) // len(text):,} times as long"
        decoded = tokenizer.decode(tokenizer.encode(text).ids)
        if len(decoded) > _MOST_GROWTH * len(text):
            return f"makes a text {len(decoded) // len(text):,} times as long"
    return ""


def trial_texts(patterns: Sequence[str]) -> Iterator[str]:
    """Texts in which a slow pattern is slow: its characters and each other one repeated, then a mismatch."""
    own = sorted({character for pattern in patterns for character in pattern})
    for character in dict.fromkeys((*own, *_SCRIPTS, *string.ascii_letters)):
        yield character * _REPEATED + "!"
        yield character * _REPEATED + "\u2603"
    yield (string.ascii_letters + _SCRIPTS) * 20
    for pattern in patterns:
        yield pattern[:_REPEATED] * 4 + "\u2603"
