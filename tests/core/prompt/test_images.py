"""Images in prompts: their rows where the template writes them, whatever the texts around them look like."""

from __future__ import annotations

from itertools import groupby

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.errors import ChatTemplateError
from core.events import FIRST_IMAGE_ROW, Attachment, Image, Message
from core.prompt import render
from core.prompt.rendering import ImageText
from tests.core.prompt.tokenizer_kinds import tokenizer_of

PARTS = (
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ part.text if part.type == 'text' else '<image>' }}{% endfor %}{% endif %}"
    "{% endfor %}"
)
TEXT_ONLY = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
ONE, TWO = Image("one.png", "/one.png", "aa", 40, 24, at=4), Image("two.png", "/two.png", "bb", 64, 64, at=9)
TALK = (
    Message(
        "user", "an <image> of mine", (Attachment("a.txt", "the <image> <pad> of a text"),), images=(ONE,)
    ),
    Message("assistant", "It is an <image>."),
    Message("user", "And <image> here?", images=(ONE, TWO)),
)


def rows_of(image: Image) -> list[int]:
    """As many as the image is wide, divided by 8."""
    return [FIRST_IMAGE_ROW + image.height + number for number in range(image.width // 8)]


def shown_as(shown: str) -> ImageText:
    return ImageText("<image>", shown, "<pad>", rows_of)


def seeing(template: str) -> TokenizerWrapper:
    tokenizer = tokenizer_of("byte-level BPE", template)
    tokenizer._tokenizer.add_tokens(["<pad>", "<begin>", "<end>"], special_tokens=True)
    tokenizer._tokenizer.name_or_path = "/models/Seeing-7B"
    return tokenizer


@pytest.mark.parametrize("shown", ["<begin><pad><end>", "<pad>"])
def test_each_image_becomes_its_rows_and_regions_move_with_their_texts(shown: str) -> None:
    tokenizer = seeing(PARTS)
    prompt = render(tokenizer, TALK, image_text=shown_as(shown))
    images = [image for message in TALK for image in message.images]
    token = tokenizer.convert_tokens_to_ids("<pad>")
    assert token not in prompt.ids  # neither that of an image nor the one in the document
    assert prompt.text.count(shown) == len(images) + (shown == "<pad>")
    runs = [[*run] for is_row, run in groupby(prompt.ids, lambda one: one >= FIRST_IMAGE_ROW) if is_row]
    assert runs == [rows_of(image) for image in images]
    found = {"user": "", "assistant": "", "document": ""}
    for region in prompt.regions:
        found[region.kind] += prompt.text[region.start : region.end]
    assert found["document"] == TALK[0].attachments[0].text
    assert found["assistant"] == TALK[1].content
    assert found["user"].replace(shown, "") == TALK[0].content + TALK[2].content


def test_images_are_left_out_for_a_model_that_cannot_see() -> None:
    tokenizer = seeing(PARTS)
    blind = tuple(replace(message, images=()) for message in TALK)
    assert render(tokenizer, TALK).ids == render(tokenizer, blind).ids
    assert render(tokenizer, blind, image_text=shown_as("<pad>")).ids == render(tokenizer, blind).ids


def test_a_template_may_name_images_in_a_conversation_without_any() -> None:
    tokenizer = seeing(f"Images are <image><pad>.{PARTS}")
    prompt = render(tokenizer, [Message("user", "Hi.")], image_text=shown_as("<begin><pad>"))
    assert prompt.text.startswith("Images are <image><pad>.")


TWICE, OTHER = (PARTS.replace("'<image>'", f"'{written}'") for written in ("<image><image>", "<pad>"))


@pytest.mark.parametrize("images", [(ONE,), (ONE, TWO)])
@pytest.mark.parametrize(
    ("template", "shown"),
    [(TEXT_ONLY, "<pad>"), (TWICE, "<pad>"), (OTHER, "<pad>"), (PARTS, "<end>"), (PARTS, "<pad><pad>")],
)
def test_a_template_that_does_not_write_each_image_once_is_refused(
    template: str, shown: str, images: tuple[Image, ...]
) -> None:
    words = "the image" if len(images) == 1 else f"each of the {len(images)} images"
    with pytest.raises(ChatTemplateError, match=f"Seeing 7B does not write {words} of this conversation"):
        render(seeing(template), [Message("user", "See it.", images=images)], image_text=shown_as(shown))


def test_a_tokenizer_without_a_template_writes_no_image() -> None:
    inner = seeing(f"{PARTS}, of this test only")._tokenizer
    inner.chat_template = None
    tokenizer = TokenizerWrapper(inner)
    with pytest.raises(ChatTemplateError, match="this model does not write the image"):
        render(tokenizer, [Message("user", "See it.", images=(ONE,))], image_text=shown_as("<pad>"))
