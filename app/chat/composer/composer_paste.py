"""PasteWeigher: whether a long paste becomes a document beside the message or stays in its text.

More than 2,000 tokens make a document. The worker counts them, if it can at once; an
estimate decides if it is busy or slow. A text that cannot be anything else is not weighed. What
stays in the text goes where the cursor was when it was pasted, also if typing went on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QTextCursor

from app.chat.attachments.token_estimate import estimated_tokens
from app.chat.composer.composer_edit import ComposerEdit

DOCUMENT_TOKENS = 2_000
# No tokenizer in use makes fewer tokens of this.
SURELY_CHARACTERS = 24_000
_PATIENCE_MS = 400

# Ask for the tokens of a text; the answer comes by the callback. False: nobody can count now.
Weigh = Callable[[str, Callable[[int], None]], bool]


class PasteWeigher(QObject):
    """One paste at a time: another one first decides the one before by estimate."""

    def __init__(self, edit: ComposerEdit, attach: Callable[[str], None], parent: QObject | None) -> None:
        super().__init__(parent)
        self._edit = edit
        self._attach = attach
        self._weigh: Weigh | None = None
        self._text = ""
        self._place: QTextCursor | None = None
        self._timer = QTimer(self, interval=_PATIENCE_MS, singleShot=True)
        self._timer.timeout.connect(self._estimate)

    @property
    def busy(self) -> bool:
        """Whether a paste is being weighed."""
        return self._place is not None

    def set_weigh(self, weigh: Weigh | None) -> None:
        """Who counts."""
        self._weigh = weigh

    def take(self, text: str) -> None:
        """Decide about `text`, now or soon."""
        self._estimate()
        self._text, self._place = text, QTextCursor(self._edit.textCursor())
        if len(text) >= SURELY_CHARACTERS:
            self._decide(DOCUMENT_TOKENS + 1)
        elif self._weigh is None or not self._weigh(text, lambda tokens: self._counted(text, tokens)):
            self._estimate()
        elif self.busy:
            self._timer.start()

    def cancel(self) -> None:
        """Forget what is being weighed."""
        self._timer.stop()
        self._text, self._place = "", None

    def _counted(self, text: str, tokens: int) -> None:
        if self.busy and text == self._text:
            self._decide(tokens)

    def _estimate(self) -> None:
        if self.busy:
            self._decide(estimated_tokens(self._text))

    def _decide(self, tokens: int) -> None:
        text, place = self._text, self._place
        self.cancel()
        if tokens > DOCUMENT_TOKENS:
            self._attach(text)
        elif place is not None:
            place.insertText(text)
            self._edit.ensureCursorVisible()
