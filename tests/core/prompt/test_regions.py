"""Regions: which characters of a prompt come from which message, however the template writes them."""

from __future__ import annotations

import json

import pytest

from core.events import Attachment, Message, ToolCall
from core.prefill.layout import layout
from core.prompt import Prompt, offsets, render
from tests.core.prompt.tokenizer_kinds import tokenizer_of

TALK = (
    Message("system", "You are a helpful assistant."),
    Message(
        "user", " help\n", (Attachment("no.txt", "\n no help, “é” 🎈\nmore\tno "), Attachment("b", "no"))
    ),
    Message("assistant", "no"),
    Message("user", "no"),
    Message("assistant", "", tool_calls=(ToolCall("1", "no", '{"no": "help"}'),)),
    Message("tool", "no help", tool_call_id="1"),
    Message("user", "help"),
)
HEAD = "You are a helpful assistant. Say no <tool_call>"
TEMPLATES = {
    "plain": "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
    "trimmed": "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}\n{% endfor %}",
    "joined": "{{ messages | map(attribute='content') | join('|') }}",
    "safe": "{% for m in messages %}[{{ m.role }}]{{ m.content | trim | safe }}{% endfor %}",
    "compared": "{% for m in messages %}{{ '' if m.content.startswith(' help') else 'no' }}"
    "{{ m.content }}{% endfor %}",
    "twice": "{% for m in messages %}{{ m.content }}/{{ m.content }}{% endfor %}",
    "JSON": "{% for m in messages %}{{ {'no': m.content} | tojson }}{% endfor %}",
    "ASCII": "{% for m in messages %}{{ m.content | tojson(ensure_ascii=true) }}{% endfor %}",
}
CALLS = (
    "{% for m in messages if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}{% endfor %}<tool_call>"
)


def rendered(template: str, talk: tuple[Message, ...] = TALK) -> Prompt:
    return render(tokenizer_of("byte-level BPE", HEAD + template + CALLS), talk)


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_region_is_its_contents_characters(template: str) -> None:
    prompt = rendered(TEMPLATES[template])
    documents = {0: TALK[1].attachments[0].text, 1: TALK[1].attachments[1].text}
    found: dict[object, str] = {}
    for region in prompt.regions:
        text = prompt.text[region.start : region.end]
        assert region.start >= len(HEAD)
        if region.kind == "document":
            text = json.loads(f'"{text}"') if template in ("JSON", "ASCII") else text
            assert documents[region.source].startswith(text, region.first_char)
        found[region.kind, region.source] = found.get((region.kind, region.source), "") + text
    spaced = "".join(found["document", 0].split())
    assert spaced == "".join(documents[0].split()) * (2 if template == "twice" else 1)
    assert found["document", 1].startswith("no")
    assert found["system", -1].startswith("You are")
    assert found["tool", -1].startswith("no help")
    assert prompt.asked == "help"
    ends = [region.start for region in prompt.regions]
    assert ends == sorted(ends)


def test_a_short_question_is_not_found_in_the_templates_words() -> None:
    for words in ("help", "no", "You", "a", "tool"):
        prompt = rendered(TEMPLATES["plain"], (Message("user", words),))
        assert prompt.asked == words
        assert prompt.asking is not None
        assert prompt.asking.start == len(HEAD) + len("[user]")


def test_white_space_that_a_template_trims_is_not_its_own() -> None:
    talk = (Message("user", "\n help \n"), Message("assistant", "no "), Message("user", " \thelp "))
    for template, wanted in (
        ("{% for m in messages %}\n{{ m.content }}\n{% endfor %}", ["\n help \n", "no ", " \thelp "]),
        ("{% for m in messages %}\n {{ m.content | trim }} \n{% endfor %}", ["help", "no", "help"]),
    ):
        prompt = rendered(template, talk)
        assert [prompt.text[region.start : region.end] for region in prompt.regions] == wanted


def test_a_content_that_is_cut_has_no_region_and_is_written_as_it_is() -> None:
    """As always by a template that compares messages, and writes something else for marked ones."""
    cut = "{% for m in messages %}{{ m.content[:2] }}…{{ m.content[2:] }}{% endfor %}"
    prompt = rendered(cut, (Message("user", "why help"), Message("assistant", "x"), Message("user", "x")))
    assert prompt.text.endswith("wh…y helpx…x…<tool_call>")
    assert [prompt.text[region.start : region.end] for region in prompt.regions] == ["x", "x"]


def test_a_document_in_thousands_of_pieces_is_laid_out_at_once() -> None:
    text = "line “of” a document\n" * 5_000
    talk = (Message("user", "Why?", (Attachment("a.txt", text),)),)
    tokenizer = tokenizer_of("byte-level BPE", TEMPLATES["JSON"])
    prompt = render(tokenizer, talk)
    pieces = sum(region.kind == "document" for region in prompt.regions)
    assert pieces > 5_000
    parts = layout(prompt, offsets(tokenizer, prompt))
    assert (parts.source == 0).sum() > len(prompt.ids) * 0.9
    assert parts.last_char.max() >= len(text.rstrip()) - 1
