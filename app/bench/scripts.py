"""Chats in several scripts, with formulas and with tables, for pictures."""

from __future__ import annotations

import random

from app.bench.sample_chat import answer_turn
from app.session.chats.conversation import Turn

_HEBREW = "המחיר של iPhone הוא 250 שקל."
_ARABIC = "سعر الهاتف 250 ريالا، وسعر iPhone أعلى (بكثير)."
_HEADS = [f"heading{number}" for number in range(14)]
_WIDE = "\n".join(
    f"| {' | '.join(cells)} |" for cells in (_HEADS, ["---"] * 14, [f"value of {head}" for head in _HEADS])
)

# Question and answer of each.
SCRIPTS: dict[str, tuple[str, str]] = {
    "rtl": (
        "מה המחיר של הכרטיס לרכבת",
        f"# כותרת\n\n{_HEBREW}\n\n- {_HEBREW}\n- [x] {_HEBREW * 3}\n\n1. {_HEBREW}\n2. `code` {_ARABIC}\n\n"
        f"> {_ARABIC * 3}\n\n| שם | מחיר | הערה |\n|---|---|---|\n| כרטיס<br>שנתי | 250 | {_HEBREW * 2} |\n\n"
        "English with שלום in it.",
    ),
    "cjk": (
        "这个公式是什么意思？请看https://example.org/path，谢谢。",
        "设$x$为正数，**重要：**请注意**“术语”**的意思。" * 3
        + "\n\n「日本語」の文章は、句読点（。）や小さい「ゃゅょっ」を行の始めに置かない。" * 3
        + "\n\n**핵심(core)**은 $\\frac{1}{2}mv^2$입니다.\n\n"
        + "| 项目 | 价格 | 備考 |\n|---|--:|---|\n| 绿茶<br>热 | 3 | 「税込」 |\n| 咖啡 | 12 | 별도 |\n",
    ),
    "math": (
        "Which of these are equal: $2\\frac{1}{2}$ and $\\frac{21}{2}$?",
        "None: $2\\frac{1}{2} \\ne \\frac{21}{2}$, $\\frac{1}{2}mv^2 \\ne \\frac{1}{2mv^2}$, "
        "$\\sqrt{2}\\pi \\ne \\sqrt{2\\pi}$.\n\n"
        "$$x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}, \\quad "
        "\\sum_{i=1}^{n} \\frac{1}{i^2} = \\frac{\\pi^2}{6}$$\n\n"
        "$$A = \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}, \\quad "
        "f(x) = \\begin{cases} 1 & x > 0 \\\\[4pt] 0 & x \\le 0 \\end{cases}$$\n\n"
        "$\\mathbf{x}^\\top \\in \\mathbb{R}^n$, $\\binom{n}{k}$, $\\hat{y}_{i,j}$, $e^{-x^{2n}}$, "
        "$\\mathcal{L}(\\theta)$, $\\operatorname*{argmax}_x f$",
    ),
    "tables": (
        "Compare the prices.",
        "| Item | Price |\n|---|---|\n| Tea<br>green | 3 | per cup |\n| Coffee | 4 |\n\n"
        f"{_WIDE}\n\n- [ ] ask for the price of milk[^1]\n- [x] ask for the price of tea\n\n"
        "[^1]: The one of the shop at the corner.\n\nMilk\n: white, from cows\n: also from oats\n",
    ),
}


def script_turn(name: str) -> Turn:
    """The chat of that name, with the origins of its tokens."""
    return answer_turn(random.Random(len(name)), f"script-{name}", *SCRIPTS[name])
