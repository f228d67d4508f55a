"""What a bench measures: prompts from a file, generated documents, and configurations of drafters.

Documents are made by kind and seed. `code` and `manual` are Draftlight's source files and docstrings; they
change with the version, so reports name the commit. `story` is a bundled text of which the seed selects 5,500
to 7,700 tokens. `records` and `minutes` are generated without end. A document is an iterator of text parts;
callers cut it to tokens.

A configuration is a drafter with settings. `--set group.field=value` applies to every configuration,
`--grid group.field=1,2,3` makes one configuration per value and combines with every other `--grid`. All
values are checked against the declarations of the settings before anything runs. A setting that a drafter
does not use is left out of its configurations, so no configuration is measured twice.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from core.bench.harness import fingerprint
from core.errors import RequestError, SettingError
from core.settings import Settings, assign, assign_all, parse_all
from core.settings.declaration import find
from core.settings.prefill import SCORERS
from core.system.paths import resources_dir


def document(kind: str, seed: int) -> Iterator[str]:
    """Parts of a document, each with its line breaks. Raises `RequestError` for an unknown kind."""
    try:
        make = KINDS[kind]
    except KeyError:
        raise RequestError(
            f"Unknown kind of document “{kind}”.", f"Choose from {', '.join(KINDS)}."
        ) from None
    return make(Random(f"{kind} {seed}"))


def _code(rng: Random) -> Iterator[str]:
    return _from([path.read_text(encoding="utf-8") for path in _modules()], 0.7 * rng.random())


def _manual(rng: Random) -> Iterator[str]:
    return _from([text for path in _modules() if (text := _reference(path))], 0.5 * rng.random())


def _modules() -> list[Path]:
    root = Path(__file__).parent.parent
    return [
        p for p in sorted(root.rglob("*.py")) if p.name != "__init__.py" and root / "bench" not in p.parents
    ]


def _reference(path: Path) -> str:
    """The docstrings of a module as a reference page."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [f"# {path.stem}", "", ast.get_docstring(tree) or ""]
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            lines += ["", f"## {node.name}", "", text]
    return "\n".join(lines)


def _story(rng: Random) -> Iterator[str]:
    text = (resources_dir() / "bench" / "story.txt").read_text(encoding="utf-8")
    parts = text.strip().split("\n\n")
    start = 0.05 * rng.random()
    return _from(parts[: round((0.75 + 0.25 * rng.random()) * len(parts))], start)


def _records(rng: Random) -> Iterator[str]:
    while True:
        record = {
            "id": rng.randint(10_000, 99_999),
            "berth": rng.choice(("north", "south", "outer", "inner")),
            "vessel": rng.choice(("ferry", "mail boat", "trawler", "lifeboat", "barge")),
            "arrived": f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
            "crew": rng.randint(1, 12),
            "cargo": {"kind": rng.choice(("fish", "timber", "mail", "none")), "tonnes": rng.randint(0, 90)},
        }
        yield json.dumps(record) + "\n"


def _minutes(rng: Random) -> Iterator[str]:
    people, number = ("Ada", "Bram", "Cleo", "Dirk", "Elin", "Frans"), 0
    while True:
        number += 1
        topic, other = rng.sample(_TOPICS, 2)
        chair, speaker, third = rng.sample(people, 3)
        yield (
            f"Item {number}: {topic}\n{chair} opened the item. {speaker} reported that {rng.choice(_NEWS)}"
            f" {third} asked how this would touch {other}. {speaker} said that it would not before"
            f" {rng.choice(_MONTHS)}. Decided: {chair} and {third} look into {topic} and report in"
            f" {rng.choice(_MONTHS)}. In favour {rng.randint(3, 6)}, against {rng.randint(0, 2)}.\n"
            f"{next(paragraphs(rng))}\n\n"
        )


_TOPICS = (
    *("the crane on the north quay", "the winter timetable", "the price of ice", "the school trip"),
    *("the leaking roof of the market hall", "the dredging of the channel", "the new lifeboat"),
    *("the parking of trailers", "the lamp on the outer marker", "the summer fair", "the water meter"),
)
_NEWS = (
    *("two offers had come in and the cheaper one was late.", "the work had been done but not yet paid."),
    *("nothing had changed since the last meeting.", "the office had written twice without an answer."),
    *("the old part had broken again and a new one was on its way.", "the money would last until autumn."),
)
_MONTHS = ("January", "March", "April", "June", "September", "October", "November")

