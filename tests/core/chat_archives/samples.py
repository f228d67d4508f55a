"""Made-up exports in the formats of other programs, small and complete."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
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


def export(name: str) -> dict[str, Any]:
    """A chat of another program; `chatgpt_research` has a call of the canvas, and marks in a text."""
    found: dict[str, Any] = json.loads(
        (Path(__file__).parent / "exports" / f"{name}.json").read_text("utf-8")
    )
    return found


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
