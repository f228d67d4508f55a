"""Equations as linear text: fractions, powers, roots, sums, matrices. Pure.

`MathReader` takes the elements of one equation, of Office Math (Word, slides, rich text) or of MathML
(HTML, books, OpenDocument), and gives a line such as `x=(-b±√(b^2-4ac))/(2a)`. Parts of several characters
are in brackets wherever the line would otherwise mean something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_DEPTH = 64
_ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯", "\u0305": "¯", "\u20d7": "→", "\u0307": "˙", "": "^"}


@dataclass
class _Node:
    tag: str
    children: list[_Node] = field(default_factory=list)
    text: str = ""
    properties: dict[str, str] = field(default_factory=dict)

    def each(self) -> list[str]:
        """The texts of the children."""
        return [_linear(child) for child in self.children]

    def part(self, tag: str) -> str:
        """The text of the first child `tag`; empty if there is none."""
        return next((_linear(child) for child in self.children if child.tag == tag), "")

    def parts(self, tag: str) -> list[str]:
        """The texts of all children `tag`."""
        return [_linear(child) for child in self.children if child.tag == tag]


class MathReader:
    """Takes an equation's elements, by their names without the namespace, up to the equation's end."""

    def __init__(self) -> None:
        self._open = [_Node("oMath")]
        self._skipped = 0

    def start(self, tag: str, value: str) -> None:
        """An element begins; `value` is its `val` attribute."""
        if self._skipped or len(self._open) > _MOST_DEPTH:
            self._skipped += 1
            return
        if self._open[-1].tag.endswith("Pr"):
            owner = self._open[-2] if len(self._open) > 1 else self._open[-1]
            owner.properties[tag] = value
        node = _Node(tag)
        self._open[-1].children.append(node)
        self._open.append(node)

    @property
    def innermost(self) -> str:
        """The name of the innermost open element."""
        return self._open[-1].tag

    def end(self) -> bool:
        """An element ends; True if it was the equation itself."""
        if self._skipped:
            self._skipped -= 1
            return False
        if len(self._open) == 1:
            return True
        self._open.pop()
        return False

    def characters(self, text: str) -> None:
        """Text of the innermost element. Properties of rich text are such a text."""
        if self._skipped:
            return
        self._open[-1].text += text
        if len(self._open) > 2 and self._open[-2].tag.endswith("Pr"):
            self._open[-3].properties[self._open[-1].tag] = self._open[-1].text

    def line(self) -> str:
        """The equation on one line."""
        return " ".join(_linear(self._open[0]).split())


def _linear(node: _Node) -> str:
    tag, of = node.tag, node.properties
    if tag == "t":
        return node.text
    if tag.endswith("Pr") or tag in ("annotation", "annotation-xml"):
        return ""
    if tag in _ML_TAGS:
        return _math_ml(node)
    base = node.part("e")
    match tag:
        case "f":
            top, bottom = node.part("num"), node.part("den")
            if of.get("type") == "noBar":
                return f"({top} over {bottom})"
            return f"{_factor(top)}/{_factor(bottom)}"
        case "sSup":
            return f"{_factor(base)}^{_factor(node.part('sup'))}"
        case "sSub":
            return f"{_factor(base)}_{_factor(node.part('sub'))}"
        case "sSubSup":
            return f"{_factor(base)}_{_factor(node.part('sub'))}^{_factor(node.part('sup'))}"
        case "sPre":
            return f"_{_factor(node.part('sub'))}^{_factor(node.part('sup'))}{_factor(base)}"
        case "rad":
            degree = node.part("deg")
            mark = {"": "√", "3": "∛", "4": "∜"}.get(degree, f"root {degree} of ")
            return f"{mark}{_factor(base)}" if mark in "√∛∜" else f"{mark}({base})"
        case "nary":
            sub, sup = node.part("sub"), node.part("sup")
            limits = f"_{_factor(sub)}" * bool(sub) + f"^{_factor(sup)}" * bool(sup)
            return f"{of.get('chr', '∫')}{limits} {base}"
        case "d":
            inside = of.get("sepChr", "|").join(node.parts("e"))
            return f"{of.get('begChr', '(')}{inside}{of.get('endChr', ')')}"
        case "func":
            return f"{node.part('fName')} {base}"
        case "limLow":
            return f"{base}_{_factor(node.part('lim'))}"
        case "limUpp":
            return f"{base}^{_factor(node.part('lim'))}"
        case "acc":
            return f"{_factor(base)}{_ACCENTS.get(of.get('chr', ''), of.get('chr', ''))}"
        case "bar":
            return f"{_factor(base)}{'¯' if of.get('pos') == 'top' else '_'}"
        case "m":
            rows = [", ".join(row.parts("e")) for row in node.children if row.tag == "mr"]
            return f"[{'; '.join(rows)}]"
        case "eqArr":
            return "; ".join(part.replace("&", "") for part in node.parts("e"))
    return "".join(_linear(child) for child in node.children)


_ML_TAGS = frozenset(
    (
        *(
            "math",
            "mrow",
            "mstyle",
            "mpadded",
            "mphantom",
            "menclose",
            "merror",
            "semantics",
            "mi",
            "mn",
            "mo",
        ),
        *("ms", "mtext", "mspace", "mfrac", "msup", "msub", "msubsup", "mover", "munder", "munderover"),
        *("msqrt", "mroot", "mtable", "mtr", "mlabeledtr", "mtd", "mfenced", "mmultiscripts"),
    )
)
_ML_SCRIPTS = {"msup": "^", "mover": "^", "msub": "_", "munder": "_"}


def _math_ml(node: _Node) -> str:
    """An element of MathML, whose parts are told by their order."""
    tag, each = node.tag, node.each()
    if node.text.strip():
        return node.text.strip() if tag != "mtext" else node.text
    if tag == "mfrac" and len(each) == 2:
        return f"{_factor(each[0])}/{_factor(each[1])}"
    if tag in _ML_SCRIPTS and len(each) == 2:
        accent = tag == "mover" and len(each[1]) == 1 and not each[1].isalnum()
        return f"{_factor(each[0])}{each[1] if accent else _ML_SCRIPTS[tag] + _factor(each[1])}"
    if tag in ("msubsup", "munderover") and len(each) == 3:
        return f"{_factor(each[0])}_{_factor(each[1])}^{_factor(each[2])} ".rstrip(
            " " if tag == "msubsup" else ""
        )
    if tag == "mroot" and len(each) == 2:
        mark = {"3": "∛", "4": "∜"}.get(each[1])
        return f"{mark}{_factor(each[0])}" if mark else f"root {each[1]} of ({each[0]})"
    if tag == "mtable":
        rows = [", ".join(row.each()) for row in node.children]
        return f"[{'; '.join(rows)}]" if any("," in row for row in rows) else "; ".join(rows)
    inside = "".join(each)
    return f"√{_factor(inside)}" if tag == "msqrt" else f"({', '.join(each)})" if tag == "mfenced" else inside


def _factor(text: str) -> str:
    """`text` in brackets, unless it is one character or one number."""
    return text if len(text) <= 1 or text.isdigit() else _bracketed(text)


def _bracketed(text: str) -> str:
    """`text` in brackets, unless one pair already encloses all of it."""
    if text.startswith("(") and text.endswith(")"):
        depth = 0
        for at, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return text if at == len(text) - 1 else f"({text})"
    return f"({text})"
