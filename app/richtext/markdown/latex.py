"""Simple LaTeX formulas as Unicode text, every character with its offset in the source. No Qt.

A formula in a line is simple if Unicode says all of it: letters, signs, words, accents, and indices and
exponents for which there are small characters. Any other is typeset (`app/richtext/formulas.py`). Offsets
never decrease, and no letter is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "vartheta": "ϑ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "varpi": "ϖ", "rho": "ρ", "varrho": "ϱ", "sigma": "σ",
    "varsigma": "ς", "tau": "τ", "upsilon": "υ", "phi": "ϕ", "varphi": "φ", "chi": "χ", "psi": "ψ",
    "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π",
    "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
_SIGNS = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "mp": "∓", "ast": "∗", "star": "⋆", "circ": "∘",
    "bullet": "•", "oplus": "⊕", "otimes": "⊗", "odot": "⊙", "wedge": "∧", "land": "∧", "vee": "∨",
    "lor": "∨", "neg": "¬", "lnot": "¬", "cap": "∩", "cup": "∪", "setminus": "∖", "leq": "≤", "le": "≤",
    "geq": "≥", "ge": "≥", "ll": "≪", "gg": "≫", "neq": "≠", "ne": "≠", "equiv": "≡", "approx": "≈",
    "sim": "∼", "simeq": "≃", "cong": "≅", "propto": "∝", "in": "∈", "notin": "∉", "ni": "∋",
    "subset": "⊂", "subseteq": "⊆", "supset": "⊃", "supseteq": "⊇", "emptyset": "∅", "varnothing": "∅",
    "forall": "∀", "exists": "∃", "nexists": "∄", "infty": "∞", "partial": "∂", "nabla": "∇",
    "lt": "<", "gt": ">", "amalg": "⨿", "asymp": "≍", "prec": "≺", "succ": "≻", "uplus": "⊎", "ominus": "⊖",
    "oslash": "⊘", "dashv": "⊣", "Vdash": "⊩", "vDash": "⊨", "longleftarrow": "⟵", "Longrightarrow": "⟹",
    "longmapsto": "⟼", "nearrow": "↗", "searrow": "↘", "rightleftharpoons": "⇌", "leadsto": "⇝",
    "Uparrow": "⇑", "Downarrow": "⇓", "lesssim": "≲", "gtrsim": "≳", "subsetneq": "⊊", "supsetneq": "⊋",
    "coloneqq": "≔", "doteq": "≐", "bowtie": "⋈", "wp": "℘", "complement": "∁", "diamond": "⋄", "dotsc": "…",
    "dotsb": "⋯", "surd": "√", "imath": "ı", "jmath": "ȷ", "eth": "ð", "S": "§", "P": "¶",
    "to": "→", "rightarrow": "→",
    "longrightarrow": "⟶", "leftarrow": "←", "gets": "←", "leftrightarrow": "↔", "Rightarrow": "⇒",
    "implies": "⟹", "Leftarrow": "⇐", "Leftrightarrow": "⇔", "iff": "⟺", "mapsto": "↦", "uparrow": "↑",
    "downarrow": "↓", "hookrightarrow": "↪", "ldots": "…", "dots": "…", "cdots": "⋯", "vdots": "⋮",
    "ddots": "⋱", "prime": "′", "degree": "°", "angle": "∠", "perp": "⊥", "parallel": "∥", "mid": "∣",
    "nmid": "∤", "therefore": "∴", "because": "∵", "square": "□", "blacksquare": "■", "triangle": "△",
    "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "lvert": "|",
    "rvert": "|", "vert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "lbrace": "{", "rbrace": "}",
    "hbar": "ℏ", "ell": "ℓ", "Re": "ℜ", "Im": "ℑ", "aleph": "ℵ", "dagger": "†", "ddagger": "‡",
    "models": "⊨", "vdash": "⊢", "top": "⊤", "bot": "⊥", "colon": ":", "backslash": "\\", "checkmark": "✓",
}  # fmt: skip
_NAMES = (
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "coth",
    "log", "ln", "lg", "exp", "min", "max", "sup", "inf", "lim", "limsup", "liminf", "det", "dim", "ker",
    "gcd", "lcm", "arg", "deg", "Pr", "hom", "tr", "rank", "sgn",
)  # fmt: skip
# Names of functions and operators, which need a space next to letters.
WORDS: dict[str, str] = {name: name for name in _NAMES}
WORDS |= {"argmax": "arg max", "argmin": "arg min", "bmod": "mod", "mod": "mod"}
# Operators on everything that follows them; their limits are above and below.
_BIG = {
    "sum": "∑", "prod": "∏", "coprod": "∐", "int": "∫", "iint": "∬", "iiint": "∭", "oint": "∮",
    "bigcup": "⋃", "bigcap": "⋂", "bigoplus": "⨁", "bigotimes": "⨂", "bigvee": "⋁", "bigwedge": "⋀",
}  # fmt: skip

_BIG_SIGNS = frozenset(_BIG.values())
_SPACES = dict.fromkeys((",", ";", ":", ">", " ", "\n", "quad", "qquad", "enspace", "thinspace"), " ")
SIGNS: dict[str, str] = (
    _GREEK | _SIGNS | _BIG | _SPACES | {each: each for each in "{}%$#_&"} | {"!": "", "|": "‖"}
)

# Commands that only change the font of their argument; True: text, whose spaces are kept.
PLAIN: dict[str, bool] = {
    "text": True, "textbf": True, "textit": True, "textrm": True, "texttt": True, "mbox": True,
    "mathrm": False, "mathbf": False, "mathit": False, "mathsf": False, "mathtt": False, "boldsymbol": False,
    "bm": False,
}  # fmt: skip
BOLD = frozenset(("textbf", "mathbf", "boldsymbol", "bm"))
ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305", "underline": "\u0332",
    "tilde": "\u0303", "widetilde": "\u0303", "vec": "\u20d7", "dot": "\u0307", "ddot": "\u0308",
}  # fmt: skip
# Commands for the type size or the place of limits, which do not change simple formulas.
DROPPED = frozenset(("displaystyle", "textstyle", "scriptstyle", "nonumber", "notag", "rm", "bf", "it", "sf"))
DOUBLE_STRUCK = {
    "R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "P": "ℙ", "H": "ℍ", "E": "𝔼", "F": "𝔽", "1": "𝟙",
}  # fmt: skip
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SCRIPT = dict(zip(_CAPITALS, "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵"))
_FRAKTUR = dict(zip(_CAPITALS, "𝔄𝔅ℭ𝔇𝔈𝔉𝔊ℌℑ𝔍𝔎𝔏𝔐𝔑𝔒𝔓𝔔ℜ𝔖𝔗𝔘𝔙𝔚𝔛𝔜ℨ"))
_FRAKTUR |= dict(zip(_CAPITALS.lower(), "𝔞𝔟𝔠𝔡𝔢𝔣𝔤𝔥𝔦𝔧𝔨𝔩𝔪𝔫𝔬𝔭𝔮𝔯𝔰𝔱𝔲𝔳𝔴𝔵𝔶𝔷"))
FACES = {"mathbb": DOUBLE_STRUCK, "mathcal": _SCRIPT, "mathscr": _SCRIPT, "mathfrak": _FRAKTUR}
SUPER = dict(zip("0123456789+−=()nibcdefghjklmoprstuvwxyzabcABDEGHIJKLMNOPRTUVW αβγδεθφχ".replace(" ", ""),
                 "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵃᵇᶜᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᵋᶿᵠᵡ"))  # fmt: skip
SUPER["⊤"] = "ᵀ"
SUB = dict(zip("0123456789+−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ"))


# No simple formula that people write comes near these.
_DEEPEST = 20
_LONGEST = 500

Glyph = tuple[str, int]  # one visible character and its offset in the source


class Legible(Struct, frozen=True):
    """A formula as `text`; `places[i]` is the source offset of character i, `bold` are end-exclusive."""

    text: str
    places: tuple[int, ...]
    bold: tuple[tuple[int, int], ...] = ()


def legible(source: str) -> Legible | None:
    """The formula `source`, without its dollar signs, as text; None if it is not simple."""
    if len(source) > _LONGEST:
        return None
    reader = _Reader(source)
    try:
        read = reader.sequence("")
    except _NotSimple:
        return None
    glyphs: list[Glyph] = []
    for glyph, place in _trimmed(read):
        if glyph != " " or glyphs[-1][0] != " ":
            glyphs.append((glyph, place))
    places = tuple(place for _, place in glyphs)
    bold: list[tuple[int, int]] = []
    for low, high in reader.bold:
        found = [number for number, place in enumerate(places) if low <= place < high]
        if found:
            bold.append((found[0], found[-1] + 1))
    return Legible("".join(glyph for glyph, _ in glyphs), places, tuple(bold))


class _NotSimple(Exception):
    """Unicode text does not say it."""


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.bold: list[tuple[int, int]] = []

    def sequence(self, stop: str) -> list[Glyph]:
        """The glyphs up to `stop`, which is skipped, or to the end. Raises `_NotSimple`."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NotSimple
        shown: list[Glyph] = []
        word = False  # whether the last part is a function's name, which is spaced from letters
        base = 0  # characters of the last part, which a script belongs to
        scripts = ""  # those it has
        while self.at < len(self.source):
            if self.source[self.at] == stop:
                self.at += 1
                self.depth -= 1
                return shown
            if self.source[self.at] in "^_":
                if self.source[self.at] in scripts:
                    raise _NotSimple  # a script of a script
                scripts += self.source[self.at]
                while base and shown and shown[-1][0] == " ":
                    shown.pop()
                shown += self._script(base)
                continue
            is_group = self.source[self.at] == "{"
            part, is_word = self._part()
            following = self.source[self.at : self.at + 1]
            solid = [glyph for glyph in part if glyph[0] != " "]
            if following in ("^", "_") and part and part[0][0] in _BIG_SIGNS:
                raise _NotSimple  # its limits are above and below it
            if (word or is_word) and shown and solid and shown[-1][0].isalnum() and part[0][0].isalnum():
                shown.append((" ", part[0][1]))
            shown += part
            if is_group and not part:  # scripts of the following symbol: {}^{14}C
                base, scripts = 0, ""
                shown += [(" ", self.at - 1)] if shown and shown[-1][0] != " " else []
            if solid:
                word, base, scripts = is_word, 1 if is_word else len(solid), ""
        if stop:
            raise _NotSimple
        self.depth -= 1
        return shown

    def _part(self) -> tuple[list[Glyph], bool]:
        """One character, group or command with its arguments, and whether it is the name of a function."""
        character, place = self.source[self.at], self.at
        if character == "\\":
            return self._command()
        self.at += 1
        if character == "{":
            return _trimmed(self.sequence("}")), False
        if character in "}&":
            raise _NotSimple
        if character.isspace() or character == "~":
            return [(" ", place)], False
        return [({"-": "−", "'": "′"}.get(character, character), place)], False

    def _argument(self) -> list[Glyph]:
        """The argument of a command or script: one group, character or command."""
        while self.source[self.at : self.at + 1].isspace():
            self.at += 1
        if self.at >= len(self.source):
            raise _NotSimple
        return self._part()[0]

    def _script(self, base: int) -> list[Glyph]:
        """An exponent (^) or an index (_) of a part of `base` characters."""
        mark = self.source[self.at]
        self.at += 1
        inner = self._argument()
        if mark == "^" and [glyph for glyph, _ in inner] == ["∘"]:
            return [("°", inner[0][1])]
        if inner and all(glyph in "′″°†‡" for glyph, _ in inner):
            return inner
        small = SUPER if mark == "^" else SUB
        # Behind several characters it would belong to the last.
        if base > 1 or not inner or any(glyph not in small for glyph, _ in inner):
            raise _NotSimple
        return [(small[glyph], place) for glyph, place in inner]

    def _command(self) -> tuple[list[Glyph], bool]:
        place = self.at
        end = place + 1
        while end < len(self.source) and self.source[end].isascii() and self.source[end].isalpha():
            end += 1
        name = self.source[place + 1 : max(end, place + 2)]
        self.at = place + 1 + len(name)
        if name in WORDS:
            return [(glyph, place) for glyph in WORDS[name]], True
        if name in SIGNS:
            return [(glyph, place) for glyph in SIGNS[name]], False
        if name in ("left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "middle"):
            return self._delimiter(), False
        if name in PLAIN:
            begin = self.at
            inner = self._words() if PLAIN[name] else self._argument()
            if name in BOLD:
                self.bold.append((begin, self.at))
            return inner, False
        if name == "operatorname":
            return _trimmed(self._words()), True
        if name in FACES:
            inner = self._argument()
            if any(glyph not in FACES[name] for glyph, _ in inner):
                raise _NotSimple
            return [(FACES[name][glyph], at) for glyph, at in inner], False
        if name in ACCENTS:
            inner = self._argument()
            if len(inner) != 1:
                raise _NotSimple
            return [inner[0], (ACCENTS[name], inner[0][1])], False
        if name in DROPPED:
            return [], False
        raise _NotSimple

    def _delimiter(self) -> list[Glyph]:
        """Around simple content it is as high as a letter."""
        if self.source[self.at : self.at + 1] == ".":
            self.at += 1
            return []
        return self._argument()

    def _words(self) -> list[Glyph]:
        """The words of \\text{…} with their spaces."""
        end = self.source.find("}", self.at)
        words = self.source[self.at + 1 : end]
        if self.source[self.at : self.at + 1] != "{" or end < 0 or set(words) & set("\\{$^_"):
            raise _NotSimple
        start, self.at = self.at + 1, end + 1
        return [(glyph, start + number) for number, glyph in enumerate(words)]


def _trimmed(glyphs: Sequence[Glyph]) -> list[Glyph]:
    first, last = 0, len(glyphs)
    while first < last and glyphs[first][0] == " ":
        first += 1
    while last > first and glyphs[last - 1][0] == " ":
        last -= 1
    return list(glyphs[first:last])
