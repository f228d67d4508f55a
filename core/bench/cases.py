"""The axes of the matrix: cases (prompts, conversations, documents) and configurations (drafters, settings).

A case comes from a file or is generated: a document is the minutes of a council, as long as wanted.

A configuration is a drafter with settings. `--set group.field=A,B` makes one configuration per value and
combines with every other `--set`; a text is one value. All values are checked against the declarations of the
settings before anything runs. A setting that a drafter does not use is left out of its configurations, so no
configuration is measured twice.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from core.bench.runner import read_input
from core.errors import RequestError, SettingError
from core.events import Attachment, Message
from core.settings import Settings, assign, assign_all, parse_all
from core.settings.declaration import find
from core.system.paths import resources_dir
from core.system.prepared import prepared

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from mlx_lm.tokenizer_utils import TokenizerWrapper


# ---- documents


def minutes(rng: Random) -> Iterator[str]:
    """The parts of a protocol without an end, equal for equal seeds."""
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


# ---- cases

BUNDLED = {path.stem: path for path in sorted((resources_dir() / "bench").glob("*.jsonl"))}
# A generated document that a question is about, pasted with it or attached before it.
DOCUMENTS = ("document", "document-attached")
DOCUMENT_TOKENS = 8000
# No tokenizer needs fewer tokens for the same text.
_CHARACTERS_PER_TOKEN = 10
_QUESTION = "What was decided last, and who was asked to report on it?"
# Spec-Bench's tables count these categories of MT-Bench as one.
_MULTI_TURN = {
    *("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"),
}


class BenchPrompt(Struct, frozen=True, rename={"kind": "class"}):
    """One line of a prompts file: JSON with `prompt` or `turns`, and optionally `class`.

    `prompt` is raw text to continue. `turns` are the user messages of a conversation, rendered with the
    chat template. `category` is the class in files of Spec-Bench. Other fields are ignored.
    """

    prompt: str = ""
    kind: str = "prompt"
    turns: tuple[str, ...] = ()
    category: str = ""

    @property
    def label(self) -> str:
        """The class of the prompt."""
        return "multi-turn" if self.category in _MULTI_TURN else self.category or self.kind


class Case(Struct, frozen=True):
    """One prompt of the matrix: raw text to continue, a conversation, or a question about a document.

    `id` is unique in a run, `kind` its class. `tokens`: the exact length of a raw prompt and the most of a
    document's, 0 for as it is. `attached`: the document's passages are embedded before the question.
    """

    id: str
    kind: str
    prompt: str = ""
    turns: tuple[str, ...] = ()
    document: str = ""
    tokens: int = 0
    attached: bool = False


def read_cases(names: Sequence[str], lengths: Sequence[int], each: int, seed: int) -> list[Case]:
    """The cases of all `names`: bundled files, `DOCUMENTS`, prompts (`.jsonl`) and texts by path.

    `lengths`: prompt lengths in tokens, each of which makes a case of every prompt and document. Of each
    class at most `each` cases are drawn by `seed`, all if it is 0. Raises `RequestError`.
    """
    found: list[Case] = []
    for name in names:
        path = BUNDLED.get(name, Path(name))
        for length in lengths or (0,):
            if name in DOCUMENTS:
                tokens = length or DOCUMENT_TOKENS
                text = document_text(seed, tokens)
                label = f"{name} of {tokens:,} tokens"
                attached = name == DOCUMENTS[1]
                found.append(Case(label, label, document=text, tokens=tokens, attached=attached))
            elif path.suffix == ".jsonl":
                found += _prompts(path, length)
            else:
                text, label = _text(path), f"{path.name}{f', {length:,} tokens' if length else ''}"
                found.append(Case(label, label, document=text, tokens=length))
    if len({case.id for case in found}) < len(found):
        raise RequestError("A case was given twice.", "Give each of --cases and --prompt-tokens once.")
    drawn = {
        case.id
        for kind in dict.fromkeys(case.kind for case in found)
        for case in _drawn([case for case in found if case.kind == kind], each, seed)
    }
    return [case for case in found if case.id in drawn]


def _drawn(cases: list[Case], each: int, seed: int) -> list[Case]:
    if not each or each >= len(cases):
        return cases
    return Random(f"{seed} {cases[0].kind}").sample(cases, each)


def _prompts(path: Path, tokens: int) -> Iterator[Case]:
    suffix = f", {tokens:,} tokens" if tokens else ""
    for number, prompt in enumerate(read_prompts(path), 1):
        if tokens and prompt.turns:
            raise RequestError(
                f"{path} holds conversations, whose length is not set by --prompt-tokens.", "Leave it out."
            )
        kind = f"{prompt.label}{suffix}"
        yield Case(f"{path.name}:{number}{suffix}", kind, prompt.prompt, prompt.turns, tokens=tokens)


def read_prompts(path: Path) -> list[BenchPrompt]:
    """The prompts of a file. Raises `RequestError` naming the faulty line."""
    prompts = []
    for number, line in enumerate(read_input(path).splitlines(), 1):
        if line.strip():
            try:
                prompt = msgspec.json.decode(line, type=prepared(BenchPrompt))
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


def _text(path: Path) -> str:
    try:
        return read_input(path).decode()
    except UnicodeDecodeError:
        hint = "Give UTF-8 text, or prompts in a file whose name ends in .jsonl."
        raise RequestError(f"{path} is not UTF-8 text.", hint) from None


def document_text(seed: int, tokens: int) -> str:
    """The beginning of a generated document that has at least this many tokens."""
    text, characters = [], 0
    for part in minutes(Random(f"minutes {seed}")):
        text.append(part)
        characters += len(part)
        if characters >= tokens * _CHARACTERS_PER_TOKEN:
            break
    return "".join(text)


def fitted_ids(tokenizer: TokenizerWrapper, case: Case, seed: int) -> list[int]:
    """Token ids of a raw prompt, cut to its exact length, or padded with a document before it."""
    ids = [int(token) for token in tokenizer.encode(case.prompt)]
    missing = case.tokens - len(ids)
    if missing <= 0:
        return ids[: case.tokens or None]
    # A token that begins every text (BOS) stays first.
    first = len(tokenizer.encode("")) if len(tokenizer.encode("")) < len(ids) else 0
    filling = tokenizer.encode(document_text(seed, missing), add_special_tokens=False)
    return [*ids[:first], *filling[:missing], *ids[first:]]


def question_about(tokenizer: TokenizerWrapper, case: Case) -> tuple[Message, ...]:
    """A question about the case's document, whose end is cut off so that the prompt has `case.tokens`."""
    from core.prompt import render

    def asked(text: str) -> tuple[Message, ...]:
        return (Message("user", _QUESTION, (Attachment("document", text),)),)

    if not case.tokens:
        return asked(case.document)
    empty = len(render(tokenizer, asked("")).ids)
    if empty >= case.tokens:
        raise RequestError(
            f"A prompt of {case.tokens:,} tokens is too short for a document:"
            f" the question and the chat template have {empty:,}.",
            "Choose more --prompt-tokens.",
        )
    ids = tokenizer.encode(case.document, add_special_tokens=False)
    length = min(len(ids), case.tokens)
    # Cutting tokens can split a character or a word, so the rendered prompt is measured each time.
    while True:
        messages = asked(tokenizer.decode(ids[:length]))
        over = len(render(tokenizer, messages).ids) - case.tokens
        if over <= 0:
            return messages
        length = max(0, length - over)


