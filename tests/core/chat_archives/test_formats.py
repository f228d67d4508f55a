"""What newer exports have: marks in texts, reports, documents that are changed, lists of messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.chat_archives.formats import read_chats
from core.chat_archives.reading import ChatReader, Losses, looks_like_chats
from tests.core.chat_archives import samples
from tests.core.chat_archives.test_reading import read, read_one, words


def answer_of(*nodes: tuple[str, Any]) -> tuple[str, dict[str, int]]:
    """The answer of a ChatGPT chat with a question and these nodes after it, and what is lost."""
    tree = dict([samples.chatgpt_node("q", None, "user", "Why?"), *nodes])
    (chat,) = read_chats({"mapping": tree, "current_node": nodes[-1][0]})
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


def test_the_report_of_a_research_app_is_its_answer() -> None:
    report = {
        "id": "r",
        "author": {"role": "assistant"},
        "content": {"content_type": "text", "parts": ["# Tides\n\nHigh.\ue200cite\ue202x\ue201"]},
        "metadata": {
            "content_references": [{"matched_text": "\ue200cite\ue202x\ue201", "alt": "([T](https://e.org))"}]
        },
    }
    state = json.dumps({"status": "completed", "report_message": report})
    host = samples.chatgpt_node(
        "t", "q", "tool", "{}", metadata={"chatgpt_sdk": {"widget_state": state}}, recipient="all"
    )
    assert answer_of(host) == ("# Tides\n\nHigh.([T](https://e.org))", {})


def test_changes_of_a_canvas_are_kept() -> None:
    def call(node: str, parent: str, tool: str, /, **given: Any) -> tuple[str, Any]:
        content = {"content_type": "code", "language": "json", "text": json.dumps(given)}
        return samples.chatgpt_node(
            node, parent, "assistant", content=content, recipient=f"canmore.{tool}_textdoc"
        )

    text, lost = answer_of(
        call("a", "q", "create", name="Plan", type="code/python", content="x = 1"),
        call("b", "a", "update", updates=[{"pattern": ".*", "replacement": "x = 2"}]),
        call("c", "b", "comment", comments=[{"pattern": "x", "comment": "Say more."}]),
        call("d", "c", "update", updates=[]),
    )
    assert (
        text
        == "**Plan**\n\n```python\nx = 1\n```\n\n**Plan**\n\n```python\nx = 2\n```\n\n**Plan:** Say more."
    )
    assert lost == {"tools": 1}


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
    files = {"conversations.json": [samples.claude_chat()], "projects.json": [made, empty, starter]}
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


def test_deepseek(tmp_path: Path) -> None:
    head, path, lost = read_one(tmp_path, [samples.deepseek_chat()])
    assert (head.source, head.title, head.created_s) == ("DeepSeek", "Reason", samples.NOON_S)
    assert words(path) == [(1, [("Why?", "<think>\nHm.\n</think>\n\nSo."), ("Why?", "Thus.")])]
    assert lost == {"tools": 1}


def test_the_system_prompt_among_the_settings_of_a_chat(tmp_path: Path) -> None:
    raw = samples.lm_studio_chat()
    raw["systemPrompt"] = ""
    raw["perChatPredictionConfig"] = {"fields": [{"key": "llm.prediction.systemPrompt", "value": "Be kind."}]}
    assert read_one(tmp_path, raw)[0].system == "Be kind."


def test_lists_of_messages_and_of_chats(tmp_path: Path) -> None:
    """An array of messages, or their lines, is one chat; lines of chats or of an object are several."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
    parts = [
        {
            "role": each["role"],
            "content": [{"type": "text", "text": {"value": each["content"], "annotations": []}}],
            "thread_id": "t",
        }
        for each in messages
    ]
    chat = {"messages": messages}
    for text, count in (
        (json.dumps(messages), 1),
        ("\n".join(map(json.dumps, messages)), 1),
        ("\n".join(map(json.dumps, parts)), 1),
        ("\n".join(json.dumps(chat | {"id": str(n)}) for n in range(3)), 3),
        (json.dumps({"version": 2, "conversations": [chat | {"id": str(n)} for n in range(3)]}), 3),
    ):
        file = tmp_path / "messages.jsonl"
        file.write_text(text)
        chats, lost = read(file)
        assert [words(path) for _, path in chats] == [[(0, [("Hi", "Yes")])]] * count
        assert len({head.id for head, _ in chats}) == count
        assert not lost


def test_a_list_of_notes_is_no_chat(tmp_path: Path) -> None:
    file = tmp_path / "roles.json"
    file.write_text(json.dumps([{"role": "admin", "content": "x"}]))
    assert not looks_like_chats(file)
