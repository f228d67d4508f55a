"""The zoo's references and templates are what the table says they are; nothing of Draftlight is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.campaign import Outcome
from tests.zoo.conversations import ANSWER, ARGUMENTS, SHAPES, THOUGHT, TOOL_SHAPES, call, calls, forms, words
from tests.zoo.families import FAMILIES, TEMPLATES, family
from tests.zoo.folder import write_family
from tests.zoo.reference import Reference, is_in, opened, weather_tools
from tests.zoo.table import families_section
from tests.zoo.tokenizers import TokenizerKind, tokenizer

# transformers' own config class of one type warns about the keys that checkpoints of that type have.
pytestmark = pytest.mark.filterwarnings("ignore:`rope_scaling` is deprecated:FutureWarning")


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reference]:
    folder = tmp_path_factory.mktemp("zoo")
    names = ("chatml", "gemma", "gpt-oss", "qwen3.5", "mistral", "llama4")
    for name in names:
        write_family(family(name), folder / name)
    return {name: Reference(folder / name) for name in names}


def test_there_are_more_than_forty_families_and_every_template_is_used() -> None:
    names = [each.name for each in FAMILIES]
    assert len(names) == len(set(names)) >= 40
    assert {path.stem for path in TEMPLATES.glob("*.jinja")} == {each.template for each in FAMILIES}
    assert {each.tokenizer for each in FAMILIES} == set(TokenizerKind.__args__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", TokenizerKind.__args__)  # type: ignore[attr-defined]
def test_tokenizers_merge_across_line_ends_and_know_every_character(kind: TokenizerKind) -> None:
    made = tokenizer(kind, ())
    text = "Is it?\n\nYes: Zürich 🇫🇷."
    if kind != "tekken":  # its decoder is another kind's, as in public conversions
        assert made.decode(made.encode(text).ids).strip() == text
    halves = made.encode("it?\n").ids + made.encode("\nYes").ids
    assert made.encode("it?\n\nYes").ids != halves


def test_templates_make_their_demands(references: dict[str, Reference]) -> None:
    assert references["chatml"].render(SHAPES["two systems"]) is not None
    assert references["gemma"].render(SHAPES["system"]) is None
    assert references["qwen3.5"].render(SHAPES["two systems"]) is None
    assert references["mistral"].render(SHAPES["doubled users"]) is None
    assert opened(references["qwen3.5"].render(SHAPES["single"])) == "<think>"
    raw = references["gpt-oss"].thought_text(SHAPES["single"], ANSWER, THOUGHT, "")
    assert raw is not None
    assert raw.startswith("<|channel|>analysis")
    sent_back = [SHAPES["single"][0], {"role": "assistant", "content": raw}, *SHAPES["single"]]
    assert references["gpt-oss"].render(sent_back) is None


def test_some_form_of_every_conversation_renders_with_all_words(references: dict[str, Reference]) -> None:
    for name in ("chatml", "gemma", "qwen3.5", "mistral"):
        for shape, turns in SHAPES.items():
            found = next(references[name].renderings(turns, None, ""), None)
            assert found is not None, (name, shape)
            assert all(is_in(said, found[0]) for said in words(turns))


def test_forms_begin_with_the_conversation_itself() -> None:
    assert next(forms(SHAPES["several turns"])) == SHAPES["several turns"]


def test_stop_ids_are_those_of_every_file(references: dict[str, Reference]) -> None:
    def stops(name: str) -> set[str]:
        reference = references[name]
        return {reference.tokenizer.convert_ids_to_tokens(stop) for stop in reference.stop_ids()}

    assert stops("gemma") == {"<eos>", "<end_of_turn>"}
    assert stops("llama4") == {"<|end_of_text|>", "<|eom|>", "<|eot|>"}
    assert stops("gpt-oss") == {"<|return|>", "<|endoftext|>", "<|call|>"}


def test_a_call_is_written_as_the_template_shows_it(references: dict[str, Reference]) -> None:
    answer = calls(call(ARGUMENTS))
    written = references["gpt-oss"].written(TOOL_SHAPES["functions"], answer, weather_tools())
    assert written == ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Vienna"}'
    # The thought that the prompt opened and the template left empty is ended first.
    written = references["qwen3.5"].written(TOOL_SHAPES["functions"], answer, weather_tools())
    assert written is not None
    assert written.lstrip().startswith("</think>\n\n<tool_call>\n<function=get_weather>")


def test_the_table_counts_families_and_explains_differences() -> None:
    notes = {"template": "own", "type": "llama", "demands": "many", "renders": "yes", "stops": "yes"}
    outcomes = [
        Outcome(0, notes={**notes, "family": "one", "thinks": "-", "calls": "yes", "reuses": "yes"}),
        Outcome(1, "calls: odd", notes={**notes, "family": "two", "thinks": "yes", "calls": "odd"}),
    ]
    text = families_section(outcomes)
    assert "| 2 families of our own | 2 of 2 | 2 of 2 | 1 of 1 | 1 of 2 | 1 of 1 |" in text
    assert "| two | llama | many | yes | yes | yes | no (1) |" in text
    assert "1. odd" in text
    assert families_section([]) == ""


def test_a_folder_holds_what_a_download_has(tmp_path: Path) -> None:
    write_family(family("gemma"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
