"""What newer exports have: marks in texts, documents that are changed, calls of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.chat_archives.formats import read_chats
from core.chat_archives.reading import ChatReader, Losses, looks_like_chats
from tests.core.chat_archives import samples
from tests.core.chat_archives.test_reading import read_one


def answer_of(*nodes: tuple[str, Any]) -> tuple[str, dict[str, int]]:
    """The answer of a ChatGPT chat with a question and these nodes after it, and what is lost."""
    tree = dict([samples.chatgpt_node("q", None, "user", "Why?"), *nodes])
    (chat,) = read_chats({"create_time": None, "mapping": tree, "current_node": nodes[-1][0]})
    return "\n\n".join(node.text for node in chat.nodes[1:] if node.text), dict(+chat.lost)


@pytest.mark.parametrize(
    ("text", "metadata", "shown"),
    [
        ('Ask \ue200entity\ue202["company","Acme","a maker"]\ue201 now.', {}, "Ask Acme now."),
        (
            "See \ue200url\ue202the plan\ue202https://example.org/a\ue201.",
            {},
            "See [the plan](https://example.org/a).",
        ),
        ("See \ue200url\ue202the plan\ue202turn0search0\ue201.", {}, "See the plan."),
        (
            'So \ue200genui\ue202{"math_block_widget_v2":{"content":"a=\\\\frac{1}{2}"}}\ue201',
            {},
            "So $$a=\\frac{1}{2}$$",
        ),
        (
            "It is so.\ue200cite\ue202turn0search1\ue201",
            {
                "content_references": [
                    {"matched_text": " ", "alt": "never"},
                    {
                        "matched_text": "\ue200cite\ue202turn0search1\ue201",
                        "alt": None,
                        "items": [{"title": "A [plan]", "url": "https://example.org/a"}],
                    },
                ]
            },
            "It is so. ([A plan](https://example.org/a))",
        ),
        (
            "Old【4†source】 and older【5:1†plan.pdf】.",
            {
                "citations": [
                    {"start_ix": 3, "end_ix": 13, "metadata": {"title": "T", "url": "https://example.org/b"}}
                ]
            },
            "Old ([T](https://example.org/b)) and older.",
        ),
        (
            "A \ue200cite\ue202turn0 dagger † and 【title】 stay.",
            {},
            "A citeturn0 dagger † and 【title】 stay.",
        ),
    ],
)
def test_marks_of_chatgpt_become_words_and_links(text: str, metadata: dict[str, Any], shown: str) -> None:
    assert answer_of(samples.chatgpt_node("a", "q", "assistant", text, metadata=metadata))[0] == shown


def test_calls_of_the_canvas_are_counted_as_lost() -> None:
    made = json.dumps({"name": "Plan", "type": "code/python", "content": "x = 1"})
    content = {"content_type": "code", "language": "json", "text": made}
    call = samples.chatgpt_node("a", "q", "assistant", content=content, recipient="canmore.create_textdoc")
    assert answer_of(call, samples.chatgpt_node("b", "a", "assistant", "Done.")) == ("Done.", {"tools": 1})


def claude_answers(*messages: list[dict[str, Any]]) -> tuple[list[str], dict[str, int]]:
    """The answers of a Claude chat whose messages make these calls, and what is lost."""
    calls = [[{"type": "tool_use", "name": "artifacts", "input": each} for each in made] for made in messages]
    raw = [{"uuid": str(place), "sender": "assistant", "content": each} for place, each in enumerate(calls)]
    (chat,) = read_chats({"chat_messages": raw})
    return [node.text for node in chat.nodes], dict(+chat.lost)


def test_a_changed_artifact_is_shown_as_it_became() -> None:
    made = {
        "id": "p",
        "command": "create",
        "title": "Plan",
        "type": "text/markdown",
        "content": "One two three",
    }
    answers, lost = claude_answers(
        [made, {"id": "p", "command": "update", "old_str": "two", "new_str": "2"}],
        [{"id": "p", "command": "update", "old_str": " three", "new_str": ""}],
        [{"id": "p", "command": "update", "old_str": "not there", "new_str": "alone"}],
        [{"id": "p", "command": "rewrite", "content": "New"}],
        [{"id": "unknown", "command": "update", "old_str": "a", "new_str": "b"}],
    )
    assert answers == [f"**Plan**\n\n{text}" for text in ("One 2 three", "One 2", "alone", "New")] + [""]
    assert lost == {"tools": 1}


@pytest.mark.parametrize(
    ("attachments", "files", "lost"),
    [([], ["a.png", "a.png"], {"images": 2}), (["a.png", ""], ["a.png", "", ""], {"images": 1, "files": 3})],
)
def test_files_without_their_content_are_counted_once(
    attachments: list[str], files: list[str], lost: dict[str, int]
) -> None:
    named = {"attachments": attachments, "files": files}
    message = {key: [{"file_name": name} for name in names] for key, names in named.items()}
    (chat,) = read_chats({"chat_messages": [message]})
    assert chat.lost == lost


def test_messages_without_a_name_are_in_order() -> None:
    (chat,) = read_chats({"chat_messages": [{"uuid": "a"}, {}, {"uuid": "b"}]})
    assert [node.parent for node in chat.nodes] == ["", "a", "message 1"]


def test_claudes_projects_are_named_as_not_kept(tmp_path: Path) -> None:
    made = {
        "uuid": "p",
        "name": "Harbour",
        "is_starter_project": False,
        "prompt_template": "Be brief.",
        "docs": [],
    }
    empty = made | {"prompt_template": ""}
    starter = made | {"is_starter_project": True}
    files = {"conversations.json": [samples.export("claude")], "projects.json": [made, empty, starter]}
    file = tmp_path / "a.zip"
    file.write_bytes(samples.zipped({name: json.dumps(each).encode() for name, each in files.items()}))
    found = [each for each in ChatReader(file).records() if isinstance(each, Losses)]
    assert Losses("Harbour", {"projects": 1}) in found
    assert sum(each.counts.get("projects", 0) for each in found) == 1
    assert not any(each.counts.get("chats") for each in found)


def test_changes_of_a_large_artifact_are_bounded() -> None:
    made = {"id": "p", "type": "text/markdown", "content": "word " * 100_000}
    change = {"id": "p", "command": "update", "old_str": "word", "new_str": "Word"}
    answers, _ = claude_answers([made], *[[change]] * 50)
    assert sum(map(len, answers)) < 6_000_000
    assert answers[-1] == "Word"


def test_the_system_prompt_among_the_settings_of_a_chat(tmp_path: Path) -> None:
    raw = samples.export("lm_studio")
    raw["systemPrompt"] = ""
    raw["perChatPredictionConfig"] = {"fields": [{"key": "llm.prediction.systemPrompt", "value": "Be kind."}]}
    assert read_one(tmp_path, raw)[0].system == "Be kind."


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("value", "is_export"),
    [
        *((samples.export(name), True) for name in ("claude", "lm_studio", "open_webui")),
        ([samples.chatgpt_chat()], True),
        ([{"role": "admin", "content": "x"}], False),
        ({"name": "harbour", "versions": ["1.0"]}, False),
        ({"mapping": {"a": "b"}}, False),
    ],
)
def test_exports_alone_are_imported_when_they_are_dropped(
    tmp_path: Path, value: Any, is_export: bool, codec: str
) -> None:
    archive = samples.zipped({"a.jpg": b"x", "b.json" if is_export else "b.txt": b"[]"})
    for name, data in (("some.json", json.dumps(value).encode(codec)), ("some.zip", archive)):
        (tmp_path / name).write_bytes(data)
        assert looks_like_chats(tmp_path / name) == is_export
