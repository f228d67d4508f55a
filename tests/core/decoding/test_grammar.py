"""What a grammar allows at each row, and what it forces, on a tokenizer of one token a byte."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from mlx_lm.utils import load_tokenizer
from msgspec.structs import replace

from core.decoding import loop
from core.decoding.grammar import Grammars, GrammarState
from core.decoding.loop import DecodeLoop
from core.decoding.sampling import NO_CHOICE, RowInputs, Sampler
from core.drafting.draft import EMPTY, Draft, Drafter
from core.errors import BrokenLogitsError, GrammarError
from core.events import Grammar
from core.models.loader import LoadedModel
from core.settings.request import Sampling
from tests.core.drafters import answer_of
from tests.core.engine.support import loaded_of
from tests.core.toy import toy_model, toy_tokenizer
from tests.thinned import thinned

VOCABULARY = 260
EOS = frozenset({0, 2})
TOKENIZER = toy_tokenizer()
SCHEMA = {
    "type": "object",
    "properties": {"ab": {"enum": ["xy", "xz"]}, "n": {"type": "integer"}},
    "required": ["ab", "n"],
    "additionalProperties": False,
}


def state(schema: dict[str, Any] = SCHEMA, limits: LLParserLimits | None = None) -> GrammarState:
    tokenizer = LLTokenizer(TOKENIZER.to_str(), n_vocab=VOCABULARY, eos_token=[0])
    text = LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults={"whitespace_flexible": False})
    return GrammarState(LLMatcher(tokenizer, text, log_level=0, limits=limits), EOS)


def ids(text: str) -> tuple[int, ...]:
    return tuple(TOKENIZER.encode(text).ids)


def told(row: Any) -> str:
    """What is allowed in a row, as text; the stop tokens as full stops."""
    return "".join("." if i in EOS else TOKENIZER.decode([int(i)]) for i in np.flatnonzero(row))


def test_what_is_forced_is_all_that_is_allowed() -> None:
    grammar = state()
    assert grammar.forced == ids('{"ab":"x')
    assert grammar.forced_count == len(grammar.forced)
    rows = grammar.allowed(Draft.chain(grammar.forced), VOCABULARY)
    assert [told(row) for row in rows] == [*'{"ab":"x', "yz"]


def test_a_place_is_the_same_however_it_was_reached() -> None:
    text = '{"ab":"xz","n":-12}'
    for cut in range(len(text)):
        by_tokens, at_once = state(), state()
        for token in ids(text[:cut]):
            by_tokens.advance([token])
        at_once.advance(ids(text[:cut]))
        assert by_tokens.forced == at_once.forced
        ahead = Draft.chain(ids(text[cut:]))
        assert (by_tokens.allowed(ahead, VOCABULARY) == at_once.allowed(ahead, VOCABULARY)).all()


def test_stop_tokens_may_come_where_the_text_may_end_and_nothing_else_where_it_must() -> None:
    grammar = state(
        {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    )
    grammar.advance(ids('{"n":1'))
    assert "." not in told(grammar.allowed(EMPTY, VOCABULARY)[0])
    grammar.advance(ids("}"))
    assert told(grammar.allowed(EMPTY, VOCABULARY)[0]) == ".."
    grammar.advance([2])
    assert grammar.forced == ()
    number = state({"type": "integer", "minimum": 0, "maximum": 99})
    number.advance(ids("1"))
    assert told(number.allowed(EMPTY, VOCABULARY)[0]) == "..0123456789"
    # Some models have fewer rows than their tokenizer has ids.
    assert number.allowed(EMPTY, 2).tolist() == [[True, False]]
    # A guessed stop token is a node of its own, and nothing is behind it.
    draft = Draft((0, ids("2")[0], 2, ids("3")[0]), (-1, -1, 1, 0))
    assert number.filter_draft(draft) == Draft((0, ids("2")[0], 2), (-1, -1, 1))


def test_only_what_is_allowed_is_admitted_with_the_rest_of_its_tree() -> None:
    grammar = state()
    x, y, z, quote = (ids(letter)[0] for letter in 'xyz"')
    lead = ids('{"ab":"x')
    draft = Draft((z, y, quote, x, quote), (-1, -1, 1, 1, 3), (0.5, 0.4, 0.3, 0.2, 0.1))
    assert grammar.filter_draft(draft, lead) == Draft((z, y, quote), (-1, -1, 1), (0.5, 0.4, 0.3))
    assert grammar.filter_draft(Draft.chain([y]), ids("nonsense")) == EMPTY
    assert grammar.filter_draft(Draft.chain([VOCABULARY - 1, 10**6]), lead) == EMPTY
    rows = grammar.allowed(Draft((*lead, z, y, quote, x), (*range(-1, 8), 7, 9, 9)), VOCABULARY)
    assert [told(row) for row in rows] == [*'{"ab":"x', "yz", '"', '"', ",", ""]


def test_a_mask_is_as_wide_as_the_logits() -> None:
    grammar = state()
    assert grammar.allowed(EMPTY, 300).shape == (1, 300)
    assert grammar.allowed(EMPTY, 120).shape == (1, 120)
    grammar.advance(ids('{"ab":"x'))
    for width in (120, 260, 300):
        assert told(grammar.allowed(EMPTY, width)[0]) == "yz"


def test_tokens_that_do_not_fit_are_named() -> None:
    with pytest.raises(GrammarError, match="does not allow"):
        state().advance(ids("{a"))


def test_choices_keep_to_what_is_allowed_and_broken_rows_stay_broken() -> None:
    logits = mx.array([[5.0, 1.0, 2.0], [5.0, 1.0, float("nan")], [5.0, float("-inf"), 2.0], [1.0, 2.0, 3.0]])
    allowed = mx.array([[False, True, True], [True, True, False], [False, True, False], [False] * 3])
    for sampling in (Sampling(), Sampling(temperature=0.7, top_p=0.9, top_k=2, min_p=0.1)):
        for dtype in (mx.float32, mx.bfloat16):
            rows = RowInputs(range(4), allowed=allowed)
            chosen = Sampler(sampling).choose(logits.astype(dtype), rows).pull()
            assert chosen[0] in (1, 2)
            assert chosen[1:] == [NO_CHOICE] * 3


def test_a_grammar_that_comes_to_a_limit_ends_the_answer_and_says_so() -> None:
    model = toy_model()
    # Enough for the braces and not for a string.
    grammar = state({"type": "object"}, LLParserLimits(step_lexer_fuel=300, verbose_errors=False))
    written: list[int] = []
    prompt = [random.Random(1).randrange(4, VOCABULARY) for _ in range(20)]

    def run(grammar: GrammarState) -> None:
        answer = answer_of(model, prompt, Drafter(), drafts="off")
        answer.grammar, answer.forces = grammar, True
        for step in DecodeLoop(answer).steps(40):
            written.extend(step.tokens)

    with pytest.raises(GrammarError, match="reached a limit"):
        run(grammar)
    assert written[:1] == [*ids("{")]
    model.model.norm.weight = model.model.norm.weight * float("nan")
    with pytest.raises(BrokenLogitsError):
        run(state())


class Hearing(Drafter):
    """Keeps what it hears, and guesses what it would have liked to come next."""

    def __init__(self, text: str) -> None:
        self._text = list(ids(text))
        self.heard: list[int] = []
        self.asked_at: list[int] = []
        self.fed_back: list[tuple[int, int]] = []

    def observe(self, tokens: Sequence[int]) -> None:
        self.heard += tokens

    def draft(self, budget: int) -> Draft:
        self.asked_at.append(len(self.heard))
        return Draft.chain(self._text[len(self.heard) :][:budget])

    def feedback(self, draft: Draft, accepted: int) -> None:
        self.fed_back.append((len(draft), accepted))


def test_a_drafter_hears_each_token_once_and_guesses_behind_what_is_forced() -> None:
    model = toy_model()
    prompt = [random.Random(1).randrange(4, VOCABULARY) for _ in range(20)]
    # Of what may come `z` does, then 7, then the end.
    bias = {ids("z")[0]: 900.0, ids("7")[0]: 300.0, ids("}")[0]: 900.0}
    drafter = Hearing('{"ab":"xz","n":7}')
    answer = answer_of(model, prompt, drafter, logit_bias=bias)
    answer.grammar, answer.forces, answer.model.eos = state(), True, EOS
    steps = []
    for step in DecodeLoop(answer).steps(40):
        steps.append(step)
        if step.tokens[-1] in EOS:
            break
    written = [token for step in steps for token in step.tokens]
    assert TOKENIZER.decode([token for token in written if token not in EOS]) == '{"ab":"xz","n":7}'
    assert drafter.heard == written
    assert drafter.asked_at == [8]
    assert drafter.fed_back == [(9, 9)]
    assert [(step.forced, step.accepted, step.drafted) for step in steps] == [(8, 17, 17)]


# ---- grammars of requests


@pytest.fixture(scope="module")
def loaded(toy_folder: Path) -> LoadedModel:
    found = loaded_of("llama", load_tokenizer(toy_folder))
    found.eos = EOS
    return found


def started(loaded: LoadedModel, text: str, kind: Any = "json_schema") -> GrammarState:
    return Grammars(loaded).start(Grammar(kind, text))


def test_json_is_written_on_one_line(loaded: LoadedModel) -> None:
    grammar = started(loaded, json.dumps(SCHEMA))
    assert grammar.forced == ids('{"ab": "x')
    grammar.advance(ids('{"ab": "xz", "n": 7}'))
    assert told(grammar.allowed(EMPTY, VOCABULARY)[0]) == ".."
    anything = started(loaded, "", "json_object")
    assert anything.forced == ids("{")
    anything.advance(ids('{"a": [1, null]}'))
    assert told(anything.allowed(EMPTY, VOCABULARY)[0]) == ".."
    with pytest.raises(GrammarError, match="does not allow"):
        started(loaded, "", "json_object").advance(ids("["))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "it is not JSON: "),
        ("[" * 100_000, "it is not JSON: "),
        ("[1]", "it is not a JSON object"),
        ('{"type": "objec"}', "objec"),
        ('{"enum": []}', "Unsatisfiable"),
        ('{"$ref": "#"}', "no text fits it ("),
        ('{"const": "\\ud800"}', "hex escape"),
    ],
)
def test_a_schema_that_cannot_be_compiled_says_why(loaded: LoadedModel, text: str, named: str) -> None:
    with pytest.raises(GrammarError, match="The JSON schema cannot be compiled: ") as raised:
        started(loaded, text)
    assert named in raised.value.message
    assert raised.value.message.endswith(".")
    assert not raised.value.message.endswith("..")
    assert "\n" not in raised.value.message


CALLED = {"type": "object", "properties": {"name": {"const": "find"}}, "required": ["name"]}


@pytest.mark.parametrize(("begin", "end"), [("<call>", "</call>"), ("<|system|>", "<|user|>")])
def test_calls_are_whole_between_free_text(loaded: LoadedModel, begin: str, end: str) -> None:
    """Also with marks that are control tokens, which no text can write."""

    def tokens(text: str) -> list[int]:
        return list(loaded.tokenizer.encode(text, add_special_tokens=False))

    grammar = Grammars(loaded).start(Grammar("tool_calls", json.dumps(CALLED), begin=begin, end=end))
    grammar.advance(tokens("I look.\n"))
    assert "." in told(grammar.allowed(EMPTY, VOCABULARY)[0])  # the answer may end without a call
    grammar.advance(tokens(begin))
    assert grammar.forced[:10] == ids('\n{"name": "')[:10]
    call = '\n{"name": "find"}\n'
    grammar.advance([*tokens(call), *tokens(end), *tokens(" Then more.")])
    assert "." in told(grammar.allowed(EMPTY, VOCABULARY)[0])
    grammar.advance(tokens(begin))
    with pytest.raises(GrammarError, match="does not allow"):
        grammar.advance(tokens('\n{"name": "other'))
    with pytest.raises(GrammarError, match="does not allow"):
        started(loaded, json.dumps(CALLED)).advance(tokens("I look"))


class Guessing(Drafter):
    """Drafts what usually follows here, or something else."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.heard: list[int] = []

    def observe(self, tokens: Sequence[int]) -> None:
        self.heard += tokens

    def draft(self, budget: int) -> Draft:
        if self._chance.random() < 0.7:
            return EMPTY
        return Draft.chain([self._chance.choice((*ids("aq<"), 7)) for _ in range(3)][:budget])


