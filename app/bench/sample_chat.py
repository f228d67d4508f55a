"""Sample chats: long ones for measurements; several scripts, formulas and tables for pictures.

A long one is generated from a seed, with prose, lists, quotes, tables, formulas and code, and with drafted
and plain steps in the proportions of a chat about a document.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from app.session.chats.conversation import Answer, Turn
from core.events import Effective, Finished, Message, Origin, Stats, Token
from core.settings import Settings

_VOCABULARY = (
    "the berth ferry master harbour may sail in fog when marker seen at least metres and officer reads "
    "checklist back to bridge before lines are let go only duty control gives a slot which lapses after "
    "minutes unless renewed by radio with pilot on board vessel draught tide crew report night station"
)
_WORDS = _VOCABULARY.split()
_CODE = (
    "```python\ndef berths(rows):\n    free = []  # by name\n    for row in rows:\n"
    '        if row["state"] == "free":\n            free.append(row["name"])\n    return sorted(free)\n```'
)
_PIECE = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


def sample_turns(turns: int = 100, answer_tokens: int = 580, seed: int = 7) -> tuple[Turn, ...]:
    """`turns` questions and answers, each answer of that many tokens."""
    chance = random.Random(seed)
    return tuple(_turn(chance, number, answer_tokens) for number in range(turns))


def sample_tokens(count: int, seed: int = 7, paragraph: bool = False) -> tuple[Token, ...]:
    """Tokens of an answer; `paragraph`: one endless paragraph."""
    chance = random.Random(seed)
    text = _sentence(chance, count) if paragraph else _markdown(chance, count)
    return tuple(_tokens(chance, _PIECE.findall(text)[:count], "r"))


def _turn(chance: random.Random, number: int, answer_tokens: int) -> Turn:
    question = _sentence(chance, 18) + "?"
    parts = _PIECE.findall(_markdown(chance, answer_tokens))[:answer_tokens]
    return _answered(chance, f"bench-{number}", question, parts)


def answer_turn(chance: random.Random, turn_id: str, question: str, answer: str) -> Turn:
    """A question and an answer of that text, whose tokens are drafted or not by `chance`."""
    return _answered(chance, turn_id, question, _PIECE.findall(answer))


def _answered(chance: random.Random, turn_id: str, question: str, parts: Sequence[str]) -> Turn:
    tokens = tuple(_tokens(chance, parts, turn_id))
    accepted, bonus, normal = (
        sum(token.origin == origin for token in tokens) for origin in ("accepted", "bonus", "normal")
    )
    stats = Stats(
        prompt_tokens=4000,
        read_tokens=900,
        tokens=len(tokens),
        accepted=accepted,
        bonus=bonus,
        normal=normal,
        steps=bonus + normal,
        tested=accepted + bonus,
        mean_per_step=len(tokens) / (bonus + normal),
        ttft_s=0.4,
        tokens_per_s=50.0,
    )
    finished = Finished(turn_id, "stop", stats, Effective("Sample", "float32", "auto", Settings()))
    return Turn(turn_id, Message("user", question), Answer(tokens, "finished", finished))


def _tokens(chance: random.Random, parts: Sequence[str], request: str) -> Iterator[Token]:
    step = position = 0
    while position < len(parts):
        step += 1
        drafted = chance.choice((0, 0, 1, 2, 3, 5)) if position else 0
        drafted = min(drafted, len(parts) - position - 1)
        for index in range(drafted + 1):
            last: Origin = "bonus" if drafted else "normal"
            origin: Origin = "accepted" if index < drafted else last
            place = (index + 1, max(6, drafted)) if origin == "accepted" else (0, 0)
            yield Token(request, 100, parts[position], origin, step, position, *place, 0.4 + 0.04 * step)
            position += 1


def _markdown(chance: random.Random, tokens: int) -> str:
    """Somewhat more than `tokens` tokens."""
    blocks: list[str] = []
    written = 0
    while written < tokens + 40:
        kind = chance.random()
        if kind < 0.62:
            words = _sentence(chance, 45).split()
            words[4] = f"**{words[4]}**"
            block = " ".join(words) + "."
        elif kind < 0.82:
            block = "\n".join(f"{n}. {_sentence(chance, 14)}" for n in range(1, 5))
        elif kind < 0.88:
            block = _CODE
        elif kind < 0.93:
            rows = "\n".join(f"| {_sentence(chance, 2)} | {_sentence(chance, 9)} | {n} |" for n in range(3))
            block = f"| Berth | Note | No |\n|:--|:--|--:|\n{rows}"
        elif kind < 0.97:
            block = f"> {_sentence(chance, 16)}"
        else:
            block = "So \\(x_{1}^2 \\leq \\frac{a+b}{2}\\) holds."
        blocks.append(block)
        written += len(_PIECE.findall(block)) + 1
    return "\n\n".join(blocks)


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(words)).capitalize()


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
