"""ScannedPages: adds images of document pages without text to a question for a vision model.

The pages are chosen when a question is sent (`core.documents.page_choice`), drawn by processes that a thread
waits for, and kept like attached images. Pages that cannot be drawn are reported, and the engine's changes
name the pages that were not read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal

from app.controllers import strings
from app.controllers.app import App
from app.session.chats.conversation import uncounted
from app.session.images import ImageArchive, Stoppable
from core.documents.client import PageReading
from core.documents.page_choice import (
    LARGEST_PX,
    MOST_PAGES,
    Page,
    key_of,
    most_pages,
    nearest_pages,
    scanned,
)
from core.errors import RequestError, WorkerError, reason_of
from core.events import CountTokens, Generate, Image, Message, TokenCount
from core.settings import Settings
from core.system.reader_process import StoppedError
from core.worker.client import CommandError

_LOG = logging.getLogger("draftlight.window")
Key = tuple[str, int]


class _Drawing:
    """Pages that are drawn for `question`. `after` is called at the end, with whether it was not stopped."""

    def __init__(self, question: Message, after: Callable[[bool], object]) -> None:
        self.question = question
        self.after = [after]
        self.most = MOST_PAGES
        self.images: dict[Key, Image] = {}
        self.problems: list[str] = []
        self.thread: threading.Thread | None = None
        self._reading: Stoppable | None = None
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._reading:
            self._reading.stop()

    def run(self, pages: Sequence[Page], archive: ImageArchive) -> None:
        """Draw and keep `pages`. On a thread."""
        for document, group in groupby(pages, key=lambda page: page.of):
            assert document.scans
            try:
                self._started(reading := PageReading(document.scans, name=document.name))
                for page, drawn in reading.images([page.number for page in group]):
                    if isinstance(drawn, RequestError):
                        self.problems.append(drawn.message)
                        continue
                    key = (document.scans.hash, page)
                    kept = archive.keep(drawn.data, Page(document, page).name, self._started)
                    self._started(reading)
                    self.images[key] = replace(kept, scan=key[0], page=key[1])
            except StoppedError:
                return
            except RequestError as error:
                self.problems.append(error.message)
            except Exception as error:  # otherwise our bug would let the question wait forever
                _LOG.exception("Drawing pages of %s failed", document.name)
                self.problems.append(strings.pages_undrawn(document.name, reason_of(error)))

    def _started(self, reading: Stoppable) -> None:
        self._reading = reading
        if self._stopped:
            reading.stop()


class ScannedPages(QObject):
    """Window's thread. Call `close` at the end."""

    _ended = Signal(object)  # a `_Drawing`

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._known: dict[Key, Image] = {}  # drawn in this run
        self._drawing: _Drawing | None = None
        self._tried: _Drawing | None = None  # the last one, until its question is sent
        self._ended.connect(self._end)

    @property
    def busy(self) -> bool:
        """Whether pages are drawn for a question."""
        return self._drawing is not None

    def complete(
        self,
        before: Sequence[Message],
        message: Message,
        settings: Settings,
        after: Callable[[bool], object] | None,
    ) -> Message | None:
        """`message`, which follows `before`, with the pages that it is to have.

        None if some have to be drawn: that is begun, and `after` is called at the end, with whether it was
        not stopped; then another call returns the message. Without `after` nothing is begun. For a model that
        does not see, the message has no pages.
        """
        others = tuple(image for image in message.images if not image.page)
        question, info = replace(message, images=others), self._app.link.info
        messages = (*before, question)
        if info is None or not info.sees or not scanned(messages):
            return question
        known = self._known | {key_of(image): image for image in message.images if image.page}
        kept = {key: image for key, image in known.items() if self._archive.is_kept(image.hash)}
        tried = self._tried if self._tried and self._tried.question == uncounted(question) else None
        pages = nearest_pages(messages, tried.most if tried else MOST_PAGES)
        missing = [page for page in pages if page.key not in kept]
        if not missing or tried:
            self._tried = None if after else self._tried
            found = [replace(kept[page.key], name=page.name) for page in pages if page.key in kept]
            return replace(question, images=(*found, *others))
        if after and self._drawing:
            self._drawing.after.append(after)
        elif after:
            self._drawing = drawing = _Drawing(uncounted(question), after)
            notice = self._app.views.notice_bar
            notice.show_notice(strings.DRAWING_PAGES, strings.CANCEL_DRAWING, self.stop)
            self._app.worker.begin(self._draw(drawing, messages, settings, frozenset(kept)))
        return None

    def stop(self) -> None:
        """Stop the drawing; its question is not sent."""
        drawing, self._drawing = self._drawing, None
        if drawing:
            drawing.stop()
            self._clear_notice()
            for after in drawing.after:
                after(False)

    def close(self) -> None:
        """Stop the drawing and wait for its thread."""
        drawing, self._drawing = self._drawing, None
        if drawing:
            drawing.stop()
            if drawing.thread:
                drawing.thread.join()

    # ---- inside

    @property
    def _archive(self) -> ImageArchive:
        archive: ImageArchive = self._app.home.library.images
        return archive

    async def _draw(
        self, drawing: _Drawing, messages: Sequence[Message], settings: Settings, kept: frozenset[Key]
    ) -> None:
        """Ask the worker how many pages the context holds, and start the thread that draws them."""
        ask, info = self._app.worker.ask, self._app.link.info
        try:
            largest = CountTokens("", image=Image("", "", "", *LARGEST_PX))
            page_tokens = (await ask(largest, TokenCount)).tokens
            prompt = CountTokens("", prompt=Generate("", tuple(messages), settings))
            prompt_tokens = (await ask(prompt, TokenCount)).tokens
            context = settings.prefill.context_of(info.context_tokens if info else 0)
            drawing.most = most_pages(context, prompt_tokens, page_tokens)
        except CommandError:
            drawing.most = 0  # the answer will fail for the same reason, and say so
        except WorkerError:
            if self._drawing is drawing:
                self.stop()
            return
        pages = [page for page in nearest_pages(messages, drawing.most) if page.key not in kept]
        if self._drawing is not drawing:
            return

        def run() -> None:
            drawing.run(pages, self._archive)
            with suppress(RuntimeError):  # the window was deleted
                self._ended.emit(drawing)

        drawing.thread = threading.Thread(target=run, name="draw pages", daemon=True)
        drawing.thread.start()

    def _end(self, drawing: _Drawing) -> None:
        self._known |= drawing.images
        if drawing is not self._drawing:  # stopped
            return
        self._drawing, self._tried = None, drawing
        self._clear_notice()
        if drawing.problems:
            self._app.views.notice_bar.show_notice(" ".join(drawing.problems), kind="warning")
        for after in drawing.after:
            after(True)

    def _clear_notice(self) -> None:
        if self._app.views.notice_bar.text == strings.DRAWING_PAGES:
            self._app.views.notice_bar.clear()
