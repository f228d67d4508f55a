"""Every text of this folder that a person reads."""

from __future__ import annotations

# ---- token classes
CLASS_NAMES = {"accepted": "Accepted draft", "bonus": "Bonus", "normal": "Alone"}
CLASS_EXPLAINED = {
    "accepted": "Guessed ahead by the drafter, then checked by the model. Solid underline.",
    "bonus": "The model's own token after accepted ones, free in the same step. Dotted underline.",
    "normal": "Came alone in its step: there was no draft, or none of it was accepted. No mark.",
}
LEGEND_HINT = "Hover over a token for details"

# ---- tooltip
TIP_CLASS = "Class"
TIP_STEP = "Step"
TIP_DRAFTER = "Drafter"
TIP_POSITION = "Position"
TIP_ARRIVED = "Arrived"
NONE = "–"
TOKEN_ID = "id {id}"
STEP_OF = "{step:,} of {steps:,}"
POSITION_OF = "{index} of {length} drafted"
ARRIVED_ALONE = "{seconds}, alone"
ARRIVED_WITH_ONE = "{seconds}, with 1 other"
ARRIVED_WITH = "{seconds}, with {others} others"
SECONDS = "{value} s"
END_OF_ANSWER = "end of answer"
PART_OF = "part of {text}"
STRIP_NAME = "Where the tokens came from"
STRIP_SAYS = "{accepted:,} accepted, {bonus:,} bonus, {normal:,} alone"
TIP_LINK = "Opens outside:"
