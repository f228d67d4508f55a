"""The parts of a formula, how they become one line of text, and the Unicode of commands. No Qt.

A fraction, root or script gets parentheses where its neighbours would change its meaning: ½·mv² is (1/2)mv²,
√2·π is √(2)π, and 2½ is 2 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

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
SYMBOLS: dict[str, str] = _GREEK | _SIGNS
# Names of functions and operators, which need a space next to letters.
WORDS: dict[str, str] = {name: name for name in _NAMES}
WORDS |= {"argmax": "arg max", "argmin": "arg min", "bmod": "mod", "mod": "mod"}
# Operators on everything that follows them.
BIG = {
    "sum": "∑", "prod": "∏", "coprod": "∐", "int": "∫", "iint": "∬", "iiint": "∭", "oint": "∮",
    "bigcup": "⋃", "bigcap": "⋂", "bigoplus": "⨁", "bigotimes": "⨂", "bigvee": "⋁", "bigwedge": "⋀",
}  # fmt: skip

# Commands that only change the face of what they take; True: of words, whose spaces count.
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
DROPPED = frozenset(
    name
    for line in (
        "displaystyle textstyle scriptstyle limits nolimits nonumber notag hline rm bf it sf tt cal",
        "big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr",
    )
    for name in line.split(" ")
)
SPACES = frozenset(["quad", "qquad", "enspace", "thinspace"])
DOUBLE_STRUCK = {
    "R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "P": "ℙ", "H": "ℍ", "E": "𝔼", "F": "𝔽", "1": "𝟙",
}  # fmt: skip
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SCRIPT = dict(zip(_CAPITALS, "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵"))
_FRAKTUR = dict(zip(_CAPITALS, "𝔄𝔅ℭ𝔇𝔈𝔉𝔊ℌℑ𝔍𝔎𝔏𝔐𝔑𝔒𝔓𝔔ℜ𝔖𝔗𝔘𝔙𝔚𝔛𝔜ℨ"))
_FRAKTUR |= dict(zip(_CAPITALS.lower(), "𝔞𝔟𝔠𝔡𝔢𝔣𝔤𝔥𝔦𝔧𝔨𝔩𝔪𝔫𝔬𝔭𝔮𝔯𝔰𝔱𝔲𝔳𝔴𝔵𝔶𝔷"))
FACES = {"mathcal": _SCRIPT, "mathscr": _SCRIPT, "mathfrak": _FRAKTUR}
SUPER = dict(zip("0123456789+−=()nibcdefghjklmoprstuvwxyzabcABDEGHIJKLMNOPRTUVW αβγδεθφχ".replace(" ", ""),
                 "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵃᵇᶜᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᵋᶿᵠᵡ"))  # fmt: skip
SUPER["⊤"] = "ᵀ"
SUB = dict(zip("0123456789+−=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ"))


Glyph = tuple[str, int]  # one visible character and its offset in the source

# space: white space of the source, which LaTeX ignores. gap: a space that separates factors. word: sin, log.
# limit: lim. big: sums and integrals. sign: operators, relations and punctuation.
Role = Literal[
    "atom",
    "number",
    "fraction",
    "word",
    "limit",
    "big",
    "sign",
    "slash",
    "open",
    "close",
    "bar",
    "space",
    "gap",
]
_FACTOR_BEFORE = frozenset(("atom", "number", "fraction", "word", "close", "bar", "slash"))
_FACTOR_BEHIND = frozenset(("atom", "number", "fraction", "word", "limit", "big", "open", "bar", "slash"))


class Part(Struct, gc=False):
    """A unit of a formula in one line.

    `tight` is its form next to a factor, with parentheses; `guards` are the sides on which a factor requires
    it. `scripts` are the marks (^ and _) whose small characters the part ends with.
    """

    role: Role
    glyphs: list[Glyph]
    tight: list[Glyph] | None = None
    guards: Literal["", "left", "right", "both"] = ""
    scripts: str = ""
    whole: bool = False  # a fraction of two whole numbers, which makes a mixed number behind a third


def role_of(character: str) -> Role:
    if character in "([{⟨⌊⌈":
        return "open"
    if character in ")]}⟩⌋⌉":
        return "close"
    if character in "|‖":
        return "bar"
    if character == "/":
        return "slash"
    if character.isalpha() or character in '∞∅°…⋯∂∇∆\\%#$?@"':
        return "atom"
    return "number" if character.isdigit() else "sign"


def script_base(parts: list[Part]) -> Part | None:
    """The part that a script behind `parts` belongs to, without the spaces in between."""
    number = len(parts) - 1
    while number >= 0 and parts[number].role == "space":
        number -= 1
    if number < 0 or parts[number].role in ("gap", "sign", "slash", "open"):
        return None
    del parts[number + 1 :]
    return parts[number]


def attach(base: Part, script: list[Glyph], mark: str = "", tight: list[Glyph] | None = None) -> None:
    """Puts `script` behind `base`, in parentheses if it would otherwise apply to a part of it."""
    glyphs = base.tight or base.glyphs
    if base.tight and base.guards == "right" and base.glyphs[0][0] == "√":
        glyphs = bracketed(base.glyphs)
    elif mark and mark in base.scripts:
        glyphs = bracketed(glyphs)
        base.scripts = ""
    if base.role == "fraction":
        base.role = "atom"
    base.whole = False
    base.glyphs = [*glyphs, *script]
    base.tight = [*glyphs, *tight] if tight else None
    base.guards = "right" if tight else ""
    base.scripts += mark


def fraction(top: list[Part], bottom: list[Part], slash: int, place: int | None = None) -> Part:
    first, last = _differentials(top), _differentials(bottom)
    if first and last and first[0][0] == last[0][0]:
        glyphs = [*first, ("/", slash), *last]
        return Part("fraction", glyphs, bracketed(glyphs), "both")
    above = joined(top) if _is_product(top) else bracketed(joined(top), slash if place is None else place)
    below = joined(bottom) if _is_single(bottom) else bracketed(joined(bottom), slash)
    glyphs = [*above, ("/", slash), *below]
    whole = all(
        len(parts) == 1 and all(glyph.isascii() and glyph.isdigit() for glyph, _ in parts[0].glyphs)
        for parts in (top, bottom)
    )
    return Part("fraction", glyphs, bracketed(glyphs), "both", whole=whole)


def _differentials(parts: list[Part]) -> list[Glyph]:
    """The glyphs of dx, ∂x∂y or d²y without spaces; empty for anything else."""
    solid = [part for part in parts if part.role != "space"]
    if not solid or any(part.role != "atom" or part.guards for part in solid):
        return []
    if len(solid) > 6 or not all(part.glyphs and part.glyphs[0][0] in ("d", "∂") for part in solid[::2]):
        return []
    return [glyph for part in solid for glyph in part.glyphs]


def binomial(top: list[Part], bottom: list[Part], middle: int, place: int | None = None) -> Part:
    above, below = joined(top), joined(bottom)
    first = above[0][1] if place is None and above else (middle if place is None else place)
    last = below[-1][1] if below else middle
    return Part("atom", [("(", first), *above, *spread(" choose ", middle), *below, (")", last)])


def _is_single(parts: list[Part]) -> bool:
    """Whether `parts` can follow a slash without parentheses."""
    if len(parts) > 1 and parts[0].role == "open" and parts[-1].role == "close":
        depth = 0
        for number, part in enumerate(parts):
            depth += {"open": 1, "close": -1}.get(part.role, 0)
            if depth == 0:
                return number == len(parts) - 1 and parts[0].glyphs[0][0] == "("
    return len(parts) == 1 and parts[0].role in ("atom", "number") and parts[0].guards in ("", "right")


def _is_product(parts: list[Part]) -> bool:
    """Whether `parts` can precede a slash without parentheses."""
    if _is_single(parts):
        return True
    simple = all(part.role in ("atom", "number") and not part.guards for part in parts)
    return simple and all(glyph.isalnum() for part in parts for glyph, _ in part.glyphs) and bool(parts)


def joined(parts: Sequence[Part]) -> list[Glyph]:
    """`parts` in one line, each in the form that its neighbours call for."""
    shown: list[Glyph] = []
    solid = [number for number, part in enumerate(parts) if part.role != "space"]
    before = dict(zip(solid[1:], solid))
    behind = dict(pairwise(solid))
    for number, part in enumerate(parts):
        glyphs = part.glyphs
        if part.guards:
            left = part.guards in ("left", "both") and number in before
            right = part.guards in ("right", "both") and number in behind
            if (left and parts[before[number]].role in _FACTOR_BEFORE) or (
                right and parts[behind[number]].role in _FACTOR_BEHIND
            ):
                glyphs = part.tight or glyphs
        if not glyphs:
            continue
        previous = parts[before[number]] if number in before else None
        if previous and shown and shown[-1][0].isalnum() and glyphs[0][0].isalnum():
            if {"word", "limit"} & {part.role, previous.role}:
                shown.append((" ", glyphs[0][1]))
        elif previous and previous.role in ("limit", "big") and shown and shown[-1][0] == ")":
            shown.append((" ", glyphs[0][1]))
        if part.role == "space" and (not shown or shown[-1][0].isspace()):
            continue
        shown += glyphs
    return shown


def as_lines(rows: list[list[list[Part]]]) -> list[Part]:
    """The rows of an aligned environment, a line each."""
    parts: list[Part] = []
    for row in rows:
        if parts:
            first = next((glyph for cell in row for part in cell for glyph in part.glyphs), ("", 0))
            parts.append(Part("gap", [("\n", first[1])]))
        for number, cell in enumerate(row):
            if number and cell and parts and parts[-1].glyphs:
                parts.append(Part("space", [(" ", cell[0].glyphs[0][1] if cell[0].glyphs else 0)]))
            parts += cell
    return parts


def as_matrix(rows: list[list[list[Part]]]) -> list[Glyph]:
    """Cells with commas between them, rows with semicolons; a cell that has either is in parentheses."""
    shown: list[Glyph] = []
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            glyphs = trim(joined(cell))
            cell = [part for part in cell if part.glyphs]
            if glyphs and glyphs[-1][0] in ",;" and cell[-1].glyphs[-1] == glyphs[-1]:
                cell = cell[:-1]  # written where the separator will be
                if column + 1 < len(row) or number + 1 < len(rows):
                    glyphs.pop()
            if _has_separator(cell):
                glyphs = bracketed(glyphs)
            if number or column:
                place = glyphs[0][1] if glyphs else shown[-1][1] if shown else 0
                shown += [("," if column else ";", place), (" ", place)]
            shown += glyphs
    return shown


def _has_separator(cell: Sequence[Part]) -> bool:
    """Whether there is a comma, a semicolon or a line break outside of brackets."""
    depth = 0
    for part in cell:
        depth += {"open": 1, "close": -1}.get(part.role, 0)
        if depth <= 0 and part.glyphs[0][0] in ",;\n":
            return True
    return False


def bracketed(inner: Sequence[Glyph], place: int | None = None) -> list[Glyph]:
    """`inner` in parentheses. `place` is the offset of the opening one if nothing is inside."""
    inner = trim(inner)
    if not inner:
        return [("(", place), (")", place)] if place is not None else []
    return [("(", inner[0][1]), *inner, (")", inner[-1][1])]


def stripped(parts: list[Part]) -> list[Part]:
    """`parts` without the spaces around them."""
    first, last = 0, len(parts)
    while first < last and parts[first].role == "space":
        first += 1
    while last > first and parts[last - 1].role == "space":
        last -= 1
    return parts[first:last]


def spread(text: str, place: int) -> list[Glyph]:
    return [(glyph, place) for glyph in text]


def trim(glyphs: Sequence[Glyph]) -> list[Glyph]:
    first, last = 0, len(glyphs)
    while first < last and glyphs[first][0].isspace():
        first += 1
    while last > first and glyphs[last - 1][0].isspace():
        last -= 1
    return list(glyphs[first:last])
