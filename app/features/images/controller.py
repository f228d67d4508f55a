"""ImagesController: whether the loaded model sees the images of the open chat and of the draft.

An image is never left out unnoticed: while a model that cannot see is loaded, nothing with an image is sent,
the draft's images say so and offer models that see, and a notice says what the answers of a chat go without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.chat.composer_tools import NoticeAction
from app.chat.image_files import ImageFiles
from app.chat.intents import Intent, OpenImage
from app.chat.transcript import Transcript
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.features.images import strings
from app.features.models import strings as models_strings
from app.features.models.controller import ModelsController
from app.features.models.facts import fit_facts
from app.session.status import why_unseen
from core.events import Image, ModelEntry, ModelInfo

_CONTEXT_TOKENS = 8192
_OFFERED = 2


class ImagesController(QObject):
    """`files` are those of all images. Call `close` at the end."""

    viewer_requested = Signal(object, int, object)  # images of a message, the index of one, and their files

    def __init__(
        self, app: App, page: ChatPage, models: ModelsController, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._models = models
        self._said = ("", "")  # chat and model of the last notice about images that are left out
        archive = app.home.library.images
        self.files = ImageFiles(archive, self)
        app.views.composer.chips.archive = archive
        self.files.failed.connect(lambda error: app.trouble.show_request_error(error, "attach"))
        app.views.composer.intent.connect(self._on_intent)
        self.show_in(app.views.transcript)
        app.views.document.pages.files = self.files
        app.views.document.page_opened.connect(self._open)
        app.views.composer.chips.changed.connect(self.refresh)
        models.changed.connect(self.refresh)
        page.chat_shown.connect(self.refresh)

    def show_in(self, transcript: Transcript) -> None:
        """Show images of chats in a transcript, and open those that are clicked."""
        transcript.images = self.files
        transcript.intent.connect(self._on_intent)

    def refresh(self) -> None:
        """Show what the loaded model does not see."""
        info, composer = self._app.link.info, self._app.views.composer
        composer.set_sees(info is None or info.sees)
        self._say_left_out(info)
        why = why_unseen(info, composer.draft)
        if not why:
            composer.show_eyes("")
            return
        if not self._models.state.listed:
            self._models.refresh()
        offers, progress = self._offers()
        composer.show_eyes(why, offers, progress)

    def close(self) -> None:
        self.files.close()

    # ---- inside

    def _offers(self) -> tuple[list[NoticeAction], str]:
        """Vision models: installed ones that fit, else suggested ones; and the progress of a download."""
        state = self._models.state
        installed = [each for each in state.models if each.sees and not each.problem and self._fits(each)]
        if installed:
            return [(strings.load(each.name), self._loader(each)) for each in installed[:_OFFERED]], ""
        suggested = [each for each in state.suggested if each.sees and self._fits(each)]
        for each in suggested:
            told = state.download(each.reference)
            if told and told.state == "running":
                percent = round(100 * told.done_bytes / told.total_bytes) if told.total_bytes else 0
                return [], strings.downloading(each.name, percent)
        return [
            (strings.download(each.name, models_strings.size(each.disk_bytes)), self._fetcher(each))
            for each in suggested[:1]
        ], ""

    def _fits(self, entry: ModelEntry) -> bool:
        facts = fit_facts(entry, _CONTEXT_TOKENS, self._models.state.limit_bytes)
        return facts is None or facts.fit != "too-large"

    def _loader(self, entry: ModelEntry) -> Callable[[], object]:
        return lambda: self._models.load_next(entry.reference)

    def _fetcher(self, entry: ModelEntry) -> Callable[[], object]:
        return lambda: self._models.fetch(entry.reference)

    def _say_left_out(self, info: ModelInfo | None) -> None:
        """Notify once, for each chat and model, that earlier images are left out."""
        chat, notice = self._app.chats.open, self._app.views.notice_bar
        sent = [turn.user.images for turn in chat.turns]
        sent += [call.images for turn in chat.turns for call in turn.answer.calls if not call.is_left_out]
        count = sum(map(len, sent))
        if info is None:
            return
        said = (chat.id, "" if info.sees or not count else info.reference or info.name)
        if said != self._said:
            self._said = said
            if said[1]:
                notice.show_notice(strings.left_out(info.name, count), kind="warning")

    def _on_intent(self, intent: Intent) -> None:
        if isinstance(intent, OpenImage):
            self._open(intent.images, intent.index)

    def _open(self, images: Sequence[Image], index: int) -> None:
        self.viewer_requested.emit(images, index, self.files)
