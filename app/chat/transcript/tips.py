"""Tips: when the token tooltip opens, where it stays, and when it goes.

It opens after a moment's rest, follows the pointer at once while it is open, and moves with the
text when that is scrolled.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint, QRect, QTimer
from PySide6.QtWidgets import QAbstractScrollArea

from app.chat.answer.answer import AnswerView
from app.chat.tokens.token_tip import TokenTip
from app.theme.theme import Theme

_DELAY_MS = 150
_MARGIN_PX = 8


class Tips(QObject):
    """The one tooltip of a transcript, `area`."""

    def __init__(self, theme: Theme, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._pointed: tuple[AnswerView, int, QRect] | None = None
        self.tip = TokenTip(theme, area)
        self._timer = QTimer(self, interval=_DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._show)

    def point(self, answer: AnswerView, token: int, target: QRect) -> None:
        """Token number `token` of `answer` is pointed at, and stands at `target` in it; −1: none."""
        if token < 0:
            self.drop()
            return
        self._pointed = (answer, token, target)
        # Where a click would go is said before there can be a click.
        if self.tip.isVisible() or answer.body.link_of(token):
            self._show()
        else:
            self._timer.start()

    def keep(self) -> None:
        """The text moved under the open tooltip: it moves along."""
        if self.tip.isVisible():
            self._show()

    def drop(self) -> None:
        """Nothing is pointed at."""
        self._pointed = None
        self._timer.stop()
        self.tip.hide()

    def forget(self, answer: AnswerView) -> None:
        """`answer` goes away."""
        if self._pointed and self._pointed[0] is answer:
            self.drop()

    def _show(self) -> None:
        if self._pointed is None:
            return
        answer, token, target = self._pointed
        seen = self._area.viewport().geometry()
        target = target.translated(answer.mapTo(self._area, QPoint(0, 0)))
        if not seen.intersects(target):
            self.drop()
            return
        inside = seen.adjusted(_MARGIN_PX, _MARGIN_PX, -_MARGIN_PX, -_MARGIN_PX)
        self.tip.show_facts(answer.facts(token), target, inside)
