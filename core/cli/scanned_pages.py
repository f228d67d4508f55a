"""Draws document pages without text as images, for `draftlight generate` with a model that accepts images."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import groupby

from msgspec.structs import replace

from core.documents.client import PageReading
from core.documents.page_choice import LARGEST_PX, most_pages, nearest_pages
from core.documents.strings import page_image, pages_read
from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Generate, Image
from core.serve.images import ImageFiles
from core.system.terminal import ProgressLine


def with_pages(engine: Engine, request: Generate, after: ExitStack, line: ProgressLine) -> Generate:
    """`request` with images of the pages most relevant to its question; `after` erases their files at its
    end. Prints their numbers, and those of pages that cannot be drawn. Raises `RequestError`.
    """
    context_tokens = request.settings.prefill.context_of(engine.loaded.info.context_tokens)
    page_tokens, _ = engine.count_image(Image("", "", "", *LARGEST_PX))
    most = most_pages(context_tokens, engine.count_prompt(request)[0], page_tokens)
    files = ImageFiles()
    after.enter_context(files)
    found: list[Image] = []
    for document, pages in groupby(nearest_pages(request.messages, most), key=lambda page: page.of):
        assert document.scans
        numbers = [page.number for page in pages]
        line.say(pages_read(document.name, numbers))
        read = []
        for number, drawn in PageReading(document.scans, name=document.name).images(numbers):
            if isinstance(drawn, RequestError):
                line.clear()
                print(drawn.message, file=sys.stderr)
                continue
            path = files.write(f"page-{len(found)}.jpg", drawn.data).path
            name = page_image(document.name, number)
            size = drawn.width, drawn.height
            found.append(Image(name, str(path), drawn.hash, *size, scan=document.scans.hash, page=number))
            read.append(number)
        line.clear()
        if read:
            print(pages_read(document.name, read), file=sys.stderr)
    last = request.messages[-1]
    last = replace(last, images=(*found, *last.images))
    return replace(request, messages=(*request.messages[:-1], last))
