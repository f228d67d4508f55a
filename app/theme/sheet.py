"""The application's style sheet, made from the palette and the zoom.

In the template, `@name` is a colour of the palette, `@name/40` that colour at 40% opacity, `12dp` a length of
12 design pixels, and `12dp-2` that length less 2 screen pixels, the width of a border. Widgets select rules
by dynamic properties: `kind`, `small`, `ground`, `edge`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from PySide6.QtCore import QDir, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.theme.measures import measure

_DRAWINGS = Path(__file__).resolve().parents[2] / "resources" / "icons" / "controls"

_TEMPLATE: Final = """
*[ground="window"] { background: @window; }
*[ground="panel"] { background: @panel; }
*[ground="sidebar"] { background: @sidebar; }
*[ground="raised"] { background: @raised; }
*[ground="popover"] { background: @tip; border: 1px solid @hair2; }
*[ground="text_area"] { background: @text_area; }
*[ground="hair"] { background: @hair; }
*[ground="fill2"] { background: @fill2; border-radius: 4dp; }
*[ground="tile"] { background: @accent_tint; border-radius: 7dp; }
*[ground="series_blue"] { background: @series_blue; border-radius: 2dp; }
*[ground="series_sky"] { background: @series_sky; border-radius: 2dp; }
*[ground="series_purple"] { background: @series_purple; border-radius: 2dp; }
*[ground="series_grey"] { background: @series_grey; border-radius: 2dp; }
*[ground="quiet"] { background: @fill1; }
*[ground="prompt"] { background: @fill1; border-radius: 10dp; }
*[ground="card"] { background: @raised; border: 1px solid @hair2; border-radius: 12dp; }
*[ground="bar"] { background: @fill1; border-radius: 9dp; margin-bottom: 4dp; }
*[ground="accent"] { background: @accent_tint; border-radius: 9dp; margin-bottom: 4dp; }
*[ground="danger"] { background: @danger_tint; border: 1px solid @danger_border; border-radius: 9dp; }
*[ground="banner"] { background: @danger_tint; border: 1px solid @danger_border; border-radius: 11dp;
    margin-top: 12dp; }
*[ground="bad"] { background: @danger_tint; border-bottom: 1px solid @danger_border; }
*[ground="field"] { background: @raised; border: 1px solid @hair2; border-radius: 14dp; }
*[ground="field-focus"] { background: @raised; border: 1px solid @accent_mid; border-radius: 14dp; }
*[ground="field-drop"] { background: @accent_tint; border: 2px dashed @accent; border-radius: 14dp; }
*[edge~="left"] { border-left: 1px solid @hair; }
*[edge~="right"] { border-right: 1px solid @hair; }
*[edge~="top"] { border-top: 1px solid @hair; }
*[edge~="bottom"] { border-bottom: 1px solid @hair; }
*[dot] { background: @series_blue; border-radius: 4dp; }
*[dot="own"] { background: @accent; }
*[dot="bad"] { background: @series_vermilion; }
*[dot="idle"] { background: @normal_mark; }
QMenuBar { background: @window; color: @text; border-bottom: 1px solid @hair; }
QMenuBar::item { background: transparent; padding: 3dp 8dp; border-radius: 5dp; }
QMenuBar::item:selected { background: @fill2; }
QMessageBox QLabel { color: @text2; font-size: 12dp; }
QMessageBox #qt_msgbox_label { color: @text; font-size: 15dp; font-weight: 600; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
TokenTip { background: @tip; color: @text; border: 1px solid @hair2; border-radius: 10dp;
    padding: 9dp 12dp; }
QToolTip { background: @tip; color: @text; border: 1px solid @hair2; padding: 2dp 4dp; }

QPushButton { background: @control; color: @text; border: 1px solid @control_border; border-radius: 7dp;
    padding: 0 13dp-1; min-height: 28dp-2; font-size: 13dp; font-weight: 500; icon-size: 14dp;
    outline: none; }
QPushButton:hover { background: @fill1; }
QPushButton:pressed { background: @fill2; }
QPushButton:disabled { background: @control; color: @text3; }
QPushButton:focus { border: 2px solid @focus; padding: 0 13dp-2; min-height: 28dp-4; }
QPushButton[small="true"] { border-radius: 6dp; padding: 0 11dp-1; min-height: 24dp-2; font-size: 12dp; }
QPushButton[small="true"]:focus { padding: 0 11dp-2; min-height: 24dp-4; }
QPushButton[kind="primary"], QPushButton:default { background: @accent_fill; color: @on_accent;
    border-color: @accent_fill; }
