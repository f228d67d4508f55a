"""Images of requests: each API's reach the worker, none is left out silently, none stays on the disk."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow

from core.documents.images import describe
from core.events import Image, ModelEntry
from core.serve import images as module
from core.serve.images import MOST_IMAGES, ImageFiles, ServedImages, erase_leftovers, given_image
from tests.core.seeing import image, made_family, write_seeing_model
from tests.core.serve.served import CHAT, COUNT, MESSAGES, RESPONSES, Reply, Served, serving, settings

HEAD = "data:image/png;base64,"
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served-images")


@pytest.fixture(scope="module")
def seeing(folder: Path) -> Iterator[Served]:
    """A server whose model sees, with answers that drafts do not change."""
    write_seeing_model(folder / "sees")
    base = settings(drafting__drafter="off")
    with serving(folder / "sees", base=lambda: base) as found:
        yield found


@pytest.fixture(scope="module")
def drawn(folder: Path) -> Image:
    return image(folder, 7)


def encoded(given: Image | Path) -> str:
    return base64.b64encode(Path(given.path if isinstance(given, Image) else given).read_bytes()).decode()


def chat(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}], "max_tokens": 4, **fields}


def part(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": HEAD + data, "detail": "auto"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def block(data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def left_here() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"draftlight-served-images-{os.getpid()}-*"))


def png(width: int, height: int) -> str:
    stream = io.BytesIO()
    Pillow.new("1", (width, height)).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


# The same question about an image in each API, and as MCP and older clients write it.
QUESTIONS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "chat": lambda data: (CHAT, chat(text("See "), part(data), text(" now?"))),
    "chat, an address as a text": lambda data: (
        CHAT,
        chat(text("See "), {"type": "image_url", "image_url": HEAD + data}, text(" now?")),
    ),
    "chat, an image of MCP": lambda data: (
        CHAT,
        chat(text("See "), {"type": "image", "data": data, "mimeType": "image/png"}, text(" now?")),
    ),
    "responses": lambda data: (
        RESPONSES,
        {
            "max_output_tokens": 4,
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "See "},
                        {"type": "input_image", "image_url": HEAD + data, "detail": "high"},
                        {"type": "input_text", "text": " now?"},
                    ],
                }
            ],
        },
    ),
    "messages": lambda data: (
        MESSAGES,
        {
            "max_tokens": 4,
            "messages": [{"role": "user", "content": [text("See "), block(data), text(" now?")]}],
        },
    ),
    "messages, base64 in lines": lambda data: (
        MESSAGES,
        {
            "max_tokens": 4,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        text("See "),
                        block("\n".join((data[:76], data[76:])).rstrip("=")),
                        text(" now?"),
                    ],
                }
            ],
        },
    ),
}
# An image in the result of a call, in each API, and the place that its error names.
RESULTS: dict[str, Callable[[str], tuple[str, dict[str, Any], str]]] = {
    "chat": lambda data: (
        CHAT,
        {
            "max_tokens": 4,
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c", "content": [text("It shows "), part(data)]},
            ],
        },
        "messages[2].content[1]",
    ),
    "responses": lambda data: (
        RESPONSES,
        {
            "max_output_tokens": 4,
            "input": [
                {"role": "user", "content": "Look."},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [
                        {"type": "input_text", "text": "It shows "},
                        {"type": "input_image", "image_url": HEAD + data},
                    ],
                },
            ],
        },
        "input[2].output[1]",
    ),
    "messages": lambda data: (
        MESSAGES,
        {
            "max_tokens": 4,
            "messages": [
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c",
                            "content": [text("It shows "), block(data)],
                        }
                    ],
                },
            ],
        },
        "messages[2].content[0].content[1]",
    ),
}


def prompt_tokens(reply: Reply) -> int:
    usage = reply.json["usage"]
    if "prompt_tokens" in usage:
        return int(usage["prompt_tokens"])
    return int(usage["input_tokens"]) + int(usage.get("cache_read_input_tokens", 0))


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_image_reaches_the_model_from_every_api(
    name: str, seeing: Served, drawn: Image, folder: Path
) -> None:
    path, body = QUESTIONS[name](encoded(drawn))
    reply = seeing.ask("POST", path, body)
    [message] = seeing.asked(reply).messages
    [found] = message.images
    assert (message.content, found.at) == ("See  now?", 4)
    assert (found.hash, found.width, found.height) == (drawn.hash, drawn.width, drawn.height)
    assert not [one for one in reply.json["draftlight"]["changes"] if "image" in one["setting"]]
    # Its rows are tokens of the prompt; around them are two more.
    rows = len(made_family(folder / "sees").rows_of(drawn))
    words = seeing.ask("POST", CHAT, chat(text("See  now?"), max_tokens=4))
    assert prompt_tokens(reply) == prompt_tokens(words) + rows + 2
    assert reply.json["draftlight"]["image_tokens"] == rows
    assert not Path(found.path).exists()
    seeing.until(lambda: not left_here())


@pytest.mark.parametrize("name", RESULTS)
def test_an_image_in_a_result_reaches_the_model(name: str, seeing: Served, drawn: Image) -> None:
    path, body, _ = RESULTS[name](encoded(drawn))
    message = seeing.asked(seeing.ask("POST", path, body)).messages[-1]
    assert (message.role, message.content, message.tool_call_id) == ("tool", "It shows ", "c")
    assert [(each.hash, each.at) for each in message.images] == [(drawn.hash, 9)]


def test_another_image_has_another_answer_and_the_same_one_is_read_from_the_cache(
    seeing: Served, drawn: Image, folder: Path
) -> None:
    other = image(folder, 8)

    def ask(given: Image) -> Any:
        asked = chat(part(encoded(given)), text("What is shown?"), logprobs=True, max_tokens=6)
        return seeing.ask("POST", CHAT, asked).json

    first, second, again = ask(drawn), ask(other), ask(drawn)

    def odds(answer: Any) -> Any:
        return [one["logprob"] for one in answer["choices"][0]["logprobs"]["content"]]

    assert odds(first) == pytest.approx(odds(again), abs=1e-4)
    assert odds(first) != pytest.approx(odds(second), abs=1e-4)
    rows = first["draftlight"]["image_tokens"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > rows


def test_images_of_an_earlier_response_are_read_again(seeing: Served, drawn: Image) -> None:
    path, body = QUESTIONS["responses"](encoded(drawn))
    first = seeing.ask("POST", path, body).json["id"]
    reply = seeing.ask(
        "POST", path, {"max_output_tokens": 2, "previous_response_id": first, "input": "And now?"}
    )
    messages = seeing.asked(reply).messages
    assert [[each.hash for each in one.images] for one in messages] == [[drawn.hash], [], []]
    assert "data:" not in str(messages)


def test_a_stream_and_a_count_have_the_image(seeing: Served, drawn: Image) -> None:
    path, body = QUESTIONS["messages"](encoded(drawn))
    reply = seeing.ask("POST", path, body)
    counted = seeing.ask("POST", COUNT, {"messages": body["messages"]})
    assert counted.json["input_tokens"] == prompt_tokens(reply)
    streamed = seeing.ask("POST", CHAT, chat(text("See "), part(encoded(drawn)), text(" now?"), stream=True))
    assert streamed.status == 200
    assert streamed.chunks[-1]["draftlight"]["image_tokens"] == reply.json["draftlight"]["image_tokens"]
    seeing.until(lambda: not left_here())


WRONG: dict[str, tuple[Any, str, str]] = {
    "a remote address": (
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        ".image_url.url",
        "fetches nothing from a network",
    ),
    "a remote address in a source": (
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        ".source.url",
        "Send the image itself as base64",
    ),
    "a path": (
        {"type": "image_url", "image_url": {"url": "/etc/passwd"}},
        ".image_url.url",
        "is not base64",
    ),
    "a file": ({"type": "input_image", "file_id": "file-1"}, ".file_id", "this server stores none"),
    "nothing": ({"type": "image_url"}, "", "has no image"),
    "no text": ({"type": "image_url", "image_url": {"url": 7}}, ".image_url.url", "is not a text"),
    "an empty one": (part(""), "", "The image is empty."),
    "no base64": (part("§§§§"), "", "The image is not base64."),
    "no image": (part(base64.b64encode(b"no image at all").decode()), "", "is damaged"),
    "a part of one": (part("iVBORw0KGgo="), "", "image-2.png"),
    "too many pixels": (part(png(9000, 9000)), "", "64 million"),
    "too long": (part(png(1000, 4)), "", "200"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_an_image_that_is_not_read_is_refused_by_its_field(
    name: str, stream: bool, seeing: Served, drawn: Image
) -> None:
    given, where, words = WRONG[name]
    reply = seeing.ask("POST", CHAT, chat(part(encoded(drawn)), given, text("And this?"), stream=stream))
    assert (reply.status, reply.error["param"]) == (400, f"messages[0].content[1]{where}")
    assert reply.error["code"] == "invalid_image"
    assert words in reply.error["message"]
    assert tempfile.gettempdir() not in reply.error["message"]
    seeing.until(lambda: not left_here())


def test_too_many_images_and_too_large_ones_are_refused(
    seeing: Served, drawn: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [part(encoded(drawn))] * (MOST_IMAGES + 1)
    reply = seeing.ask("POST", CHAT, chat(*many))
    assert (reply.error["param"], reply.error["code"]) == (
        f"messages[0].content[{MOST_IMAGES}]",
        "too_many_images",
    )
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    reply = seeing.ask("POST", CHAT, chat(part(encoded(drawn))))
    assert reply.error["param"] == "messages[0].content[0]"
    assert "at most 100 are allowed" in reply.error["message"]


def test_fields_of_images_that_are_not_supported_are_named(seeing: Served, drawn: Image) -> None:
    given = {"type": "image_url", "image_url": {"url": HEAD + encoded(drawn), "detail": "low"}, "strange": 1}
    changes = seeing.ask("POST", CHAT, chat(given, text("?"))).json["draftlight"]["changes"]
    found = {change["setting"] for change in changes}
    assert {"messages[0].content[0].image_url.detail", "messages[0].content[0].strange"} <= found


# ---- a model that does not see


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_model_that_does_not_see_refuses_an_image_and_names_one_that_sees(
    name: str, served: Served, drawn: Image
) -> None:
    path, body = QUESTIONS[name](encoded(drawn))
    for stream in (False, True):
        reply = served.ask("POST", path, {**body, "stream": stream})
        assert reply.status == 400
        assert "is an image, which" in reply.error["message"]
        assert "Load a vision model" in reply.error["message"]
        if path != MESSAGES:
            assert (reply.error["code"], reply.error["param"]) == (
                "model_does_not_see",
                "input[0].content[1]" if path == RESPONSES else "messages[0].content[1]",
            )


def test_an_image_of_an_earlier_question_is_refused_too(served: Served, drawn: Image) -> None:
    turns = [
        {"role": "user", "content": [part(encoded(drawn)), text("What is it?")]},
        {"role": "assistant", "content": "A square."},
        {"role": "user", "content": "Which colour?"},
    ]
    reply = served.ask("POST", CHAT, {"messages": turns, "max_tokens": 2})
    assert (reply.status, reply.error["param"]) == (400, "messages[0].content[0]")


@pytest.mark.parametrize("name", RESULTS)
def test_words_replace_an_image_in_a_result_which_is_named(
    name: str, served: Served, toy_folder: Path, drawn: Image
) -> None:
    path, body, place = RESULTS[name](encoded(drawn))
    reply = served.ask("POST", path, body)
    assert served.asked(reply).messages[-1].content == (
        "It shows \n[image left out: this model does not see images]"
    )
    changes = {change["setting"]: change for change in reply.json["draftlight"]["changes"]}
    assert changes[place]["used"] == "[image left out: this model does not see images]"


def test_a_strict_server_refuses_what_another_one_replaces(toy_folder: Path, drawn: Image) -> None:
    entries = [
        ModelEntry("owner/Large-Seeing", "Large", "folder", "/large", disk_bytes=9, sees=True),
        ModelEntry("owner/Small-Seeing", "Small", "folder", "/small", disk_bytes=5, sees=True),
        ModelEntry("owner/Blind", "Blind", "folder", "/blind", disk_bytes=1),
        ModelEntry("owner/Broken", "Broken", "folder", "/broken", disk_bytes=1, sees=True, problem="no"),
    ]

    async def listed() -> list[ModelEntry]:
        return entries

    path, body, place = RESULTS["chat"](encoded(drawn))
    with serving(toy_folder, strict=True, listed=listed) as served:
        reply = served.ask("POST", path, body)
        assert (reply.status, reply.error["param"]) == (400, place)
        refused = served.ask("POST", CHAT, chat(part(encoded(drawn))))
        assert "Load “Small-Seeing”, which supports images" in refused.error["message"]


def test_models_say_whether_they_see(seeing: Served, served: Served) -> None:
    [model] = [one for one in seeing.ask("GET", "/v1/models").json["data"] if one["id"] == "sees"]
    assert "vision" in model["capabilities"]
    assert model["architecture"]["input_modalities"] == ["text", "image"]
    assert model["type"] == "vlm"
    for one in served.ask("GET", "/v1/models").json["data"]:
        assert "vision" not in one.get("capabilities", ())
        assert "image" not in one.get("architecture", {}).get("input_modalities", ())


# ---- files


def test_files_are_private_and_are_erased_with_the_request(drawn: Image) -> None:
    async def look() -> None:
        known = ServedImages()
        files = ImageFiles()
        given = given_image("messages[0].content[0]", block(encoded(drawn)), "image")
        with files:
            await known.describe([given], files)
            assert given.image is not None
            path = Path(given.image.path)
            assert given.image == replace(describe(path), name="image-1.png")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert not given.data
        assert not path.parent.exists()
        late = given_image("messages[0].content[0]", block(encoded(drawn)), "image")
        await known.describe([late], files)
        assert late.problem is not None
        assert not path.parent.exists()

    asyncio.run(look())


def test_images_of_a_killed_server_are_erased_by_the_next_one() -> None:
    made = "import sys; from core.serve.images import ImageFiles; print(ImageFiles().write('a', b'a').path)"
    ran = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True)
    left = Path(ran.stdout.strip())
    assert left.exists()
    mine = ImageFiles()
    kept = mine.write("b", b"b").path
    erase_leftovers()
    assert not left.parent.exists()
    assert kept.exists()
    with mine:
        pass
    assert not kept.parent.exists()


@pytest.mark.sweep
def test_a_client_that_leaves_while_its_images_are_read_leaves_no_file(seeing: Served, folder: Path) -> None:
    line = seeing.line()
    many = [part(encoded(image(folder, 100 + number))) for number in range(20)]
    line.request("POST", CHAT, json.dumps(chat(*many)), {"content-type": "application/json"})
    seeing.until(lambda: bool(left_here()))
    line.close()
    seeing.until(lambda: not left_here())
