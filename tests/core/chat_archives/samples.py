"""Made-up exports in the formats of other programs, small and complete."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

NOON_S = 1_750_000_000.0


def chatgpt_node(name: str, parent: str | None, role: str, *parts: Any, **message: Any) -> tuple[str, Any]:
    content = message.pop("content", {"content_type": "text", "parts": list(parts)})
    return name, {
        "id": name,
        "parent": parent,
        "children": [],
        "message": {
            "id": name,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": NOON_S + 60,
            "content": content,
            "status": "finished_successfully",
            "recipient": "all",
            "metadata": {},
        }
        | message,
    }


def chatgpt_chat(number: int = 1, title: str = "") -> dict[str, Any]:
    """A question with two answers, the second of which goes on; and an edited second question."""
    nodes = dict(
        [
            ("root", {"id": "root", "parent": None, "children": ["system"], "message": None}),
            chatgpt_node("system", "root", "system", ""),
            chatgpt_node("q1", "system", "user", f"How tall is lighthouse {number}?"),
            chatgpt_node("a1", "q1", "assistant", "It is 20 metres tall."),
            chatgpt_node(
                "t2",
                "q1",
                "assistant",
                content={
                    "content_type": "thoughts",
                    "thoughts": [{"summary": "Height", "content": "I remember the plan."}],
                },
            ),
            chatgpt_node(
                "c2",
                "t2",
                "assistant",
                content={"content_type": "code", "language": "python", "text": "print(4 * 8)"},
                recipient="python",
            ),
            chatgpt_node("r2", "c2", "tool", content={"content_type": "execution_output", "text": "32"}),
            chatgpt_node("a2", "r2", "assistant", "It is 32 metres tall.\ue200cite\ue202turn0search1\ue201"),
            chatgpt_node("q2", "a2", "user", "And how old?"),
            chatgpt_node("a3", "q2", "assistant", "It was built in 1870."),
            chatgpt_node("q3", "a2", "user", "And how old is its lamp?"),
            chatgpt_node("a4", "q3", "assistant", "The lamp is from 1902."),
        ]
    )
    for name, node in nodes.items():
        if node["parent"]:
            nodes[node["parent"]]["children"].append(name)
    return {
        "title": title or f"Lighthouse {number}",
        "create_time": NOON_S + number,
        "update_time": NOON_S + 100,
        "mapping": nodes,
        "current_node": "a4",
        "conversation_id": f"chat-{number}",
        "is_archived": False,
    }


def chatgpt_research_chat() -> dict[str, Any]:
    """A call of the canvas, and marks in a text."""
    made = json.dumps({"name": "Plan", "type": "code/python", "content": "x = 1"})
    text = 'Ask \ue200entity\ue202["company","Acme"]\ue201【4†source】.'
    cited = [{"start_ix": 33, "end_ix": 43, "metadata": {"title": "T", "url": "https://example.org/b"}}]
    nodes = [
        chatgpt_node("q", None, "user", "Why?"),
        chatgpt_node("c", "q", "assistant", made, recipient="canmore.create_textdoc"),
        chatgpt_node("a", "c", "assistant", text, metadata={"citations": cited}),
    ]
    return {
        "title": "Research",
        "create_time": NOON_S,
        "mapping": dict(nodes),
        "current_node": "a",
        "conversation_id": "research",
    }


def claude_chat() -> dict[str, Any]:
    def message(name: str, sender: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "uuid": name,
            "sender": sender,
            "text": "",
            "content": list(content),
            "created_at": "2025-06-15T15:06:40.123456Z",
            "attachments": [],
            "files": [],
        } | more

    return {
        "uuid": "claude-1",
        "name": "Tide tables",
        "summary": "",
        "created_at": "2025-06-15T15:06:40.000000Z",
        "updated_at": "2025-06-15T15:10:00.000000Z",
        "account": {"uuid": "someone"},
        "chat_messages": [
            message(
                "h1",
                "human",
                {"type": "text", "text": "What does this table say?", "citations": []},
                attachments=[
                    {
                        "file_name": "tides.txt",
                        "file_size": 12,
                        "file_type": "txt",
                        "extracted_content": "HW 3.1 m",
                    }
                ],
                files=[{"file_name": "chart.png"}, {"file_name": "tides.txt"}],
            ),
            message(
                "s1",
                "assistant",
                {"type": "thinking", "thinking": "High water."},
                {"type": "text", "text": "High water is 3.1 m."},
                {"type": "tool_use", "name": "web_search", "input": {"query": "tides"}},
                {"type": "tool_result", "name": "web_search", "content": []},
                {
                    "type": "tool_use",
                    "name": "artifacts",
                    "input": {
                        "id": "tide",
                        "command": "create",
                        "title": "Tide",
                        "type": "application/vnd.ant.code",
                        "language": "python",
                        "content": "tide = 3.1",
                    },
                },
            ),
        ],
    }


def open_webui_chat() -> dict[str, Any]:
    thought = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n'
    )
    messages = {
        "u": {
            "id": "u",
            "parentId": None,
            "childrenIds": ["x", "y"],
            "role": "user",
            "content": "Name a knot.",
            "timestamp": int(NOON_S),
            "files": [
                {"type": "file", "name": "knots.md", "file": {"data": {"content": "Bowline, hitch"}}},
                {"type": "image", "url": "data:image/png;base64,AAAA"},
            ],
        },
        "x": {"id": "x", "parentId": "u", "childrenIds": [], "role": "assistant", "content": "Bowline."},
        "y": {
            "id": "y",
            "parentId": "u",
            "childrenIds": [],
            "role": "assistant",
            "content": f"{thought}&gt; 2 &lt; 3\n&gt; so\n</details>\nA **hitch**.",
        },
    }
    return {
        "id": "webui-1",
        "user_id": "someone",
        "title": "Knots",
        "archived": True,
        "pinned": True,
        "created_at": int(NOON_S),
        "updated_at": int(NOON_S) + 5,
        "chat": {
            "title": "Knots",
            "params": {"system": "Be brief."},
            "history": {"messages": messages, "currentId": "x"},
            "messages": [],
            "timestamp": int(NOON_S * 1000),
        },
    }


def lm_studio_chat() -> dict[str, Any]:
    def block(text: str, **style: Any) -> dict[str, Any]:
        return {"type": "contentBlock", "content": [{"type": "text", "text": text}], **style}

    thinking = block("Not green.", style={"type": "thinking", "ended": True})
    thinking["content"].insert(0, {"type": "text", "text": "<think>", "isStructural": True})
    answers = [
        {"type": "multiStep", "role": "assistant", "steps": [block("Red.")]},
        {
            "type": "multiStep",
            "role": "assistant",
            "senderInfo": {"senderName": "some-model"},
            "steps": [thinking, block("Yellow."), {"type": "debugInfoBlock", "debugInfo": "fast"}],
        },
    ]
    question = {
        "type": "singleStep",
        "role": "user",
        "content": [
            {"type": "text", "text": "Which colour?"},
            {"type": "file", "fileIdentifier": "1-buoys.pdf", "fileType": "application/pdf"},
        ],
    }
    again = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Sure?"}]}
    return {
        "name": "Buoys",
        "pinned": False,
        "createdAt": int(NOON_S * 1000),
        "tokenCount": 12,
        "systemPrompt": "Answer in one word.",
        "messages": [
            {"versions": [question], "currentlySelected": 0},
            {"versions": answers, "currentlySelected": 1},
            {"versions": [again], "currentlySelected": 0},
        ],
    }


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def chatgpt_archive(chats: Sequence[dict[str, Any]]) -> bytes:
    """The ZIP file that a person downloads."""
    return zipped(
        {
            "chat.html": b"<html></html>",
            "conversations.json": json.dumps(list(chats)).encode(),
            "message_feedback.json": b'[{"id": "1", "rating": "thumbs_up"}]',
            "user.json": b'{"id": "user-1", "email": "someone@example.org"}',
            "file-abc.png": b"not really a picture",
        }
    )
