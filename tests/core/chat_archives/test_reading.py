"""Exports of other programs become chats with turns and versions; the rest is counted."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.chat_archives.formats import read_chats
from core.chat_archives.process import ArchiveLimits, ArchiveReading, TurnLine
from core.chat_archives.reading import ChatHead, ChatReader, Elements, Losses, OwnChat
from core.chat_archives.tree import ArchivedPath, Node, Tree
from core.errors import RequestError
from tests.core.chat_archives import samples


def read(path: Path) -> tuple[list[tuple[ChatHead, ArchivedPath]], dict[str, int]]:
    """The chats, and everything that was lost."""
    chats, lost = [], Counter[str]()
    head = None
    for record in ChatReader(path).records():
        if isinstance(record, ChatHead):
            head = record
        elif isinstance(record, ArchivedPath):
            assert head
            chats.append((head, record))
        elif isinstance(record, Losses):
            lost.update(record.counts)
    return chats, dict(lost)


def read_one(tmp_path: Path, raw: Any) -> tuple[ChatHead, ArchivedPath, dict[str, int]]:
    file = tmp_path / "any name"
    file.write_text(json.dumps(raw))
    chats, lost = read(file)
    head, path = chats[0]
    return head, path, lost


def words(path: ArchivedPath) -> list[tuple[int, list[tuple[str, str]]]]:
    return [(turn.place, [(each.question, each.answer) for each in turn.versions]) for turn in path.turns]


def test_a_chatgpt_archive(tmp_path: Path) -> None:
    file = tmp_path / "download"
    file.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(1), samples.chatgpt_chat(2)]))
    chats, lost = read(file)
    assert [(head.source, head.title, head.branch) for head, _ in chats] == [
        ("ChatGPT", "Lighthouse 1", 0),
        ("ChatGPT", "Lighthouse 2", 0),
    ]
    head, path = chats[0]
    assert head.created_s == samples.NOON_S + 1
    tall = "How tall is lighthouse 1?"
    long = (
        "<think>\nHeight\n\nI remember the plan.\n</think>\n\n"
        "```python\nprint(4 * 8)\n```\n\nIt is 32 metres tall."
    )
    assert words(path) == [
        (1, [(tall, "It is 20 metres tall."), (tall, long)]),
        (
            1,
            [
                ("And how old?", "It was built in 1870."),
                ("And how old is its lamp?", "The lamp is from 1902."),
            ],
        ),
    ]
    assert lost == {"tools": 2}
    names = [each.id for _, path in chats for turn in path.turns for each in turn.versions]
    assert len(set(names)) == 8


def test_chatgpt_pictures_files_and_instructions_are_counted(tmp_path: Path) -> None:
    raw = samples.chatgpt_chat()
    raw["mapping"]["q1"]["message"]["content"] = {
        "content_type": "multimodal_text",
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://1"},
            "What is it?",
        ],
    }
    raw["mapping"]["q1"]["message"]["metadata"]["attachments"] = [
        {"id": "1", "name": "photo.png", "mimeType": "image/png"},
        {"id": "2", "name": "plan.pdf", "mimeType": "application/pdf"},
    ]
    raw["mapping"]["system"]["message"]["content"] = {
        "content_type": "user_editable_context",
        "user_profile": "A sailor",
    }
    _, path, lost = read_one(tmp_path, [raw])
    assert path.turns[0].versions[0].question == "[File: plan.pdf]\n\n[Image]\n\nWhat is it?"
    assert lost == {"images": 1, "files": 1, "instructions": 1, "tools": 1}


def test_claude(tmp_path: Path) -> None:
    head, path, lost = read_one(tmp_path, [samples.export("claude")])
    assert (head.source, head.title, head.created_s) == ("Claude", "Tide tables", samples.NOON_S)
    (version,) = path.turns[0].versions
    assert version.question == "[Image: chart.png]\n\nWhat does this table say?"
    assert [(each.name, each.text) for each in version.attachments] == [("tides.txt", "HW 3.1 m")]
    assert version.answer == (
        "<think>\nHigh water.\n</think>\n\nHigh water is 3.1 m.\n\n**Tide**\n\n```python\ntide = 3.1\n```"
    )
    assert lost == {"images": 1, "tools": 2}


def test_claude_branches_and_old_artifacts(tmp_path: Path) -> None:
    raw = samples.export("claude")
    first, second = raw["chat_messages"]
    first["parent_message_uuid"] = "00000000-0000-4000-8000-000000000000"
    second["parent_message_uuid"] = "h1"
    again = {**second, "uuid": "s2", "content": [], "text": "a<antThinking>b</antThinking>\n"}
    again["text"] += (
        '<antArtifact title="T" language="c" type="application/vnd.ant.code">\nint x;\n</antArtifact>'
    )
    raw["chat_messages"].append(again)
    _, path, _ = read_one(tmp_path, raw)
    assert path.turns[0].place == 1
    assert path.turns[0].versions[1].answer == "<think>\nb\n</think>\n\na\n**T**\n\n```c\nint x;\n```"


def test_open_webui(tmp_path: Path) -> None:
    head, path, lost = read_one(tmp_path, [samples.export("open_webui")])
    assert (head.source, head.title, head.system) == ("Open WebUI", "Knots", "Be brief.")
    assert (head.pinned, head.created_s) == (True, samples.NOON_S)
    (turn,) = path.turns
    assert (turn.place, [each.answer for each in turn.versions]) == (
        0,
        ["Bowline.", "<think>\n2 < 3\nso\n</think>\n\nA **hitch**."],
    )
    assert turn.versions[0].question == "[Image]\n\nName a knot."
    assert [(each.name, each.text) for each in turn.versions[1].attachments] == [
        ("knots.md", "Bowline, hitch")
    ]
    assert lost == {"images": 1, "tools": 2}


def test_lm_studio(tmp_path: Path) -> None:
    head, path, lost = read_one(tmp_path, samples.export("lm_studio"))
    assert (head.source, head.title, head.system) == ("LM Studio", "Buoys", "Answer in one word.")
    question = "[File: 1-buoys.pdf]\n\nWhich colour?"
    assert words(path) == [
        (1, [(question, "Red."), (question, "<think>\nNot green.\n</think>\n\nYellow.")]),
        (0, [("Sure?", "")]),
    ]
    assert lost == {"files": 1, "tools": 1}


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.conversation.json").write_text(json.dumps(samples.export("lm_studio")))
    (tmp_path / "in" / "b.json").write_text(json.dumps([samples.chatgpt_chat(1)]))
    (tmp_path / "in" / "c.json").write_text("[]")
    chats, lost = read(tmp_path)
    assert [head.title for head, _ in chats] == ["Buoys", "Lighthouse 1"]
    assert lost == {"files": 1, "tools": 2}


def test_an_own_export_is_passed_on_chat_by_chat(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text('{"draftlight_chats": 1, "chats": [{"chat": {"id": "a"}}, {"chat": "]}"}]}')
    assert list(ChatReader(file).records()) == [OwnChat('{"chat": {"id": "a"}}'), OwnChat('{"chat": "]}"}')]
    file.write_text('{"draftlight_chats": 2, "chats": [{"chat": {"id": "a"}}]}')
    with pytest.raises(RequestError, match="newer"):
        list(ChatReader(file).records())


# ---- branches


def node(name: str, parent: str, text: str = "") -> Node:
    return Node(name, parent, "user" if name.startswith("q") else "answer", text or name)


def test_a_branch_that_continues_becomes_a_chat_with_what_is_before_it() -> None:
    nodes = [
        node("q1", ""),
        node("a1", "q1"),
        node("q2", "a1"),
        node("a2", "q2"),
        node("q2b", "a1"),
        node("a2b", "q2b"),
        node("q3b", "a2b"),
        node("a3b", "q3b"),
    ]
    main, branch = Tree("c", nodes, "a2").paths()
    assert words(main) == [(0, [("q1", "a1")]), (0, [("q2", "a2"), ("q2b", "a2b")])]
    assert words(branch) == [(0, [("q1", "a1")]), (0, [("q2b", "a2b")]), (0, [("q3b", "a3b")])]
    assert (main.branch, branch.branch) == (0, 1)
    names = [each.id for path in (main, branch) for turn in path.turns for each in turn.versions]
    assert len(set(names)) == len(names)
    again = list(Tree("c", nodes, "a2").paths())
    assert again == [main, branch]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("qan"), st.integers(-1, 12)), min_size=1, max_size=12),
    st.integers(-1, 12),
)
def test_every_message_of_any_graph_is_in_a_chat(shape: list[tuple[str, int]], current: int) -> None:
    """Cycles, missing parents and several roots included."""
    nodes = []
    for number, (kind, parent) in enumerate(shape):
        role = {"q": "user", "a": "answer", "n": "none"}[kind]
        nodes.append(Node(str(number), str(parent), role, f"<{number}>"))  # type: ignore[arg-type]
    tree = Tree("c", nodes, str(current))
    paths = list(tree.paths())
    text = "".join(
        f"{question}{answer}" for path in paths for _, turn in words(path) for question, answer in turn
    )
    assert (tree.lost_versions, tree.lost_branches) == (0, 0)
    for each in nodes:
        assert (each.text in text) == (each.role != "none"), each
    for path in paths:
        names = [each.id for turn in path.turns for each in turn.versions]
        assert len(set(names)) == len(names)


def test_a_deep_tree_of_branches_is_bounded() -> None:
    nodes = [node("q0", "")]
    for number in range(3_000):
        nodes.append(node(f"a{number}", f"q{number}"))
        nodes.append(node(f"b{number}", f"q{number}"))
        nodes.append(node(f"q{number}x", f"b{number}"))
        nodes.append(node(f"q{number + 1}", f"a{number}"))
    tree = Tree("c", nodes, "q3000")
    paths = list(tree.paths())
    assert len(paths[0].turns) == 3_001
    assert 1 < len(paths) <= 51
    assert tree.lost_branches == 3_000 - (len(paths) - 1)


# ---- damage


def elements(data: bytes, most_bytes: int = 1 << 20) -> tuple[list[bytes], bool, int]:
    found = Elements(io.BytesIO(data), most_bytes)
    return list(found), found.damaged, found.too_large


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(['"', "\\", "[{", "]}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.sweep
@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=3), max_size=4), st.integers(1, 7))
def test_an_array_is_split_into_its_elements(values: list[Any], piece_bytes: int) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(piece_bytes)

    data = json.dumps(values, ensure_ascii=False).encode()
    found = Elements(Slow(data), 1 << 20)
    assert [json.loads(each) for each in found] == values
    assert not found.damaged


def test_elements_of_damaged_files() -> None:
    assert elements(b'[{"a": 1}, {"b": "x]}') == ([b'{"a": 1}'], True, 0)
    assert elements(b'[{"a": 1}, 7, {"b": 2}]') == ([b'{"a": 1}', b'{"b": 2}'], True, 0)
    assert elements(b"") == ([], False, 0)
    big = b'{"a": "' + b"x" * 3_000_000 + b'\\""}'
    assert elements(b"[" + big + b',{"b": 2}]') == ([b'{"b": 2}'], False, 1)
    assert elements(b"[" + big + b"]", 4_000_000) == ([big], False, 0)
    assert elements(b"\xef\xbb\xbf[{}]") == ([b"{}"], False, 0)
    assert elements('[{"a": "ä"}]'.encode("utf-16")) == (['{"a": "ä"}'.encode()], False, 0)


def test_a_cut_off_export_gives_what_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    data = json.dumps([samples.chatgpt_chat(1), samples.chatgpt_chat(2)]).encode()
    file.write_bytes(data[:-200])
    chats, lost = read(file)
    assert ([head.title for head, _ in chats], lost["chats"]) == (["Lighthouse 1"], 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "damaged"),
        (b"just a text", "no chats"),
        (b'[{"photos": []}]', "no chats"),
        (b"[" * 100_000, "damaged"),
        (b"PK\3\4 and nothing else", "damaged"),
        (samples.zipped({"a.txt": b"", "b.json": b"[]"}), "no chats"),
        (samples.zipped({"conversations.json": b"[" + b" " * 50_000_000}), "unpack"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "some.json"
    file.write_bytes(data)
    with pytest.raises(RequestError, match=said):
        list(ChatReader(file).records())


def test_a_damaged_part_of_an_archive_costs_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "chats.zip"
    made = samples.zipped(
        {
            "a.json": json.dumps([samples.chatgpt_chat(number) for number in range(40)]).encode(),
            "b.json": json.dumps(samples.export("claude")).encode(),
        }
    )
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        begin = archive.getinfo("a.json").header_offset + 200
    file.write_bytes(made[:begin] + bytes(20) + made[begin + 20 :])
    chats, lost = read(file)
    assert "Tide tables" in [head.title for head, _ in chats]
    assert lost["chats"] >= 1


def test_what_cannot_be_read_of_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text(json.dumps([samples.chatgpt_chat()]))
    (tmp_path / "b.json").symlink_to("nowhere")
    (tmp_path / "refused").mkdir()

    def scandir(folder: str, listed: Any = os.scandir) -> Any:
        if Path(folder).name == "refused":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    titles = [each.title for each in ChatReader(tmp_path).records() if isinstance(each, Losses)]
    assert titles[-2:] == ["refused", "b.json"]
    with pytest.raises(RequestError, match="refused could not be read: Permission denied"):
        list(ChatReader(tmp_path / "refused").records())


def test_deep_and_odd_values_cost_one_chat(tmp_path: Path) -> None:
    good = samples.chatgpt_chat(1)
    deep = '{"mapping": ' + "[" * 200_000 + "]" * 200_000 + "}"
    odd = {
        "create_time": 0,
        "mapping": {"a": 7, "b": {"parent": 3, "message": {"content": {"parts": 9}, "author": []}}},
    }
    file = tmp_path / "conversations.json"
    number = '{"chat_messages": [' + "9" * 5_000 + "]}"
    file.write_text(f"[{deep}, {json.dumps(odd)}, {number}, {json.dumps(good)}]")
    chats, lost = read(file)
    assert [head.title for head, _ in chats if head.title] == ["Lighthouse 1"]
    assert lost["chats"] == 2


def test_times_of_any_kind() -> None:
    def created(value: Any) -> float | None:
        (chat,) = read_chats({"mapping": {}, "create_time": value})
        return chat.created_s

    assert created(samples.NOON_S) == created(samples.NOON_S * 1e3) == created(int(samples.NOON_S) * 10**9)
    assert created("2025-06-15T15:06:40Z") == samples.NOON_S
    for bad in (None, True, "yesterday", "0001-01-01", -1, 0, 1e400, float("nan"), 10**400, [], {}):
        assert created(bad) is None


# ---- the process


def test_the_process_reads_and_refuses(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(number) for number in range(3)]))
    lines = list(ArchiveReading(file).lines())
    assert [line.title for line in lines if isinstance(line, ChatHead)] == [
        f"Lighthouse {n}" for n in range(3)
    ]
    assert sum(isinstance(line, TurnLine) for line in lines) == 6
    file.write_bytes(b"no")
    with pytest.raises(RequestError, match="no chats"):
        list(ArchiveReading(file).lines())
    with pytest.raises(RequestError, match="could not be read"):
        list(ArchiveReading(tmp_path / "missing.zip").lines())


def test_the_process_is_bounded_and_can_be_stopped(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("[" + json.dumps(samples.chatgpt_chat()) + "]")
    silent = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(RequestError, match="no progress"):
        list(ArchiveReading(file, ArchiveLimits(silence_s=0.2), silent).lines())
    with pytest.raises(RequestError, match="ended with status -9"):
        list(
            ArchiveReading(file, command=[sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]).lines()
        )
    reading = ArchiveReading(file)
    reading.stop()
    assert list(reading.lines()) == []
