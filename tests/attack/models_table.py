"""`python -m tests.attack.models_table OUT/architectures.jsonl`: what the campaign's outcomes say of models.

Writes `docs/models.md`, a row a model type and variant, and `resources/decoding/tried.json`, the types
on which drafts and reuse are taken before the loaded model itself was tried out. A type is in that list
if no variant of it differed or was refused; scaling by the length is asked for by a config, and never
taken on trust.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from core.system.paths import resources_dir
from tests.attack.campaign import Outcome
from tests.attack.support.tiny_configs import NOT_BUILT, variants
from tests.attack.tally import read_outcomes
from tests.core.architectures import ARCHITECTURES
from tests.zoo.table import families_section

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
PARTS = ("chains", "trees", "prefix reuse", "sparse prefill")
YES = "yes"
_BY_LENGTH = "dynamic"
_HEAD = """# Models

What Draftlight does with each model type of mlx-lm, as tried on tiny models with random weights.
Chains and trees are drafts of several tokens that one forward verifies; prefix reuse is going on with
what is in the cache; sparse prefill is reading a long text with gaps. What stands under "yes" gave, token
for token, what plain decoding gives from a cold start, greedy and sampled, with every drafter; what is
refused is said when it is asked for, and the model answers without it. `TYPE+KIND` is a type with another
setting: RoPE scaling, heads, windows, experts. A tiny model shows what the code does, not how well a
real one answers.

Made by `make models-table`, with mlx {mlx} and mlx-lm {mlx_lm}:
{cases} models, {faults} of them with a difference.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        print(__doc__, file=sys.stderr)
        return 2
    outcomes = [outcome for path in given for outcome in read_outcomes(Path(path))]
    DOCUMENT.write_text(document(outcomes))
    outcomes = [outcome for outcome in outcomes if "architecture" in outcome.notes]
    names = sorted(agreeing(outcomes) | set(ARCHITECTURES))
    (resources_dir() / "decoding" / "tried.json").write_bytes(msgspec.json.encode(names) + b"\n")
    return 0


def document(outcomes: Iterable[Outcome]) -> str:
    """The text of `docs/models.md`."""
    every = list(outcomes)
    outcomes = [each for each in every if "architecture" in each.notes]
    tried = sorted(
        (each for each in outcomes if "chains" in each.notes), key=lambda each: each.notes["architecture"]
    )
    others = {
        each.notes["architecture"]: each.notes.get("not built") or each.fault
        for each in outcomes
        if "chains" not in each.notes
    }
    seen = {each.notes["architecture"] for each in tried}
    others |= {name: "it was not in this run" for name in variants() if name not in seen | set(others)}
    faulty = [each for each in tried if each.fault]
    head = _HEAD.format(
        mlx=version("mlx"), mlx_lm=version("mlx-lm"), cases=f"{len(tried):,}", faults=len(faulty)
    )
    lines = [head, "| model type | chains | trees | prefix reuse | sparse prefill |", "|---|---|---|---|---|"]
    reasons: dict[str, int] = {}
    for each in tried:
        cells = [_cell(each.notes[part], reasons) for part in PARTS]
        mark = " (a difference was found, see below)" if each.fault else ""
        lines.append("| " + " | ".join([f"`{each.notes['architecture']}`{mark}", *cells]) + " |")
    lines += ["", "Why not:", ""]
    lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    if faulty:
        lines += ["", "## Differences", ""]
        lines += [f"- `{each.notes['architecture']}`: {each.fault}" for each in faulty]
    lines += ["", "## Not tried", ""]
    lines += [f"- `{name}`: {reason}" for name, reason in sorted({**NOT_BUILT, **others}.items())]
    if section := families_section(every):
        lines += ["", section.rstrip()]
    return "\n".join(lines) + "\n"


def _cell(said: str, reasons: dict[str, int]) -> str:
    return YES if said == YES else f"no ({reasons.setdefault(said, len(reasons) + 1)})"


def agreeing(outcomes: Iterable[Outcome]) -> set[str]:
    """The model types on all of whose variants chains and reuse were the same, up to scaling by length."""
    found: dict[str, bool] = {}
    for each in (tried := [each for each in outcomes if "chains" in each.notes]):
        model_type, _, kind = each.notes["architecture"].partition("+")
        if kind != _BY_LENGTH:
            fine = not each.fault and each.notes["chains"] == each.notes["prefix reuse"] == YES
            found[model_type] = found.get(model_type, True) and fine
    plain = {each.notes["architecture"] for each in tried}
    return {model_type for model_type, fine in found.items() if fine and model_type in plain}


def agreeing_in(text: str) -> set[str]:
    """The same, as the table in `text` has it."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    outcomes = [
        Outcome(0, "" if name.endswith("`") else name, notes={"architecture": name.split("`")[1], **cells})
        for name, cells in ((row[0], dict(zip(PARTS, row[1:]))) for row in rows)
    ]
    return agreeing(outcomes)


if __name__ == "__main__":
    raise SystemExit(main())