KINDS: dict[str, Callable[[Random], Iterator[str]]] = {
    "code": _code,
    "manual": _manual,
    "story": _story,
    "records": _records,
    "minutes": _minutes,
}


def _from(parts: list[str], start: float) -> Iterator[str]:
    """The parts after the fraction `start`. The text is not repeated, because then it could be drafted."""
    for part in parts[int(start * len(parts)) :]:
        yield part.rstrip() + "\n\n"


# ---- filler prose

_PEOPLE = (
    *("the harbour master", "the baker", "the ferry captain", "the schoolteacher", "the old carpenter"),
    *("the postwoman", "the night watchman", "the doctor", "the apprentice", "the librarian", "the cook"),
    *("the clockmaker", "the surveyor", "the gardener", "the lighthouse keeper", "the choir leader"),
)
_PLACES = (
    *("the north quay", "the market hall", "the upper road", "the boathouse", "the old customs shed"),
    *("the chapel steps", "the lower mill", "the fish dock", "the school yard", "the tram stop"),
    *("the rope walk", "the salt store", "the town bridge", "the reading room", "the orchard"),
)
_THINGS = (
    *("a crate of lemons", "a coil of rope", "two tins of paint", "the repaired lantern", "a new ladder"),
    *("the missing sequence", "a sack of flour", "three folding chairs", "a barrel of nails", "an old map"),
    *("the brass bell", "a bundle of sails", "the spare oars", "a box of candles", "the winter timetable"),
)
_DEEDS = (
    *("brought {thing} to {place}", "looked for {thing} near {place}", "left {thing} behind {place}"),
    *(
        "sold {thing} at {place}",
        "asked whether {thing} still stood by {place}",
        "painted {thing} outside {place}",
    ),
    *("traded {thing} for bread at {place}", "carried {thing} from {place} before breakfast"),
    *("promised to return {thing} to {place}", "found {thing} under a tarpaulin at {place}"),
)
_TIMES = (
    *("in the morning", "before the tide turned", "after supper", "on the first dry day of the week"),
    *("while the rain held off", "at the end of the shift", "shortly before dusk", "when the bell had rung"),
)
_REMARKS = (
    *("Nobody thought it strange", "It took longer than it should have", "The weather stayed grey"),
    *("A few people stopped to watch", "There was talk of it for a day or two", "The gulls were loud"),
    *("It was the third time that month", "Somebody laughed and somebody else did not"),
    *("The work was done before noon", "A dog slept through all of it", "The wind came round to the west"),
)
_REASONS = (
    *("because the cart had lost a wheel", "since the shop was closed", "because the letter had said so"),
    *("although it was not yet paid for", "so that the children could see it", "in spite of the cold"),
    *("because the key did not fit", "as had been agreed in spring", "though no one had asked for it"),
)


def paragraphs(rng: Random) -> Iterator[str]:
    """Endless paragraphs of three to six sentences about a harbour town, equal for equal seeds.

    They vary enough that a scorer cannot recognise an inserted sentence by its style.
    """
    while True:
        yield " ".join(_sentence(rng) for _ in range(rng.randint(3, 6)))


def _sentence(rng: Random) -> str:
    def pick(words: tuple[str, ...]) -> str:
        return words[rng.randrange(len(words))]

    if rng.random() < 0.25:
        return f"{pick(_REMARKS)}, and {pick(_PEOPLE)} went back to {pick(_PLACES)}."
    deed = pick(_DEEDS).format(thing=pick(_THINGS), place=pick(_PLACES))
    who, when = pick(_PEOPLE), pick(_TIMES)
    if rng.random() < 0.5:
        return f"{when.capitalize()} {who} {deed}, {pick(_REASONS)}."
    return f"{who.capitalize()} {deed} {when}."


# ---- prompts


class BenchPrompt(Struct, frozen=True, rename={"kind": "class"}):
    """One line of a prompts file: JSON with `prompt` or `turns`, and optionally `class`.

    `prompt` is raw text to continue. `turns` are the user messages of a conversation, rendered with the
    chat template. Other fields are ignored.
    """

    prompt: str = ""
    kind: str = "prompt"
    turns: tuple[str, ...] = ()


def default_prompts() -> Path:
    """The bundled prompts file with three classes: prose, code and JSON records."""
    return resources_dir() / "bench" / "three-class.jsonl"


