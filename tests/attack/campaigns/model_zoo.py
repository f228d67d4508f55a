"""Tries every family of the zoo: rendering, stopping, thoughts, calls and reuse against their references.

A case is one family: of our own, or made of a public chat template where their folder is present. Differences
that `tests.zoo.explained` gives a reason for are not faults. `make models-table` writes the outcomes into
`docs/models.md`.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.models.runtime import prepare
from tests.attack.campaign import Campaign, Outcome
from tests.attack.support.variables import variables
from tests.zoo.families import FAMILIES, Family
from tests.zoo.real import real_families


def families() -> tuple[Family, ...]:
    """Those of our own, then those of public templates."""
    return (*FAMILIES, *real_families())


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    prepare()
    warnings.simplefilter("ignore", FutureWarning)  # transformers' own config classes
    tried = families()
    with (
        tempfile.TemporaryDirectory(prefix="draftlight-zoo-") as scratch,
        variables(DRAFTLIGHT_HOME=str(Path(scratch) / "home")),
    ):
        for case in cases:
            yield _case(seed, case, tried[case % len(tried)], Path(scratch) / f"family-{case}")


def _case(seed: int, case: int, family: Family, folder: Path) -> Outcome:
    from tests.zoo.explained import unexplained
    from tests.zoo.folder import write_family
    from tests.zoo.trial import try_family

    notes = {"family": family.name, "template": "public" if family.source else "own"}
    notes |= {"type": family.model_type, "tokenizer": family.tokenizer, "demands": family.demands}
    started = time.monotonic()
    try:
        write_family(family, folder, seed)
        found = try_family(family, folder, stops=not family.source)
    except Exception as error:  # whatever a config, a template or a model raises through the product
        return Outcome(case, f"{family.name}: {type(error).__name__}: {error}", {}, {}, notes)
    faults = unexplained(family.name, found.faults)
    return Outcome(
        case,
        f"{family.name}: {'; '.join(faults)}" if faults else "",
        found.counts,
        {"family_s": time.monotonic() - started},
        {**notes, **found.cells},
    )


CAMPAIGN = Campaign(
    "model-zoo",
    "In every family conversations render as transformers renders them, answers stop, thoughts and calls are"
    " recognised, and a second turn rereads only what is new",
    2,
    len(families()),
    _run,
)