QPushButton[kind="primary"]:hover { background: @accent_hover; border-color: @accent_hover; }
QPushButton[kind="primary"]:pressed { background: @accent_pressed; border-color: @accent_pressed; }
QPushButton[kind="primary"]:disabled { background: @fill2; color: @text3; border-color: @fill2; }
QPushButton[kind="primary"]:focus { border-color: @text; }
QPushButton[kind="danger"] { color: @danger; }
QPushButton[kind="danger"]:disabled { color: @text3; }
QPushButton[kind="link"] { background: transparent; color: @accent; border-color: transparent;
    padding: 0 7dp-1; }
QPushButton[kind="link"]:hover { background: @fill1; }
QPushButton[kind="link"]:pressed { background: @accent_tint; }
QPushButton[kind="link"]:disabled { color: @text3; }
QPushButton[kind="link"]:focus { border-color: @focus; padding: 0 7dp-2; }
QPushButton[flush="true"], QPushButton[flush="true"]:focus { padding-left: 0; }
QPushButton[kind="icon"] { background: transparent; border: 2px solid transparent; border-radius: 6dp;
    padding: 0; min-height: 0; icon-size: 16dp; }
QPushButton[kind="icon"]:hover { background: @fill2/70; }
QPushButton[kind="icon"]:pressed, QPushButton[kind="icon"]:checked { background: @fill2; }
QPushButton[kind="icon"]:disabled { background: transparent; }
QPushButton[kind="icon"]:focus { border-color: @focus; padding: 0; min-height: 0; }
QPushButton[kind="send"] { background: @accent_fill; border: 2px solid transparent; border-radius: 14dp;
    padding: 0; min-width: 28dp-4; max-width: 28dp-4; min-height: 28dp-4; max-height: 28dp-4;
    icon-size: 16dp; }
QPushButton[kind="send"]:hover { background: @accent_hover; }
QPushButton[kind="send"]:pressed { background: @accent_pressed; }
QPushButton[kind="send"]:disabled { background: @fill2; }
QPushButton[kind="send"]:focus { border-color: @text; padding: 0; }
QPushButton[kind="floating"] { background: @raised; border: 1px solid @hair2; border-radius: 13dp; padding: 0;
    min-height: 0; icon-size: 16dp; }
QPushButton[kind="floating"]:hover { background: @fill1; }
QPushButton[kind="floating"]:pressed { background: @fill2; }
QPushButton[kind="floating"]:focus { border: 2px solid @focus; padding: 0; min-height: 0; }
QPushButton[kind="quiet"] { background: transparent; color: @text2; border-color: transparent;
    border-radius: 5dp; padding: 0 6dp-1; min-height: 22dp-2; font-weight: 400; icon-size: 16dp; }
QPushButton[kind="quiet"][live="true"] { color: @accent; }
QPushButton[kind="quiet"][bad="true"] { color: @danger; }
QPushButton[kind="quiet"]:hover, QPushButton[kind="quiet"]:pressed { background: @fill2; color: @text; }
QPushButton[kind="quiet"]:focus { border-color: @focus; padding: 0 6dp-2; min-height: 22dp-4; }
QPushButton[kind="title"] { background: transparent; border: 2px solid transparent; padding: 0;
    min-height: 0; }
QPushButton[kind="title"]:hover { background: @fill1; }
QPushButton[kind="title"]:pressed { background: @fill2; }
QPushButton[kind="title"]:focus { border-color: @focus; }
QPushButton[kind="section"] { background: transparent; border: 2px solid transparent; border-radius: 6dp;
    margin: 0 8dp; padding: 0 0 0 3dp; min-height: 38dp-4; text-align: left; font-weight: 600; }
QPushButton[kind="section"]:focus { border-color: @focus; padding: 0 0 0 3dp; min-height: 38dp-4; }
QPushButton[kind="segment"] { background: transparent; border: 2px solid transparent; border-radius: 5dp;
    padding: 0 8dp; min-height: 20dp-4; font-size: 12dp; font-weight: 400; }