# ---- configurations

MOST_CONFIGURATIONS = 256
# Settings for which the bench has options.
OWN_OPTIONS = {"drafting.drafter": "--drafters", "sampling.max_tokens": "--max-tokens"}


class Configuration(Struct, frozen=True):
    """A drafter with settings. `given` maps the keys of `--set` that it uses to its values."""

    name: str
    drafter: str
    given: dict[str, str]
    settings: Settings


def configurations(
    drafters: Sequence[str],
    common: Sequence[tuple[str, Any]],
    sets: Sequence[str] = (),
    own_options: Mapping[str, str] = OWN_OPTIONS,
) -> list[Configuration]:
    """Every drafter with every combination of the settings it uses, drafter by drafter, names unique.

    `common` are the bench's own values, which `sets` override. The last of `sets` varies fastest. Raises
    `SettingError`.
    """
    wanted = _wanted(sets, own_options)
    for key in wanted:
        if not any(_uses(drafter, key) for drafter in drafters):
            raise SettingError(
                f"None of {', '.join(drafters)} uses {key}.", "Leave it out, or add a drafter that uses it."
            )
    chosen = {name: {key: wanted[key] for key in wanted if _uses(name, key)} for name in drafters}
    count = sum(prod(map(len, each.values())) for each in chosen.values())
    if count > MOST_CONFIGURATIONS:
        raise SettingError(
            f"{count:,} configurations are more than the limit of {MOST_CONFIGURATIONS}.",
            "Give fewer values.",
        )
    found = []
    for drafter, axes in chosen.items():
        for values in product(*axes.values()):
            given = dict(zip(axes, values))
            settings = assign_all(Settings(), [("drafting.drafter", drafter)])
            own = [(key, str(value)) for key, value in common]
            name = " ".join([drafter, *(f"{_short(drafter, key)}={given[key]}" for key in given)])
            settings = parse_all(settings, _all_values(own, given))
            found.append(Configuration(name, drafter, given, settings))
    return found


