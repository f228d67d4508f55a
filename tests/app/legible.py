"""Whether all words of a window can be read: none cut short, none beyond the edge, none over another."""

from __future__ import annotations

from itertools import combinations

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QPushButton, QWidget

from app.chat.composer_edit import ComposerEdit
from tests.app.painted import Word, noted_words
from tests.app.stage import not_counted

ELLIPSIS = "…"
_SEPARATORS = " ·"
# Boxes of letters are higher than the letters, and rounded.
_SLACK_PX = 1.5
_OVER_SHARE = 0.35


@not_counted()
def illegible(window: QWidget) -> list[str]:
    """What is wrong with each word of `window` that cannot be read as it stands."""
    with noted_words() as noted:
        window.grab()
    words = [word for word in noted if word.text.strip(_SEPARATORS) and not _covered(word, window)]
    whole = _full_texts(window)
    found = [f"“{word.text}” is cut short" for word in words if _is_cut(word, whole)]
    found += [
        f"“{each.text()}” is cut short" for each in window.findChildren(QPushButton) if _is_squeezed(each)
    ]
    found += [f"“{word.text}” goes over the edge" for word in words if _leaves(word, window)]
    seen = [(word.text, box) for word in words if not (box := _seen(word, window)).isEmpty()]
    found += [
        f"“{one}” and “{other}” lie over one another"
        for (one, box), (other, other_box) in combinations(seen, 2)
        if _overlap(box, other_box)
    ]
    return list(dict.fromkeys(found))


def _covered(word: Word, window: QWidget) -> bool:
    middle = word.area.center().toPoint()
    top, own = window.childAt(middle), word.widget
    if top is None or own is None or top is own:
        return False
    return not (own.isAncestorOf(top) or top.isAncestorOf(own))


def _full_texts(window: QWidget) -> set[str]:
    """What widgets say in full: some of it ends in an ellipsis of its own."""
    texts = {each.text() for kind in (QAbstractButton, QLabel) for each in window.findChildren(kind)}
    texts |= {edit.placeholderText() for edit in window.findChildren(ComposerEdit)}
    for box in window.findChildren(QComboBox):
        texts |= {box.itemText(row) for row in range(box.count())}
    return texts


def _is_squeezed(button: QPushButton) -> bool:
    """Whether Qt cuts the text of a button."""
    return button.isVisible() and bool(button.text()) and button.width() < button.minimumSizeHint().width()


def _is_cut(word: Word, whole: set[str]) -> bool:
    return word.text.endswith(ELLIPSIS) and word.text not in whole


def _leaves(word: Word, window: QWidget) -> bool:
    clip = _clip(word, window)
    if word.area.bottom() < clip.top() or word.area.top() > clip.bottom() or not clip.height():
        return False
    return word.area.left() < clip.left() - _SLACK_PX or word.area.right() > clip.right() + _SLACK_PX


def _seen(word: Word, window: QWidget) -> QRectF:
    return word.area.intersected(_clip(word, window))


def _clip(word: Word, window: QWidget) -> QRectF:
    """Where what it is written on is seen, in the window's coordinates."""
    box, widget = QRect(QPoint(0, 0), window.size()), word.widget
    while widget is not None and widget is not window:
        box = box.intersected(QRect(widget.mapTo(window, QPoint(0, 0)), widget.size()))
        widget = None if widget.isWindow() else widget.parentWidget()
    return QRectF(box)


def _overlap(one: QRectF, other: QRectF) -> bool:
    both = one.intersected(other)
    if both.width() <= 2 or both.height() <= 0:
        return False
    return both.height() > _OVER_SHARE * min(one.height(), other.height())
