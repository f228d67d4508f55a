"""Chips: names that are too long for them, and the sign in place of a missing image."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.chat.attachment_chip import AttachmentChip
from app.chat.image_chip import draw_picture
from app.controls.text_label import TextLabel
from core.events import Attachment
from tests.app.chat.watching import colour

MIDDLE, END = Qt.TextElideMode.ElideMiddle, Qt.TextElideMode.ElideRight


def text_of(label: QWidget) -> QImage:
    """What the label paints itself."""
    image = QImage(label.size(), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    label.render(image, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    return image


@pytest.mark.parametrize(
    ("name", "elide"),
    [
        ("Reports of the harbour master, December.pdf", MIDDLE),
        ("The first words of a text that was pasted and cut…", END),
    ],
)
def test_a_long_name_keeps_its_ending_unless_it_was_cut(
    qtbot: QtBot, name: str, elide: Qt.TextElideMode
) -> None:
    chip = AttachmentChip(Attachment(name, "words"), lambda chip: None)
    qtbot.addWidget(chip)
    chip.resize(190, chip.sizeHint().height())
    chip.show()
    painted = {}
    for each in (MIDDLE, END):
        label = TextLabel(name, 12.5, 16, "text", weight=500, elide=each)
        qtbot.addWidget(label)
        label.resize(chip.labels[0].size())
        painted[each] = text_of(label)
    assert painted[MIDDLE] != painted[END]
    assert text_of(chip.labels[0]) == painted[elide]


@pytest.mark.parametrize("area", [QRectF(0, 0, 34, 34), QRectF(3, 5, 80, 40)])
def test_the_sign_of_a_missing_image_is_in_its_middle(qtbot: QtBot, area: QRectF) -> None:
    image = QImage(100, 60, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    with QPainter(image) as painter:
        draw_picture(painter, area, None, 1.0, 0)
    sign = [
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).name() == colour("danger")
    ]
    for side, middle in enumerate((area.center().x(), area.center().y())):
        places = [each[side] for each in sign]
        assert abs((min(places) + max(places) + 1) / 2 - middle) <= 1
