"""`make schemas`: answers by the schemas of the public JSON Schema test suite, judged by `jsonschema`.

    python -m tests.attack.schemas --suite ARCHIVE --out DIR

The suite is not ours and is not kept here: ARCHIVE is the source distribution of `jsonschema`, which carries
it. Each different schema of its drafts 7, 2019-09 and 2020-12 is asked of the starter model, greedily or
sampled, once drafted by `auto` with what the schema forces and once without any draft. Both answers must be
equal, and one that came to its end must be valid. A schema that cannot be compiled must be refused with the
compiler's words, before anything is read. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from core.bench.runner import Journal
from core.settings import Settings, assign, assign_all

if TYPE_CHECKING:
    from core.engine.engine import Engine

# What a schema means depends on its draft, and many of the suite's do not name theirs.
_DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
# Enough for nearly every schema of the suite; an answer that is cut off there is not judged.
_MOST_TOKENS = 64
_ASKED = "Give one example of JSON that this JSON schema allows, as short as possible:\n\n"


class SchemaCase(Struct, frozen=True):
    """One schema, and which draft of the standard it is of."""

    draft: str
    name: str
    schema: dict[str, Any]


class Judged(Struct, frozen=True):
    """What became of a case. `ending`: refused, ended or cut off. `fault` is empty if all was as promised."""

    case: str
    ending: str
    text: str = ""
    fault: str = ""
    tokens: int = 0
    forced: int = 0
    steps: int = 0

    @property
    def key(self) -> tuple[str]:
        return (self.case,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask for all, write `schemas.jsonl` and `schemas.md`; returns 1 if something was not as promised."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.schemas")
    parser.add_argument("--suite", type=Path, required=True, metavar="ARCHIVE")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--count", type=int, default=0, help="so many schemas, evenly chosen (default: all)")
    options = parser.parse_args(arguments)
    cases = list(read_suite(options.suite))
    if options.count:
        cases = random.Random(1).sample(cases, min(options.count, len(cases)))
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    engine = Engine()
    engine.load("starter")
    options.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.out / "schemas.jsonl", f"{_MOST_TOKENS} tokens, drafts named", Judged)
    for number, case in enumerate(cases):
        if not journal.has(case.name):
            journal.add(judge(engine, case, temperature=0.8 if number % 2 else 0.0))
            found = journal.all[-1]
            print(f"{number + 1} of {len(cases)}: {found.case}: {found.ending} {found.fault}", flush=True)
    judged = [each for each in journal.all if each.case in {case.name for case in cases}]
    report = table(judged)
    (options.out / "schemas.md").write_text(report, encoding="utf-8")
    print(report)
    engine.close()
    return 1 if any(each.fault for each in judged) else 0


def read_suite(archive: Path) -> Iterator[SchemaCase]:
    """The different schemas of a source distribution's suite that are objects."""
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(archive) as held:
        held.extractall(scratch, filter="data")
        for draft, uri in _DRAFTS.items():
            for path in sorted(Path(scratch).glob(f"*/json/tests/{draft}/*.json")):
                for group in json.loads(path.read_text(encoding="utf-8")):
                    schema = group["schema"]
                    if not isinstance(schema, dict):
                        continue
                    bare = {key: value for key, value in schema.items() if key != "$schema"}
                    if (text := json.dumps(bare, sort_keys=True)) not in seen:
                        seen.add(text)
                        name = f"{draft}/{path.stem}: {group['description']}"
                        yield SchemaCase(draft, name, {"$schema": uri, **schema})


def judge(engine: Engine, case: SchemaCase, temperature: float) -> Judged:
    """Ask for it, drafted and not."""
    from core.errors import GrammarError
    from core.events import Finished, Generate, Grammar, Message, Token

    text = json.dumps(case.schema)
    values = {
        "sampling.max_tokens": _MOST_TOKENS,
        "sampling.temperature": temperature,
        "prefill.mode": "off",
        "tables.learn": False,
    }
    settings = assign_all(Settings(), values.items())
    answers = []
    for drafter, drafts in (("auto", True), ("off", False)):
        chosen = assign(settings, "drafting.drafter", drafter)
        grammar = Grammar("json_schema", text, drafts)
        asked = Generate("schemas", (Message("user", _ASKED + text),), chosen, grammar=grammar)
        try:
            events = list(engine.generate(asked))
        except GrammarError as error:
            fault = "" if "cannot be compiled: " in error.message else f"refused without a reason: {error}"
            return Judged(case.name, "refused", error.message, fault)
        finished = events[-1]
        assert isinstance(finished, Finished)
        answers.append(("".join(each.text for each in events if isinstance(each, Token)), finished))
    (drafted, finished), (plain, _) = answers
    stats = finished.stats
    ending = "ended" if finished.reason == "stop" else "cut off"
    found = Judged(case.name, ending, drafted, "", stats.tokens, stats.forced, stats.steps)
    if drafted != plain:
        return replace(found, fault=f"without drafts it is {plain!r}")
    return replace(found, fault=_why_invalid(case, drafted)) if ending == "ended" else found


def _why_invalid(case: SchemaCase, text: str) -> str:
    """In words; empty if the answer is valid."""
    import jsonschema

    kinds = dict(
        zip(
            _DRAFTS,
            (jsonschema.Draft7Validator, jsonschema.Draft201909Validator, jsonschema.Draft202012Validator),
        )
    )
    try:
        errors = list(kinds[case.draft](case.schema).iter_errors(json.loads(text)))
    except ValueError as error:
        return f"no JSON: {error}"
    return "; ".join(error.message for error in errors)


def table(judged: Sequence[Judged]) -> str:
    """Markdown: how many ended how."""
    endings = Counter(each.ending for each in judged)
    faults = [each for each in judged if each.fault]
    tokens, forced = (sum(getattr(each, name) for each in judged) for name in ("tokens", "forced"))
    lines = [
        f"- {len(judged)} schemas: {endings['ended']} answers ended, {endings['cut off']} were cut off after"
        f" {_MOST_TOKENS} tokens, {endings['refused']} schemas were refused with the compiler's words.",
        f"- {forced:,} of {tokens:,} tokens were forced; {sum(each.steps for each in judged):,} forwards.",
        f"- {len(faults)} not as promised.",
        *(f"  - {each.case}: {each.fault}" for each in faults),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