def read_prompts(path: Path) -> list[BenchPrompt]:
    """The prompts of a file. Raises `RequestError` naming the faulty line."""
    prompts = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                prompt = msgspec.json.decode(line, type=BenchPrompt)
                if bool(prompt.prompt) == bool(prompt.turns):
                    raise msgspec.ValidationError("it needs either `prompt` or `turns`")
                prompts.append(prompt)
            except msgspec.DecodeError as error:
                raise RequestError(
                    f"{path}, line {number}: {error}.", 'Example of a line: {"class": "code", "prompt": "…"}.'
                ) from None
    if not prompts:
        raise RequestError(f"{path} holds no prompts.", "Write one JSON object per line.")
    return prompts


def file_label(path: Path) -> str:
    """File name and content fingerprint, for the conditions of a measurement."""
    return f"{path.name} {fingerprint(path)}"


# ---- scorers of `bench retrieval`

# Every scorer has to find more than these.
RETRIEVAL_BASELINES = ("random", "head-and-tail")
# `bench quality` measures the scorer with a draft model, because it loads one.
RETRIEVAL_SCORERS = (*RETRIEVAL_BASELINES, *(name for name in SCORERS if name != "draft-model"))

# ---- configurations

MOST_CONFIGURATIONS = 256
# The drafters that use each group of settings. `auto` reads the table of ngram-mod.
_USED_BY: dict[str, tuple[str, ...]] = {
    "auto": ("auto",),
    "ngram_simple": ("ngram-simple",),
    "ngram_mod": ("ngram-mod", "auto"),
    "frequency": ("frequency",),
    "cacheback": ("cacheback",),
    "draft_model": ("draft-model",),
}
# Settings for which the benches have options.
OWN_OPTIONS = {"drafting.drafter": "--drafters", "sampling.max_tokens": "--max-tokens"}

Axes = Mapping[str, Sequence[object]]


class Configuration(Struct, frozen=True):
    """A drafter with settings. `given` maps the keys that were varied or set explicitly to their values."""

    name: str
    drafter: str
    given: dict[str, str]
    settings: Settings


def configurations(
    drafters: Sequence[str],
    common: Sequence[tuple[str, Any]],
    *,
    sets: Sequence[str] = (),
    grids: Sequence[str] = (),
    defaults: Axes | None = None,
    also: Axes | None = None,
    own_options: Mapping[str, str] = OWN_OPTIONS,
) -> list[Configuration]:
    """Every drafter with every combination of the settings it uses, drafter by drafter, names unique.

    `common` are the bench's own values, which `sets` and `grids` override. `defaults` are values to try
    unless `sets` or `grids` name the key; `also` are values from the bench's own options, always tried.
    The last axis varies fastest. Raises `SettingError`.
    """
    wanted = _wanted(sets, grids, own_options)
    for key in also or {}:
        if key in wanted:
            raise SettingError(f"{key} was given twice.", "Use the bench's own option for it.")
    axes: dict[str, Sequence[object]] = {
        **{key: values for key, values in (defaults or {}).items() if key not in wanted},
        **wanted,
        **(also or {}),
    }
    for key in wanted:
        if not any(_uses(drafter, key) for drafter in drafters):
            raise SettingError(
                f"None of {', '.join(drafters)} uses {key}.", "Leave it out, or add a drafter that uses it."
            )
    chosen = {name: {key: axes[key] for key in axes if _uses(name, key)} for name in drafters}
    count = sum(prod(map(len, each.values())) for each in chosen.values())
    if count > MOST_CONFIGURATIONS:
        raise SettingError(
            f"{count:,} configurations are more than the limit of {MOST_CONFIGURATIONS}.",
            "Give fewer values or fewer grids.",
        )
    found = []
    for drafter, own_axes in chosen.items():
        varied = [
            key for key in own_axes if len(own_axes[key]) > 1 or key in wanted or key in (defaults or {})
        ]
        for values in product(*own_axes.values()):
            given = {key: str(value) for key, value in zip(own_axes, values)}
            settings = assign_all(Settings(), [("drafting.drafter", drafter)])
            own = [(key, str(value)) for key, value in common if key not in given]
            labels = [f"{_short(drafter, key)}={given[key]}" for key in varied]
            found.append(
                Configuration(
                    " ".join([drafter, *labels]), drafter, given, parse_all(settings, _all_values(own, given))
                )
            )
    return found