def _wanted(sets: Sequence[str], own_options: Mapping[str, str]) -> dict[str, list[str]]:
    """Values of `--set` by key, each checked against the declaration of its setting."""
    found: dict[str, list[str]] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingError(f"--set {text} has no value.", "Write --set group.field=value.")
        setting = find(key)
        if setting.key in own_options:
            raise SettingError(
                f"{setting.key} is not set by --set.", f"Use {own_options[setting.key]} of the bench."
            )
        if setting.key in found:
            raise SettingError(f"{setting.key} was given twice.", "Give all its values in one --set.")
        one = setting.kind in ("text", "names")
        values = [value] if one else [each.strip() for each in value.split(",")]
        if len(set(values)) < len(values):
            raise SettingError(f"--set {text} holds a value twice.", "Give each value once.")
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
    """Whether the setting belongs to this drafter or to none."""
    from core.drafting.registry import DRAFTERS, drafter_spec  # the command line must not load numpy

    group, spec = key.partition(".")[0], drafter_spec(drafter)
    owners = {each.group for each in DRAFTERS.values()}
    return group not in owners or group == spec.group or group in spec.also_reads


def _short(drafter: str, key: str) -> str:
    """The field name without its group if the group is the drafter's own."""
    from core.drafting.registry import drafter_spec

    group, _, name = key.partition(".")
    return name if group == drafter_spec(drafter).group else key


# ---- draft model


def with_draft_model(
    chosen: Sequence[Configuration], reference: str, first_layers: Callable[[], Path]
) -> dict[str, Settings]:
    """Settings of the configurations by name, with a draft model where a drafter or scorer needs one.

    It is `reference`, or if that is empty the model that `first_layers` writes, for all of them the same.
    """
    found = {}
    for each in chosen:
        settings = each.settings
        needs = "draft-model" in (each.drafter, settings.prefill.scorer)
        if needs and not settings.draft_model.model:
            reference = reference or str(first_layers())
            settings = assign(settings, "draft_model.model", reference)
        found[each.name] = settings
    return found


_LAYER = re.compile(r"\.layers\.(\d+)\.")


def truncated_copy(folder: Path, layers: int, target: Path) -> Path:
    """Write a copy of a model with its first `layers` layers to `target`, and return `target`.

    Replaces a draft model of the same family if none is installed; it is not trained.
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
