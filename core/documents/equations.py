"""Equations as linear text: fractions, powers, roots, sums, matrices. Pure.

`equation_line` takes an equation of Office Math (Word, slides, rich text) or of MathML (HTML, books,
OpenDocument), and gives a line such as `x=(-b±√(b^2-4ac))/(2a)`. Parts of several characters are in brackets
wherever the line would otherwise mean something else.
"""

from __future__ import annotations

from core.documents.parts import Element, M

_ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯", "\u0305": "¯", "\u20d7": "→", "\u0307": "˙", "": "^"}
# Elements of MathML, whose parts follow from their order, as those of Office Math and the names of its parts.
_MATH_ML = {
    "mfrac": ("f", "num", "den"),
    "msup": ("sSup", "e", "sup"),
    "msub": ("sSub", "e", "sub"),
    "msubsup": ("sSubSup", "e", "sub", "sup"),
    "munderover": ("sSubSup", "e", "sub", "sup"),
    "munder": ("limLow", "e", "lim"),
    "mover": ("limUpp", "e", "lim"),
    "mroot": ("rad", "e", "deg"),
}
_TEXTS = frozenset(("t", "mi", "mn", "mo", "ms", "mtext"))
_SILENT = frozenset(("annotation", "annotation-xml"))


def equation_line(equation: Element) -> str:
    """The equation on one line."""
    return " ".join(_linear(equation).split())


def _linear(node: Element) -> str:
    tag = node.tag
    if tag in _TEXTS:
        return node.text() if tag in ("t", "mtext") else node.text().strip()
    if tag.endswith("Pr") or tag in _SILENT:
        return ""
    # A property's value is an attribute, or in rich text its text.
    of = {
        each.tag: each.get(M + "val") or each.text()
        for properties in node.elements
        if properties.tag.endswith("Pr")
        for each in properties.elements
    }
    each = [(child.tag, _linear(child)) for child in node.elements]
    is_whole = tag in _MATH_ML and len(each) == len(_MATH_ML[tag]) - 1
    kind, *names = _MATH_ML[tag] if is_whole else (tag,)
    parts = dict(zip(names, (text for _, text in each))) if is_whole else dict(reversed(each))
    base, sub, sup = (parts.get(name, "") for name in ("e", "sub", "sup"))
    inside = "".join(text for _, text in each)
    match kind:
        case "f" if of.get("type") == "noBar":
            return f"({parts.get('num', '')} over {parts.get('den', '')})"
        case "f":
            return f"{factor(parts.get('num', ''))}/{factor(parts.get('den', ''))}"
        case "sSup" | "sSub" | "sSubSup":
            lowered = f"_{factor(sub)}" if kind != "sSup" else ""
            raised = f"^{factor(sup)}" if kind != "sSub" else ""
            return f"{factor(base)}{lowered}{raised}{' ' if tag == 'munderover' else ''}"
        case "sPre":
            return f"_{factor(sub)}^{factor(sup)}{factor(base)}"
        case "rad":
            degree = parts.get("deg", "")
            mark = {"": "√", "3": "∛", "4": "∜"}.get(degree)
            return f"{mark}{factor(base)}" if mark else f"root {degree} of ({base})"
        case "msqrt":
            return f"√{factor(inside)}"
        case "nary":
            limits = f"_{factor(sub)}" * bool(sub) + f"^{factor(sup)}" * bool(sup)
            return f"{of.get('chr', '∫')}{limits} {base}"
        case "d":
            between = of.get("sepChr", "|").join(_all(each, "e"))
            return f"{of.get('begChr', '(')}{between}{of.get('endChr', ')')}"
        case "mfenced":
            return f"({', '.join(text for _, text in each)})"
        case "func":
            return f"{parts.get('fName', '')} {base}"
        case "limLow" | "limUpp":
            limit = parts.get("lim", "")
            is_accent = tag == "mover" and len(limit) == 1 and not limit.isalnum()
            return f"{factor(base)}{limit if is_accent else '_^'[kind == 'limUpp'] + factor(limit)}"
        case "acc":
            return f"{factor(base)}{_ACCENTS.get(of.get('chr', ''), of.get('chr', ''))}"
        case "bar":
            return f"{factor(base)}{'¯' if of.get('pos') == 'top' else '_'}"
        case "m" | "mtable":
            rows = [[_linear(cell) for cell in row.elements] for row in node.elements if row.tag != "mPr"]
            lines = [", ".join(row) for row in rows]
            is_column = kind == "mtable" and all(len(row) < 2 for row in rows)
            return "; ".join(lines) if is_column else f"[{'; '.join(lines)}]"
        case "eqArr":
            return "; ".join(part.replace("&", "") for part in _all(each, "e"))
    return inside


def _all(parts: list[tuple[str, str]], name: str) -> list[str]:
    return [text for tag, text in parts if tag == name]


def factor(text: str) -> str:
    """`text` in brackets, unless it is one character, one number, or in brackets as a whole."""
    if len(text) <= 1 or text.isdigit():
        return text
    if text.startswith("(") and text.endswith(")"):
        depth = 0
        for at, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return text if at == len(text) - 1 else f"({text})"
    return f"({text})"
