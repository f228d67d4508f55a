"""What looks secret in the entry of a server, and masks in its place. Pure.

The value of a variable or header is secret as a whole. Of an argument or address, which a person reads before
the server is switched on, only the secret itself is masked, and never what a shell would run: the argument
`TOKEN=x;curl …` of `bash -c` is shown as `TOKEN=••••••••;curl …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.tools.messages import ServerEntry

MASK = "••••••••"
Span = tuple[int, int]

_SECRET_NAME = re.compile(
    r"(?i:token|secret|passw(?:or)?d|passphrase|api_?key|credential)"
    r"|(?i:(?:^|[_\W])(?:key|pwd|pass|pat|auth|authorization|cookie)(?:$|[_\W]))"
    r"|[a-z]Key(?![a-z])"
)
# Endings of names of arguments that are about a secret and have none: --token-file, --max-tokens.
_NO_SECRET = re.compile(
    r"(?i)(?:file|path|dir|directory|folder|ur[il]|endpoint|type|name|headers?|env|var|limit|count|budget|tokens"
    r"|tokeni[sz]er)$"
)
_NO_VALUES = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null"})
# Keys that are known by their beginning; a digit tells them from names of packages.
_KNOWN_VALUE = re.compile(
    r"(?<![\w-])(?:(?:sk|pk|rk|lin|dop|r8|gsk|hf|ntn|npm|figd|gh[opsru]|github_pat|secret)_|(?:sk|glpat|xox[abprs]|tvly"
    r"|pplx|xai|nvapi)-|AKIA|AIza|SG\.|eyJ)(?=[-_.A-Za-z]{0,200}\d)[-_.A-Za-z0-9]{12,}"
)
_BEARER = re.compile(r"(?i)\bbearer\s+(?P<value>[^\s\"'`;|&<>()]+)")
# The password of an address; one with characters that it should not have ends at the last @.
_PASSWORD = re.compile(
    r"://[^\s/?#@:]{0,200}:(?:(?P<value>[^\s/?#@]{1,400})|(?!\d*(?:[/?#]|$))(?P<odd>\S{1,400}))@"
)
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_NEXT_FLAG = re.compile(r"--?[a-z]+(?:-[a-z]+)*(?:=.*)?", re.DOTALL)
_HEADER_FLAGS = frozenset({"-H", "--header", "--headers"})
# A name and what is between it and its value: in variables, headers, JSON and addresses, and of flags.
_NAMED = re.compile(
    r"(?<![\w-])(?:(?P<flag>--?[A-Za-z][\w.-]{0,60})(?:\s*[=:]\s*|\s+)"
    r"|(?P<name>[A-Za-z_][\w.-]{0,60})\\?[\"']?\s*[=:]\s*)(?:(?i:bearer|basic|token)\s+)?"
)
_VALUE = re.compile(
    r"\"(?P<double>(?:\\.|[^\"\\])*)\"|'(?P<single>[^']*)'|\\\"(?P<escaped>.*?)\\\"|(?P<bare>[^\s\"'`;|&<>()]+)",
    re.DOTALL,
)
# What separates commands, and flags before an argument that is run.
_SHELL_MARKS = re.compile(r"[;|&`()<>\n]")
_CODE_FLAG = re.compile(r"-[A-Za-z]*[ce]|--|--eval")


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable or header seems to have a secret value."""
    return bool(_SECRET_NAME.search(name) or any(_parts(value, "")))


def texts_of(entry: ServerEntry) -> tuple[str, ...]:
    """The texts that `masked` is for: the arguments, or the address."""
    return entry.args if entry.command else (entry.url,)


def masked(texts: Sequence[str]) -> tuple[str, ...]:
    """`texts` with a mask in place of each secret. One that has a mask already stays as it is."""
    found = []
    for text, parts in zip(texts, _all_parts(texts), strict=True):
        for start, end in reversed(parts):
            text = text[:start] + MASK + text[end:]
        found.append(text)
    return tuple(found)


def secret_texts(entry: ServerEntry) -> set[str]:
    """The secrets of an entry that has their values, for what must not be in a log."""
    values, texts = entry.env if entry.command else entry.headers, texts_of(entry)
    found = {text[start:end] for text, parts in zip(texts, _all_parts(texts)) for start, end in parts}
    return found | {values[name] for name in entry.secrets if name in values}


def _all_parts(texts: Sequence[str]) -> list[list[Span]]:
    return [_joined(_parts(text, before)) for before, text in zip(("", *texts), texts)]


def _parts(text: str, before: str) -> Iterator[Span]:
    """Secret characters of an argument after the argument `before`; they may overlap."""
    if MASK in text:
        return
    if _FLAG.fullmatch(before) and _has_secret(before) and not _NEXT_FLAG.fullmatch(text):
        if text.lower() not in _NO_VALUES:
            yield 0, len(text)
        return
    for match in _NAMED.finditer(text):
        if _has_secret(match["flag"] or match["name"]):
            at = match.end()
            if match.start() or _may_run(text, at, before) or not _is_one(text, at, before):
                yield from _value(text, at, before)
            elif text[at:].lower() not in _NO_VALUES:
                yield at, len(text)
    for pattern in (_PASSWORD, _BEARER, _KNOWN_VALUE):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastgroup or 0)
            if not _may_run(text, start, before, end):
                yield start, end


def _has_secret(name: str) -> bool:
    """Whether the value of an argument seems to be secret, by its name."""
    return bool(_SECRET_NAME.search(name.lstrip("-"))) and not _NO_SECRET.search(name)


def _may_run(text: str, start: int, before: str, end: int | None = None) -> bool:
    """Whether characters [start, end) of an argument may contain a command that is run."""
    marks = _SHELL_MARKS.search(text, start, len(text) if end is None else end)
    return marks is not None and _CODE_FLAG.fullmatch(before) is not None


def _is_one(text: str, at: int, before: str) -> bool:
    """Whether an argument is an option, header or variable with the value that begins at `at`."""
    return text.startswith("-") or before in _HEADER_FLAGS or not any(map(str.isspace, text[at:]))


def _value(text: str, at: int, before: str) -> Iterator[Span]:
    """The value that begins at `at`, without its quotation marks."""
    match = _VALUE.match(text, at)
    if match is None or _NEXT_FLAG.fullmatch(match[0]) or match[match.lastgroup or 0].lower() in _NO_VALUES:
        return
    start, end = match.span(match.lastgroup or 0)
    if not (match[0].startswith(('"', "\\")) and _may_run(text, start, before, end)):
        yield start, end


def _joined(parts: Iterator[Span]) -> list[Span]:
    """`parts` in order, and those that overlap as one."""
    found: list[Span] = []
    for start, end in sorted(part for part in parts if part[0] < part[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