def with_draft_model(
    options: argparse.Namespace, chosen: Sequence[Configuration], model: Path, scratch: Path
) -> list[tuple[Configuration, Settings]]:
    """Configurations with their settings, with a draft model filled in where one is needed.

    The draft model is `--draft-model`, or else a copy of the first `--draft-layers` layers of `model`,
    written to `scratch`.
    """
    found = []
    reference = options.draft_model
    for each in chosen:
        settings = each.settings
        if each.drafter == "draft-model" and not settings.draft_model.model:
            if not reference:
                reference = str(truncated_copy(model, options.draft_layers, scratch / "draft"))
            settings = assign(settings, "draft_model.model", reference)
        found.append((each, settings))
    return found


def _wanted(
    sets: Sequence[str], grids: Sequence[str], own_options: Mapping[str, str]
) -> dict[str, list[str]]:
    """Values of `--set` and `--grid` by key, each checked against the declaration of its setting."""
    found: dict[str, list[str]] = {}
    for flag, text in (*(("--set", each) for each in sets), *(("--grid", each) for each in grids)):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingError(f"{flag} {text} has no value.", f"Write {flag} group.field=value.")
        setting = find(key)
        if setting.key in own_options:
            raise SettingError(
                f"{setting.key} is not set by {flag}.", f"Use {own_options[setting.key]} of the bench."
            )
        if setting.key in found:
            raise SettingError(f"{setting.key} was given twice.", "Give all its values in one --grid.")
        values = [each.strip() for each in value.split(",")] if flag == "--grid" else [value]
        if len(set(values)) < len(values):
            raise SettingError(f"{flag} {text} holds a value twice.", "Give each value once.")
        for each in values:
            _check(setting.key, each)
        found[setting.key] = values
    return found


# For fields with a rule about another field: a value of the other field that permits every value of this.
_PERMISSIVE = {
    "ngram_simple.n_min": ("ngram_simple.n_max", "16"),
    "ngram_simple.n_max": ("ngram_simple.n_min", "1"),
    "cacheback.tree_tokens": ("cacheback.reserved_tokens", "0"),
    "cacheback.reserved_tokens": ("cacheback.tree_tokens", "256"),
}


def _check(key: str, text: str) -> None:
    """Raises `SettingError` if the field's declaration refuses the value; rules between fields come later."""
    other = _PERMISSIVE.get(key)
    parse_all(Settings(), [*([other] if other else []), (key, text)])


def _all_values(own: list[tuple[str, str]], given: Mapping[str, str]) -> list[tuple[str, str]]:
    """All values. If only n_min of ngram-simple was given, n_max is raised to it."""
    pairs = [*own, *given.items()]
    shortest = given.get("ngram_simple.n_min", "")
    if "ngram_simple.n_max" not in given and shortest.isdigit():
        longest = max(Settings().ngram_simple.n_max, int(shortest))
        pairs.append(("ngram_simple.n_max", str(longest)))
    return pairs


def _uses(drafter: str, key: str) -> bool:
    users = _USED_BY.get(key.partition(".")[0])
    return users is None or drafter in users


def _short(drafter: str, key: str) -> str:
    """The field name without its group if the group is the drafter's own."""
    group, _, name = key.partition(".")
    return name if group == drafter.replace("-", "_") else key


# ---- draft model

_LAYER = re.compile(r"\.layers\.(\d+)\.")


def truncated_copy(folder: Path, layers: int, target: Path) -> Path:
    """Write a copy of a model with its first `layers` layers to `target`, and return `target`.

    It is an untrained stand-in for a draft model of the same family where none is installed.
    """
    import mlx.core as mx

    weights: dict[str, mx.array] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(path))
        assert isinstance(loaded, dict)
        for name, weight in loaded.items():
            layer = _LAYER.search(name)
            if layer is None or int(layer.group(1)) < layers:
                weights[name] = weight
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": layers, "draftlight_name": f"first {layers} layers"}
    return write_copy(folder, target, weights, config)


def write_copy(folder: Path, target: Path, weights: dict[str, Any], config: dict[str, Any]) -> Path:
    """Write `weights` and `config` with the tokenizer files of `folder` to `target`, and return `target`."""
    import mlx.core as mx

    target.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(target / "model.safetensors"), weights, metadata={"format": "mlx"})
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for path in folder.iterdir():
        if path.name.startswith(("tokenizer", "special_tokens", "vocab", "merges")):
            shutil.copy(path, target / path.name)
    return target
