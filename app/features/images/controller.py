"""ImagesController: whether the loaded model sees the images of the open chat and of the draft.

An image is never left out unnoticed: while a model that cannot see is loaded, nothing with an image is sent,
the draft's images say so and offer models that see, and a notice says what the answers of a chat go without.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.chat.composer_tools import NoticeAction
from app.chat.image_files import ImageFiles
from app.chat.intents import Intent, OpenImage, OpenResultImage
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

    viewer_requested = Signal(object, int)  # the images of a message, and the number of the one to show

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
        app.views.transcript.images = self.files
        self.files.failed.connect(lambda error: app.trouble.show_request_error(error, "attach"))
        for view in (app.views.composer, app.views.transcript):
            view.intent.connect(self._on_intent)
        app.views.composer.chips.changed.connect(self.refresh)
        models.changed.connect(self.refresh)
        page.chat_shown.connect(self.refresh)

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
        """Models that see: installed ones that fit, else suggested ones; and the progress of a download."""
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
        """Say once, for each chat and model, what becomes of the images that were sent before."""
        chat, notice = self._app.chats.open, self._app.views.notice_bar
        count = sum(len(turn.user.images) for turn in chat.turns)
        if info is None:
            return
        said = (chat.id, "" if info.sees or not count else info.reference or info.name)
        if said != self._said:
            self._said = said
            if said[1]:
                notice.show_notice(strings.left_out(info.name, count))

    def _on_intent(self, intent: Intent) -> None:
        if isinstance(intent, OpenImage):
            images = self._images_of(intent.turn_id)
        elif isinstance(intent, OpenResultImage):
            images = self._images_of_call(intent.turn_id, intent.call_id)
        else:
            return
        if intent.index < len(images):
            self.viewer_requested.emit(images, intent.index)

    def _images_of_call(self, turn_id: str, call_id: str) -> tuple[Image, ...]:
        chat = self._app.chats.open
        calls = chat.turn(turn_id).answer.calls if chat.has(turn_id) else ()
        return next((call.images for call in calls if call.id == call_id), ())

    def _images_of(self, turn_id: str) -> tuple[Image, ...]:
        if not turn_id:
            return self._app.views.composer.images
        chat = self._app.chats.open
        return chat.turn(turn_id).user.images if chat.has(turn_id) else ()