@pytest.mark.sweep
@pytest.mark.parametrize("seed", thinned(range(6), keep=(3,)))
def test_what_runs_ahead_with_a_grammar_writes_the_same(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The forward pass runs ahead in the text between calls; its mask follows."""
    chance = random.Random(seed)
    sampling = Sampling(
        temperature=chance.choice((0.0, 1.0, 2.0)),
        seed=seed,
        top_k=chance.choice((0, 20)),
        repetition_penalty=chance.choice((1.0, 1.3)),
        presence_penalty=chance.choice((0.0, 0.5)),
    )
    prompt = [chance.randrange(4, VOCABULARY) for _ in range(20)]
    bias = {ids("q")[0]: chance.choice((2.0, 4.0)), **dict.fromkeys(EOS, -90.0)}
    model = toy_model()

    def written(free_steps: int, *, forces: bool, drafter: Drafter | None = None) -> tuple[list[int], int]:
        monkeypatch.setattr(loop, "_FREE_STEPS_TO_PIPELINE", free_steps)
        drafts = "off" if drafter is None else "ngram-simple"
        drafter = drafter or Drafter()
        answer = answer_of(model, prompt, drafter, sampling, drafts=drafts, logit_bias=bias)
        answer.grammar = Grammars(loaded).start(
            Grammar("tool_calls", json.dumps(CALLED), begin="q", end="</call>")
        )
        answer.forces, answer.model.eos = forces, EOS
        steps = list(DecodeLoop(answer).steps(150))
        tokens = [token for step in steps for token in step.tokens]
        if isinstance(drafter, Guessing):
            assert drafter.heard == tokens
        for at, step in enumerate(steps):  # neither within a call nor shortly after it
            if forces and step.pipeline == "enters":
                assert not any(each.forced for each in steps[max(0, at - free_steps) : at + 1])
        return tokens, sum(step.pipeline == "ahead" for step in steps)

    plain, none_ahead = written(10**9, forces=True)
    assert none_ahead == 0
    found = [
        written(free_steps, forces=forces, drafter=drafter)
        for forces, free_steps in ((True, 16), (True, 3), (True, 0), (False, 0))
        for drafter in (None, Guessing(seed))
    ]
    assert [tokens for tokens, _ in found] == [plain] * len(found)
    # How often depends on the calls, of which every text has some.
    assert ids('{"name": "find"}')[0] in plain
    assert found[2][1] > 0
    assert found[-2][1] > 100


def test_thoughts_between_calls_are_those_of_control_tokens(loaded: LoadedModel) -> None:
    tokenizer: Any = loaded.tokenizer
    start, end = tokenizer.think_start, tokenizer.think_end
    marks = [tokenizer.convert_tokens_to_ids(each) for each in ("<|system|>", "<|user|>")]
    try:
        for given, allowed in (((None, None), False), (("<|system|>", "<|user|>"), True)):
            tokenizer._think_start, tokenizer._think_end = given
            grammar = Grammars(loaded).start(
                Grammar("tool_calls", json.dumps(CALLED), begin="<call>", end="</call>")
            )
            row = grammar.allowed(EMPTY, VOCABULARY)[0]
            assert [bool(row[mark]) for mark in marks] == [allowed] * 2
    finally:
        tokenizer._think_start, tokenizer._think_end = start, end


def test_a_model_whose_answer_a_grammar_cannot_end_is_refused(toy_folder: Path) -> None:
    other = loaded_of("llama", load_tokenizer(toy_folder))
    with pytest.raises(GrammarError, match="llama has no end-of-text token"):
        started(other, "{}")
    other.eos = EOS

    class Slow:
        """A tokenizer without tokenizer.json."""

    class Odd:
        backend_tokenizer = Slow()

    for tokenizer, named in ((Slow(), r"has no tokenizer\.json"), (Odd(), "does not support grammars: ")):
        other.tokenizer = tokenizer
        with pytest.raises(GrammarError, match=named):
            started(other, "{}")


@pytest.mark.parametrize("rows", [1, 0])
def test_added_tokens_without_rows_are_not_forced(toy_folder: Path, rows: int) -> None:
    """A model may have fewer embedding rows than its tokenizer has added tokens."""
    loaded = loaded_of("llama", load_tokenizer(toy_folder))
    tokenizer: Any = loaded.tokenizer
    added = [VOCABULARY, VOCABULARY + 1]
    tokenizer.add_tokens(["zebra", "walrus"])
    assert sorted(tokenizer.convert_tokens_to_ids(["zebra", "walrus"])) == added
    loaded.eos = EOS
    loaded.info = replace(loaded.info, vocabulary=VOCABULARY + rows)
    grammar = started(loaded, json.dumps({"const": "zebra walrus zebra"}))
    forced = grammar.forced
    assert max(forced) < loaded.info.vocabulary
    assert loaded.tokenizer.decode(list(forced)) == '"zebra walrus zebra"'
    assert (VOCABULARY in forced) == (rows == 1)
    assert VOCABULARY + 1 not in forced


def test_the_tokenizer_is_bridged_once(loaded: LoadedModel) -> None:
    grammars = Grammars(loaded)
    grammars.start(Grammar("json_object"))
    bridged = grammars._bridged()
    grammars.start(Grammar("json_object"))
    assert grammars._bridged() is bridged


@pytest.mark.sweep
def test_the_engine_starts_without_llguidance() -> None:
    code = "import sys, core.engine.engine; print('llguidance' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
