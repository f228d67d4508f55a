"""What LaTeX commands look like in Unicode. Tables only."""

from __future__ import annotations

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
