"""Answers for tests, written down the way they are read: `{a|b^c}` is one step with two accepted
tokens and a bonus; everything outside braces is normal, one token a word."""

from __future__ import annotations

import re

from app.session.chats.conversation import Answer, Turn
from core.events import Effective, Finished, FinishReason, Message, Origin, Stats, Token
from core.settings import Settings

_PART = re.compile(r"\{(.*?)\}|([^{}]+)", re.S)
_WORD = re.compile(r"\s*\w+|\s*[^\w\s]+|\s+")


def tokens_of(written: str) -> list[Token]:
    """The tokens of an answer; ids count from 100, steps take 40 ms."""
    found: list[tuple[str, Origin, int, int, int]] = []
    step = 0
    for match in _PART.finditer(written):
        if match.group(1) is None:
            for word in _WORD.findall(match.group(2)):
                step += 1
                found.append((word, "normal", step, 0, 0))
            continue
        step += 1
        drafted, _, bonus = match.group(1).partition("^")
        accepted = [text for text in drafted.split("|") if text]
        for number, text in enumerate(accepted, 1):
            found.append((text, "accepted", step, number, max(8, len(accepted))))
        if bonus:
            found.append((bonus, "bonus", step, 0, 0))
    return [
        Token("r", 100 + position, text, origin, step, position, index, length, round(0.4 + 0.04 * step, 3))
        for position, (text, origin, step, index, length) in enumerate(found)
    ]


def token(text: str, origin: Origin = "normal", step: int = 1, position: int = 0) -> Token:
    return Token("r", 7, text, origin, step, position, time_s=0.5)


def finished(
    stats: Stats | None = None, reason: FinishReason = "stop", drafter: str = "ngram-simple", **more: object
) -> Finished:
    effective = Effective("toy", "float32", drafter, Settings(), **more)
    return Finished("r", reason, stats or Stats(prompt_tokens=9, read_tokens=9, tokens=3), effective)


FERRY = """{Under| section^ 7}.2, **three conditions**{ have| to| hold| at^ the} same time:

1. Visibility, measured at the{^ berth} and{ at| the| outer^ marker}{,| is} at least 500 metres
2.{ The^ bridge} team has{ completed| the| restricted|-|vis^ibility}{ check|list|,| and| the^ officer}
3.{^ Har}bour{^ control} has given{ a| depart|ure^ slot}

{^Only} the duty{ master^ can} override{ this^.}"""

MERGE = """Sort first.

```python
{def| merge|(|intervals^):}
   { merged| =^ []}
   { return|  merged}
```

Then `walk` the list."""


def turns_of(count: int, repeats: int = 3) -> tuple[Turn, ...]:
    """`count` questions and finished answers; every answer says its own number first, and some have
    many short lines, so that nobody guesses their heights."""
    body = tokens_of(("\n\n" + FERRY + "\n\n" + MERGE) * repeats)
    short = tokens_of("\n\n# Short\n\nlines\n\n- of\n- a\n- list")
    turns = []
    for number in range(count):
        question = Message("user", f"Question {number}: who may override it?")
        tokens = (*tokens_of(f"Answer {number}."), *short * (number * 7 % 5), *body)
        turns.append(Turn(f"t{number}", question, Answer(tokens, "finished", finished())))
    return tuple(turns)
