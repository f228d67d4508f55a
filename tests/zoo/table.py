"""The families' part of docs/models.md: a row a family, what differs and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.attack.campaign import Outcome
from tests.zoo.explained import reason

COLUMNS = ("renders", "stops", "thinks", "calls", "reuses")
_HEAD = """## Families

What Draftlight does with model families: their config keys, chat templates, tokenizers and caches, on tiny
models with random weights. The templates are our own and make the same demands as those of the public
models a family is named after; no checkpoint was used.

- **renders**: {shapes} conversations in {shape_names} shapes (several or late system messages, empty or
  doubled turns, tool loops, past thoughts, attachments …) give the same tokens as transformers'
  `apply_chat_template` on the normalised conversation; nothing is refused or left out that the template
  accepts; control tokens in a question, a document or a system prompt stay text.
- **stops**: an answer ends at each stop token that mlx-lm, `generation_config.json` or `text_config` names.
- **thinks**: a thought is told apart from the answer, also where the prompt opens it.
- **calls**: tool calls that the template renders are parsed again, with names and types.
- **reuses**: tokens of the first turn that the second turn reuses; its answer equals that of a cold start.

“-” means that the family has nothing of the kind; a number in parentheses refers to the list below the table.
"""


def families_section(outcomes: Iterable[Outcome]) -> str:
    """The section's text; empty without any outcome of the zoo."""
    tried = [each for each in outcomes if "family" in each.notes]
    own = [each for each in tried if each.notes["template"] == "own"]
    public = [each for each in tried if each.notes["template"] == "public"]
    if not own:
        return ""
    shapes = int(sum(each.counts.get("shapes", 0) for each in tried))
    lines = [_HEAD.format(shapes=f"{shapes:,}", shape_names=19)]
    lines += ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines.append(_summary("families of our own", own))
    if public:
        lines.append(_summary("public chat templates", public))
    notes: dict[str, int] = {}
    lines += ["", "| family | model type | demands | " + " | ".join(COLUMNS) + " |"]
    lines.append("|---" * (len(COLUMNS) + 3) + "|")
    for each in own:
        cells = [_cell(each, column, notes) for column in COLUMNS]
        lines.append(
            "| "
            + " | ".join([each.notes["family"], each.notes["type"], each.notes["demands"], *cells])
            + " |"
        )
    if public:
        lines += [
            "",
            "Public chat templates with a difference (all others are the same in every column):",
            "",
        ]
        lines += ["| template | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
        for each in public:
            cells = [_cell(each, column, notes) for column in COLUMNS]
            if any("(" in cell for cell in cells) or each.fault:
                lines.append("| " + " | ".join([each.notes["family"], *cells]) + " |")
    lines += ["", "Differences:", ""]
    lines += [f"{number}. {text}" for text, number in notes.items()] or ["None."]
    return "\n".join(lines) + "\n"


def _summary(name: str, outcomes: Sequence[Outcome]) -> str:
    cells = []
    for column in COLUMNS:
        has = [each for each in outcomes if each.notes.get(column, "-") != "-"]
        right = [each for each in has if each.notes[column] == "yes"]
        cells.append(f"{len(right)} of {len(has)}")
    reused = sum(each.counts.get("reused", 0) for each in outcomes)
    first = sum(each.counts.get("first turn", 0) for each in outcomes)
    if first:
        cells[-1] += f" ({100 * reused / first:.1f}% of tokens)"
    return f"| {len(outcomes)} {name} | " + " | ".join(cells) + " |"


def _cell(outcome: Outcome, column: str, notes: dict[str, int]) -> str:
    said = outcome.notes.get(column)
    first, reused = outcome.counts.get("first turn", 0), outcome.counts.get("reused", 0)
    share = f"{100 * reused / first:.0f}%" if column == "reuses" and first else ""
    if said is None:
        said = outcome.fault or "not tried"
    if said in ("yes", "-"):
        return share or said
    why = reason(outcome.notes["family"], f"{column}: {said}")
    number = notes.setdefault(_plain(why or said), len(notes) + 1)
    return f"{share or 'no'} ({number})"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:400]
