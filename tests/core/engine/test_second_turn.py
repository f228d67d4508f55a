"""A chat's later turns reuse what the earlier ones read and answer as from a cold start, with every cache.

The templates have the demands of real ones: a thought that is opened in the generation prompt and dropped
from the history; thoughts that stay as long as tools are called; an answer that is rendered in another way
once a question follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.engine.engine import Engine
from core.engine.planning import branches
from core.errors import DraftlightError
from core.events import Attachment, Finished, Generate, Message, Tool, ToolCall
from core.kv import cached_sequence
from core.kv.cached_sequence import shared_prefix
from core.prompt import may_merge, render
from core.settings import Settings, assign_all
from tests.attack.support.tiny_models import tiny_model
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.engine.support import loaded_of, written
from tests.core.toy import write_tokenizer
from tests.thinned import thinned

CONTEXT_TOKENS = 4096
CHAT_TEMPLATES = Path(__file__).resolve().parents[4] / "shared" / "data" / "chat-templates"
LONG = " ".join(f"Line {n} of the log says {n * 7 % 13}." for n in range(20)) + " What is wrong?"
TEMPLATES = {
    # As Qwen3.6, StepFun 3.5 and Nemotron 3: `<think>` is opened, and no thought stays in the history.
    "dropped": """
{%- for m in messages -%}
<|{{ m.role if m.role in ('system', 'assistant') else 'user' }}|>
{%- if m.role == 'assistant' -%}{{ m.content.split('</think>')[-1].lstrip('\\n') }}
{%- for call in m.tool_calls or [] %}<call>{{ call.function.name }}</call>{% endfor -%}
{%- else -%}{{ m.content }}{%- endif -%}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|><think>{{ '\\n' }}{%- endif -%}""",
    # As Qwen3: thoughts stay behind the last question, for tool loops, and go from all earlier answers.
    "kept in tool loops": """
{%- set ns = namespace(last=0) -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if tools -%}<|system|>{{ tools | length }} tools<|end|>{%- endif -%}
{%- for m in messages -%}
<|{{ m.role if m.role in ('system', 'assistant') else 'user' }}|>
{%- if m.role == 'assistant' -%}
{%- if loop.index0 > ns.last -%}<think>{{ '\\n\\n' }}</think>{{ '\\n\\n' }}{%- endif -%}
{{ m.content.split('</think>')[-1].lstrip('\\n') }}
{%- for call in m.tool_calls or [] %}<call>{{ call.function.name }}</call>{% endfor -%}
{%- else -%}{{ m.content }}{%- endif -%}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|><think>{{ '\\n' }}{%- endif -%}""",
}
TOOL = Tool("read_log")


@pytest.fixture
def engine(architecture: str, template: str, tmp_path: Path) -> Iterator[Engine]:
    made = engine_of(tiny(architecture), architecture, TEMPLATES[template], tmp_path)
    yield made
    made.unload()


def engine_of(model: Any, architecture: str, template: str, folder: Path, merged: str = "") -> Engine:
    """An engine on a tiny random model that never stops by itself, with a chat template."""
    tokenizer = tokenizer_of(template, folder, merged)
    made = Engine()
    made.use(loaded_of(architecture, tokenizer, model=model, context_tokens=CONTEXT_TOKENS))
    return made


def tokenizer_of(template: str, folder: Path, merged: str = "") -> TokenizerWrapper:
    """`merged`: two letters that are one token."""
    write_tokenizer(folder)
    if merged:
        data = json.loads((folder / "tokenizer.json").read_text())
        vocabulary = data["model"]["vocab"]
        vocabulary[merged] = vocabulary.pop(max(vocabulary, key=vocabulary.__getitem__))
        data["model"]["merges"] = [list(merged)]
        (folder / "tokenizer.json").write_text(json.dumps(data))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
    return load_tokenizer(folder)


def ask(
    engine: Engine, messages: list[Message], tools: tuple[Tool, ...] = (), **values: object
) -> tuple[str, list[int], Finished]:
    chosen = {"sampling.temperature": 0.0, "sampling.max_tokens": 12, "drafting.drafter": "off", **values}
    settings = assign_all(Settings(), chosen.items())
    tokens, finished = written(engine.generate(Generate("r", tuple(messages), settings, tools=tools)))
    return "".join(token.text for token in tokens), [token.id for token in tokens], finished


def assert_as_cold(engine: Engine, messages: list[Message], ids: list[int], **values: Any) -> None:
    engine.forget()
    assert ask(engine, messages, **values)[1] == ids


KEPT = ("gemma3_text", "qwen3_5", "llama4")


def cases(kept: tuple[str, ...]) -> list[Any]:
    """Every architecture with every template; all but the first template of `kept` are sweeps."""
    first = next(iter(TEMPLATES))
    return [
        pytest.param(name, template, marks=() if name in kept and template == first else pytest.mark.sweep)
        for name in ARCHITECTURES
        for template in TEMPLATES
    ]


@pytest.mark.sweep
@pytest.mark.parametrize(("architecture", "template"), cases(KEPT))
def test_the_second_turn_reuses_a_long_first_one(engine: Engine, architecture: str, template: str) -> None:
    assert_second_turn(engine)


def assert_second_turn(engine: Engine, **values: object) -> None:
    messages = [Message("user", LONG)]
    answer, _, first = ask(engine, messages, **values)
    messages += [Message("assistant", f"A thought.\n</think>\n\n{answer}"), Message("user", "And then?")]
    _, ids, second = ask(engine, messages, **values)
    assert second.stats.reused_tokens >= 0.95 * (first.stats.prompt_tokens - first.stats.skipped_tokens)
    assert_as_cold(engine, messages, ids, **values)


@pytest.mark.sweep
@pytest.mark.parametrize(("architecture", "template"), cases(("qwen3_5",)))
def test_tool_loops_and_the_question_after_them_reuse_what_was_read(
    engine: Engine, architecture: str, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_sequence, "SNAPSHOTS", 5)
    messages = [Message("user", LONG)]
    _, _, first = ask(engine, messages, (TOOL,))
    for number in range(6):
        call = ToolCall(f"call{number:05}", TOOL.name, "{}")
        messages += [Message("assistant", "", tool_calls=(call,)), Message("tool", "None.", (), (), call.id)]
        _, _, last = ask(engine, messages, (TOOL,))
        assert last.stats.reused_tokens >= 0.95 * first.stats.prompt_tokens
    messages += [Message("assistant", "Nothing."), Message("user", "Are you sure?")]
    _, ids, after = ask(engine, messages, (TOOL,))
    assert after.stats.reused_tokens >= 0.95 * first.stats.prompt_tokens
    assert_as_cold(engine, messages, ids, tools=(TOOL,))


# Recurrent state with windows and with lists, windows alone in lists, and a cache that a model defines.
VARIANTS = ("falcon_h1", "baichuan_m1", "recurrent_gemma", "mamba2", "longcat_flash_ngram", "deepseek_v41")


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS)
def test_other_mixtures_reuse_a_long_first_turn(variant: str, tmp_path: Path) -> None:
    engine = engine_of(tiny_model(variant, 0), variant, TEMPLATES["dropped"], tmp_path)
    engine.try_out()
    assert_second_turn(engine)


@pytest.mark.parametrize("architecture", thinned(["gemma3_text", "qwen3_5", "nemotron_h"], keep=["qwen3_5"]))
def test_a_turn_after_a_sparse_one_reuses_what_was_read(architecture: str, tmp_path: Path) -> None:
    engine = engine_of(tiny(architecture), architecture, TEMPLATES["dropped"], tmp_path)
    sparse = {"prefill.mode": "on", "prefill.scorer": "lexical", "prefill.keep_pct": 30}
    # The toy's tokens are characters, so a sentence is a large part of the text.
    sparse |= {"prefill.read_on": "off", "prefill.passages": "fixed"}
    messages = [Message("user", "What is wrong?", (Attachment("log", LONG * 2),))]
    _, _, first = ask(engine, messages, **sparse)
    assert first.stats.skipped_tokens > 0
    messages += [Message("assistant", "Yes."), Message("user", "And then?")]
    _, _, second = ask(engine, messages, **sparse)
    read_tokens = first.stats.prompt_tokens - first.stats.skipped_tokens
    assert second.stats.reused_tokens >= 0.95 * read_tokens
    assert second.stats.skipped_tokens == first.stats.skipped_tokens


KEEPING = {
    "preserve_thinking": "preserve_thinking is defined and preserve_thinking is true",
    "clear_thinking": "clear_thinking is defined and not clear_thinking",
    "truncate_history_thinking": "not (truncate_history_thinking | default(true))",
}


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", KEPT)
def test_the_token_before_the_answer_merges_with_its_first_word(architecture: str, tmp_path: Path) -> None:
    template = """
{%- for m in messages -%}
{{ 'Assistant: ' if m.role == 'assistant' else 'User: ' }}{{ m.content }}{{ '\n\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant: <think>' }}{%- endif -%}"""
    engine = engine_of(tiny(architecture), architecture, template, tmp_path, "ĠL")
    question = [Message("user", LONG)]
    ask(engine, question)
    second = [*question, Message("assistant", "Line 4."), Message("user", "Why?")]
    _, ids, finished = ask(engine, second)
    first = render(engine.loaded.tokenizer, question).ids
    shared = shared_prefix(first, render(engine.loaded.tokenizer, second).ids)
    assert finished.stats.reused_tokens == shared == len(first) - len(" <think>")
    assert_as_cold(engine, second, ids)
    engine.unload()


@pytest.mark.parametrize("variable", KEEPING)
def test_templates_that_can_keep_the_thoughts_of_the_history_do(variable: str, tmp_path: Path) -> None:
    template = """
{%- for m in messages -%}<|{{ m.role }}|>
{%- if m.role == 'assistant' and (CONDITION) -%}
{{ m.content }}
{%- else -%}{{ m.content.split('</think>')[-1] }}{%- endif -%}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"""
    tokenizer = tokenizer_of(template.replace("CONDITION", KEEPING[variable]), tmp_path)
    question = [Message("user", "What is wrong?")]
    answered = [
        *question,
        Message("assistant", "<think>\nLine 4?\n</think>\n\nLine 4."),
        Message("user", "Why?"),
    ]
    first, second = render(tokenizer, question), render(tokenizer, answered)
    assert second.text.startswith(f"{first.text}<think>\nLine 4?\n</think>\n\nLine 4.<|end|>")


@pytest.mark.sweep
@pytest.mark.skipif(not CHAT_TEMPLATES.is_dir(), reason="the folder of real chat templates is not here")
def test_real_templates_have_their_branch_where_the_second_turn_leaves_the_first(tmp_path: Path) -> None:
    question, tried = [Message("user", LONG)], 0
    more = [Message("assistant", "It is line 4, I think."), Message("user", "And the others?")]
    for path in sorted(CHAT_TEMPLATES.glob("*.jinja")):
        tokenizer = tokenizer_of(path.read_text(), tmp_path)
        rendered = lambda messages: render(tokenizer, messages).ids  # noqa: B023, E731
        try:
            first, second = rendered(question), rendered([*question, *more])
        except DraftlightError:
            continue  # it needs what the toy tokenizer lacks
        shared = shared_prefix(first, second)
        found = branches(first, Generate("r", tuple(question)), rendered, partial(may_merge, tokenizer))
        assert max(length for length in found if length <= shared) >= 0.95 * len(first), path.name
        tried += 1
    assert tried > 50
