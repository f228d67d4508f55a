"""TokenFacts: the content of a token's tooltip. No Qt."""

from __future__ import annotations

from msgspec import Struct

from app.chat import strings
from app.chat.answer_text import TokenTable
from core.events import Origin, Token
from core.settings import declared

_VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "↵", "\u00a0": "␣"})
_MAX_CHARACTERS = 24


class TokenFacts(Struct, frozen=True):
    """`rows` are labels and values, without the class, which is painted separately."""

    text: str
    id: str
    origin: Origin
    class_name: str
    rows: tuple[tuple[str, str], ...]
    address: str = ""  # of the link that the token belongs to


def facts_of(table: TokenTable, index: int, drafter: str, address: str = "") -> TokenFacts:
    """The facts of the token `index`. `drafter` is empty while unknown."""
    token, origin = table[index], table.origin_of(index)
    drafted = token.origin == "accepted" and token.draft_length > 0
    return TokenFacts(
        _shown(table, index),
        strings.TOKEN_ID.format(id=token.id),
        origin,
        strings.CLASS_NAMES[origin],
        (
            (strings.TIP_STEP, strings.STEP_OF.format(step=token.step, steps=max(table.steps, token.step))),
            (strings.TIP_DRAFTER, drafter_label(drafter) if drafter else strings.NONE),
            (
                strings.TIP_POSITION,
                strings.POSITION_OF.format(index=token.draft_index, length=token.draft_length)
                if drafted
                else strings.NONE,
            ),
            (strings.TIP_ARRIVED, _arrived(token, table.in_step(token.step) - 1)),
        ),
        address,
    )


def drafter_label(name: str) -> str:
    """The label of the drafter `name`, or the name if it has none."""
    for setting in declared():
        if setting.key == "drafting.drafter":
            return setting.labels.get(name, name)
    return name


def seconds(value_s: float) -> str:
    """A time with three significant digits: 0.41 s, 24.3 s, 112 s."""
    decimals = 2 if value_s < 9.995 else 1 if value_s < 99.95 else 0
    return strings.SECONDS.format(value=f"{value_s:,.{decimals}f}")


def _arrived(token: Token, others: int) -> str:
    time = seconds(token.time_s)
    if others <= 0:
        return strings.ARRIVED_ALONE.format(seconds=time)
    if others == 1:
        return strings.ARRIVED_WITH_ONE.format(seconds=time)
    return strings.ARRIVED_WITH.format(seconds=time, others=others)


def _shown(table: TokenTable, index: int) -> str:
    """The token's text without surrounding white space; white space alone is shown as symbols."""
    text = table[index].text
    if not text:
        whole = table.shown_by(index)
        if whole is None:
            return strings.END_OF_ANSWER
        return strings.PART_OF.format(text=_shown(table, whole))
    core = text.strip() or text.translate(_VISIBLE)
    core = core.translate({10: "↵", 9: "⇥", 13: "↵"})
    return core if len(core) <= _MAX_CHARACTERS else core[: _MAX_CHARACTERS - 1] + "…"