QPushButton[kind="segment"]:checked { background: @segment_on; }
QPushButton[kind="segment"]:focus { border-color: @focus; padding: 0 8dp; min-height: 20dp-4; }
QPushButton[kind="card"] { background: @raised; border: 1px solid @hair; border-radius: 12dp; }
QPushButton[kind="card"]:hover { background: @fill1; }
QPushButton[kind="card"]:pressed { background: @fill2; }
QPushButton[kind="card"]:focus { border: 2px solid @focus; }
Segment { background: @segment_track; border-radius: 6dp; }

QComboBox, QAbstractSpinBox { background: @control; color: @text; border: 1px solid @control_border;
    border-radius: 6dp; min-height: 24dp-2; font-size: 12dp; }
QComboBox { padding: 0 0 0 10dp-1; }
QComboBox:disabled, QAbstractSpinBox:disabled { color: @text3; }
QComboBox:focus, QAbstractSpinBox:focus { border: 2px solid @focus; min-height: 24dp-4; }
QComboBox:focus { padding: 0 0 0 10dp-2; }
QComboBox::drop-down { border: none; width: 22dp; }
QComboBox::down-arrow { image: url(drawings:arrows-@scheme.svg); width: 14dp; height: 14dp; }
QComboBox QAbstractItemView { background: @tip; color: @text; border: 1px solid @hair2; padding: 3dp;
    outline: 0; }
QComboBox QAbstractItemView::item { min-height: 26dp; padding: 0 8dp; border-radius: 5dp; }
QComboBox QAbstractItemView::item:selected { background: @accent_fill; color: @on_accent; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: none; background: transparent;
    width: 18dp; subcontrol-origin: border; }
QAbstractSpinBox::up-button { subcontrol-position: top right; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; }
QAbstractSpinBox::up-arrow { image: url(drawings:up-@scheme.svg); width: 12dp; height: 12dp; }
QAbstractSpinBox::down-arrow { image: url(drawings:down-@scheme.svg); width: 12dp; height: 12dp; }

QCheckBox { color: @text; spacing: 9dp; }
QCheckBox:disabled { color: @text3; }
QCheckBox::indicator { width: 16dp-2; height: 16dp-2; border: 1px solid @text3; border-radius: 4dp;
    background: @control; }
QCheckBox::indicator:checked { background: @accent_fill; border-color: @accent_fill;
    image: url(drawings:tick.svg); }
QCheckBox::indicator:checked:disabled { background: @text3; border-color: @text3; }
DraftChoice::indicator { border-radius: 8dp; }
QCheckBox::indicator:focus { border: 2px solid @focus; width: 16dp-4; height: 16dp-4; }
Switch::indicator { width: 32dp; height: 18dp; border: none; border-radius: 9dp; background: @fill2;
    image: url(drawings:switch-off.svg); }
Switch::indicator:checked { background: @accent_fill; image: url(drawings:switch-on.svg); }
Switch::indicator:checked:disabled { background: @accent_fill/45; }
Switch::indicator:focus { border: 2px solid @text; width: 32dp-4; height: 18dp-4; }

