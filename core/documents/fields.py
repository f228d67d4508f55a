"""Text of the fields of Word and rich text that are rendered with the page: EQ and SYMBOL. Pure.

EQ is the equation language of Word before 2007: `EQ \\f(3,4)` is 3/4, `EQ \\o\\ac(○,3)` is ③. Unknown
switches are replaced by their arguments, so that no word is lost.
"""

from __future__ import annotations

import re
import unicodedata

from core.documents.docx_symbols import symbol
from core.documents.equations import factor
from core.documents.writer import scripted

_KIND = re.compile(r"\s*(EQ|SYMBOL)\s+", re.IGNORECASE)
_SYMBOL = re.compile(
    r"""\\f\s+(?P<font>"[^"]*"|\S+)|\\s\s+\S+|\\(?P<switch>\S)|(?P<code>0x[0-9a-f]{1,6}|[0-9]{1,7}|\S)""",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"\\([a-z]+) ?(-?[0-9]*)", re.IGNORECASE)
_LOOKS = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)')
_MOST_CHARACTERS = 4_000
_MOST_DEPTH = 20
_ARGUMENTS = {"f": 2, "r": 2, "s": 2, "i": 3, "b": 1, "su": 1, "sub": 1}  # at most; others follow
_RINGS = frozenset("○◯〇⃝")
_OVERLAYS = {"/": "\u0338", "\u0305": "\u0305", "¯": "\u0304", "^": "\u0302", "~": "\u0303", "´": "\u0301"}


def field_text(instruction: str) -> str | None:
    """The text of the field with that instruction; None for another kind of field."""
    found = _KIND.match(instruction)
    if not found:
        return None
    rest = instruction[found.end() : found.end() + _MOST_CHARACTERS]
    return (
        _symbol(rest)
        if found[1].upper() == "SYMBOL"
        else " ".join(_Equation(_LOOKS.sub("", rest)).text(0).split())
    )


def _symbol(arguments: str) -> str:
    code, font, is_unicode = "", "", False
    for found in _SYMBOL.finditer(arguments):
        code = code or found["code"] or ""
        font = (found["font"] or "").strip('"') or font
        is_unicode = is_unicode or (found["switch"] or "").lower() == "u"
    if not code[:1].isdigit():
        return code
    number = int(code, 16 if code.lower().startswith("0x") else 10)
    if font and not is_unicode:
        return symbol(font, f"{number:x}")
    if number < 256 and not is_unicode:
        return bytes([number]).decode("cp1252", "replace")
    return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"


class _Equation:
    """Reads the text of an equation from its beginning."""

    def __init__(self, source: str) -> None:
        self._source, self._at = source, 0

    def text(self, depth: int, *, in_brackets: bool = False) -> str:
        """The following text; `in_brackets`: up to the separator or the bracket that ends it."""
        said: list[str] = []
        level = 0
        while self._at < len(self._source):
            letter = self._source[self._at]
            found = _SWITCH.match(self._source, self._at) if letter == "\\" else None
            if found:
                said.append(self._switched(depth))
                continue
            self._at += 1
            if letter == "\\":  # the next character as it is
                said.append(self._source[self._at : self._at + 1])
                self._at += 1
                continue
            if in_brackets and not level and letter in ",;)":
                self._at -= 1
                break
            level += (letter == "(") - (letter == ")" and level > 0)
            said.append(letter)
        return "".join(said)

    def _switched(self, depth: int) -> str:
        """A switch with its options and arguments."""
        switches: list[tuple[str, str]] = []
        marks: list[str] = []
        while found := _SWITCH.match(self._source, self._at):
            switches.append((found[1].lower(), found[2]))
            self._at = found.end()
            if found[1].lower() in ("lc", "rc", "bc") and self._source[self._at : self._at + 1] == "\\":
                marks.append(self._source[self._at + 1 : self._at + 2])
                self._at += 2
            while self._source[self._at : self._at + 1] == " ":
                self._at += 1
        if self._source[self._at : self._at + 1] != "(" or depth > _MOST_DEPTH:
            return ""
        parts: list[str] = []
        while self._at < len(self._source) and self._source[self._at] != ")":
            self._at += 1
            parts.append(" ".join(self.text(depth + 1, in_brackets=True).split()))
        self._at += 1
        most = _ARGUMENTS.get(switches[0][0], len(parts))
        return " ".join(filter(None, (_shown(switches, parts[:most], marks), *parts[most:])))


def _shown(switches: list[tuple[str, str]], parts: list[str], marks: list[str]) -> str:
    kind, *options = [name for name, _ in switches]
    first, *others = parts or [""]
    match kind:
        case "f" if others:
            return f"{factor(first)}/{factor(others[0])}"
        case "r":
            degree, of = (first, others[0]) if others else ("", first)
            sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(degree)
            return f"{sign}{factor(of)}" if sign else f"root {degree} of ({of})"
        case "s":
            scripts = ["sub" if name == "do" else "super" for name in options if name in ("up", "do")]
            return "".join(scripted(text, script) for text, script in zip(parts, [*scripts, "super", "sub"]))
        case "su" | "sub":
            return scripted(first, "sub")
        case "o":
            is_ruby = "ad" in options and len(parts) == 2
            return f"{parts[1]}({parts[0]})" if is_ruby else _overstruck(parts)
        case "b":
            opening, closing = ("(", ")") if not marks else (marks[0], marks[-1])
            pairs = {"(": ")", "[": "]", "{": "}", "<": ">", "|": "|"}
            closing = pairs.get(opening, closing) if len(marks) == 1 else closing
            return f"{opening}{first}{closing}"
        case "a":
            return "; ".join(parts)
        case "i":
            sign = "∑" if "su" in options else "∏" if "pr" in options else "∫"
            lower, upper, of = [*parts, "", "", ""][:3]
            limits = f"_{factor(lower)}" * bool(lower) + f"^{factor(upper)}" * bool(upper)
            return f"{sign}{limits} {of}"
        case "l":
            return ", ".join(parts)
    return " ".join(filter(None, parts))


def _overstruck(parts: list[str]) -> str:
    """Characters over each other: a number in a ring, a letter with an accent, else one after the other."""
    inside = [part for part in parts if part not in _RINGS]
    if len(inside) < len(parts) and len(inside) == 1:
        for row in ("①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳", "㉑㉒㉓㉔㉕㉖㉗㉘㉙㉚㉛㉜㉝㉞㉟㊱㊲㊳㊴㊵㊶㊷㊸㊹㊺㊻㊼㊽㊾㊿"):
            for ring in row:
                if unicodedata.normalize("NFKC", ring) == inside[0]:
                    return ring
        if len(inside[0]) == 1 and inside[0].isalpha() and inside[0].isascii():
            return unicodedata.lookup(
                f"CIRCLED LATIN {'CAPITAL' if inside[0].isupper() else 'SMALL'} LETTER {inside[0].upper()}"
            )
        return f"({inside[0]})"
    if len(parts) == 2 and parts[1] in _OVERLAYS:
        return unicodedata.normalize("NFC", parts[0] + _OVERLAYS[parts[1]])
    return " ".join(filter(None, parts))
