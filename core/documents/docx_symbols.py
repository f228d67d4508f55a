"""Characters of Word's symbol fonts (`w:sym`) as Unicode. Pure.

A symbol is a code of a font, often in the private range from F000 on. Covered are Symbol (Adobe's Symbol
encoding) and the marks of Wingdings that texts use; a code of another font below F000 is Unicode itself.
"""

from __future__ import annotations

# From 0x20 and from 0xA0 on.
_SYMBOL = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    0xA0: "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",
    0xF1: "〉∫",
}
_WINGDINGS = {
    0x22: "✂", 0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x4C: "☹", 0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑",
    0x75: "◆", 0x76: "❖", 0x77: "◆", 0x9F: "•", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x52: "☑", 0x54: "☒", 0xA3: "☐"}
_PRIVATE = 0xF000
_UNKNOWN = "\ufffd"


def symbol(font: str, code: str) -> str:
    """The character `code`, hexadecimal, of `font`; U+FFFD if it is unknown."""
    try:
        number = int(code, 16)
    except ValueError:
        return _UNKNOWN
    own = number - _PRIVATE if _PRIVATE <= number <= _PRIVATE + 0xFF else number
    if own <= 0xFF:
        match font.strip().lower():
            case "symbol":
                for first, row in _SYMBOL.items():
                    if first <= own < first + len(row):
                        return row[own - first]
                return _UNKNOWN
            case "wingdings":
                return _WINGDINGS.get(own, _UNKNOWN)
            case "wingdings 2":
                return _WINGDINGS_2.get(own, _UNKNOWN)
    if number >= 0xD800:
        return _UNKNOWN
    return chr(number) if number >= 0x20 else _UNKNOWN