QSlider { min-height: 18dp; }
QSlider::groove { height: 4dp; border-radius: 2dp; background: @slider_track; }
QSlider::sub-page { border-radius: 2dp; background: @accent_fill; }
QSlider::sub-page:disabled { background: @text3; }
QSlider::handle { width: 16dp-2; height: 16dp-2; margin: -6dp 0; border: 1px solid @text3;
    border-radius: 8dp; background: #FFFFFF; }
QSlider::handle:focus { border: 2px solid @focus; width: 16dp-4; height: 16dp-4; }
QSlider::handle:disabled { background: @fill1; }

QProgressBar { background: @fill2; border: none; border-radius: 3dp; }
QProgressBar::chunk { background: @accent_fill; border-radius: 3dp; }

QLineEdit { background: @text_area; color: @text; border: 1px solid @control_border; border-radius: 6dp;
    padding: 0 8dp-1; min-height: 28dp-2; }
QLineEdit:focus { border: 2px solid @focus; padding: 0 8dp-2; min-height: 28dp-4; }
QLineEdit[kind="bare"], QAbstractSpinBox QLineEdit { background: transparent; border: none; padding: 0;
    min-height: 0; }
QLineEdit[kind="editor"] { background: @control; border: 1px solid @focus; border-radius: 4dp; padding: 0;
    min-height: 0; }
SearchField { background: @sel; border-color: transparent; }
TextArea { background: @text_area; color: @text; border: 1px solid @control_border; border-radius: 6dp;
    padding: 8dp-1 10dp-1; }
TextArea:focus { border: 2px solid @focus; padding: 8dp-2 10dp-2; }
DocumentView { color: @text; border: 2px solid transparent; }
DocumentView[dim="true"] { color: @dim; }
DocumentView[ringed="true"]:focus { border-color: @focus; }

QListWidget { color: @text; padding-top: 8dp; outline: 0; }
QListWidget::item { padding: 6dp 16dp; }
QListWidget::item:selected { background: @sel; color: @text; }
RecordTable { background: transparent; outline: 0; show-decoration-selected: 1; }
RecordTable::item { border: none; border-bottom: 1px solid @hair; }
RecordTable::item:first { margin-left: 8dp; }
RecordTable::item:last { margin-right: 8dp; }
RecordTable::item:only-one { margin-left: 8dp; margin-right: 8dp; }
RecordTable::item:hover:only-one, RecordTable::item:selected:only-one { border-radius: 8dp; }
RecordTable::item:hover { background: @sel/45; }
RecordTable::item:selected { background: @sel; border-bottom-color: @sel; }
RecordTable::item:hover:first, RecordTable::item:selected:first { border-top-left-radius: 8dp;
    border-bottom-left-radius: 8dp; }
RecordTable::item:hover:last, RecordTable::item:selected:last { border-top-right-radius: 8dp;
    border-bottom-right-radius: 8dp; }
RecordTable QHeaderView { background: transparent; border: none; }
RecordTable QHeaderView::section { background: transparent; color: @text2; border: none;
    border-bottom: 1px solid @hair; height: 28dp-1; padding: 0 8dp; font-size: 11dp; }
RecordTable QHeaderView::section:first { padding-left: 20dp; }
RecordTable QHeaderView::section:last { padding-right: 20dp; }
RecordTable QHeaderView::section:only-one { padding-left: 20dp; padding-right: 20dp; }
QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: 8dp; }
QScrollBar:horizontal { height: 8dp; }
QScrollBar::handle { background: @text3/45; border-radius: 2dp; margin: 2dp; }
QScrollBar::handle:vertical { min-height: 28dp; }
QScrollBar::handle:horizontal { min-width: 28dp; }
QScrollBar::handle:hover, QScrollBar::handle:pressed { background: @text3/85; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
"""


def style_sheet(palette: object, zoom: float, scheme: str) -> str:
    """Returns the style sheet. `palette` has "#RRGGBB" as attributes; `scheme` is `light` or `dark`."""
    QDir.setSearchPaths("drawings", [str(_DRAWINGS)])

    def colour(found: re.Match[str]) -> str:
        value: str = getattr(palette, found[1])
        if not found[2]:
            return value
        shade = QColor(value)
        return f"rgba({shade.red()}, {shade.green()}, {shade.blue()}, {found[2]}%)"

    sheet = re.sub(r"@([a-z]+(?:_[a-z]+|\d)*)(?:/(\d+))?", colour, _TEMPLATE.replace("@scheme", scheme))
    # A radius over half the height would be ignored, so radii are rounded down.
    sheet = re.sub(r"radius: (\d+)dp", lambda found: f"radius: {int(int(found[1]) * zoom)}px", sheet)
    return re.sub(
        r"\b(\d+)dp(?:-(\d))?", lambda found: f"{round(int(found[1]) * zoom) - int(found[2] or 0)}px", sheet
    )


def set_ground(widget: QWidget, ground: str, edge: str = "") -> None:
    """Gives a widget a background of the style sheet, and hairlines at the edges named in `edge`."""
    if (ground, edge) == (widget.property("ground"), widget.property("edge")):
        return
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    widget.setProperty("ground", ground)
    widget.setProperty("edge", edge)
    restyle(widget)


def restyle(widget: QWidget) -> None:
    """Applies the style sheet again after a change of a property."""
    # Qt applies it when the widget is first shown. Doing it loses the font, which is a measure.
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    measure(widget)
