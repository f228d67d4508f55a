"""LabWindow: the plan of a sweep at the left, its results at the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.controls.buttons import Button
from app.controls.choices import CheckBox, Popup, Switch
from app.controls.numbers import Spin
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.lab import strings
from app.features.lab.board import DifferenceWindow, ParityBoard
from app.features.lab.charts import KeepChart, SpeedChart, places_chart, turns_chart
from app.features.side_window import Hairline, ProgressBar, SideWindow
from app.session.lab import Lab, LabStage, SweepPlan, places, turns
from app.store.lab_files import PromptClass
from app.theme.measures import STRETCH, add_gap, column_of, lay_beside, row_of, set_fixed_width, set_strut
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, height_of, painter_on, width_of
from core.events.sweep import SweepResults
from core.settings.declaration import find

START_SIZE = QSize(1440, 900)
MINIMUM_SIZE = QSize(1040, 660)
# In a narrower window the charts are below one another.
_CHOICES_PX = 256
_BESIDE_FROM_PX = _CHOICES_PX + 1052


class LabWindow(SideWindow):
    """`show_lab` after each change of the state."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, strings.TITLE, START_SIZE, MINIMUM_SIZE)
        self._shown: tuple[SweepResults | None, bool] = (None, False)
        self.choices = LabChoices(theme)
        self.past = Popup(theme, [("", strings.NOW)])
        self.past.setAccessibleName(strings.PAST)
        set_fixed_width(self.past, 170)
        self.open_button = Button(theme, strings.OPEN, small=True)
        self.export_button = Button(theme, strings.EXPORT, small=True, icon_name="export")
        self.speed = SpeedChart(theme)
        self.parity = ParityBoard(theme)
        self.differ = TextLabel(theme, "", 12, 16, "text", wrap=True)
        self.show_button = Button(theme, strings.SHOW_THEM, "link", small=True)
        self.places = places_chart(theme)
        self.turns = turns_chart(theme)
        self.keeps = KeepChart(theme)
        self._lay_out()
        self.past_chosen = self.past.value_changed  # the file of an earlier sweep
        self.parity.mark_opened.connect(self.open_difference)
        self.show_button.clicked.connect(lambda: self.open_difference(0))
        theme.zoomed.connect(self._arrange)
        self._show_results(None, False)

    def show_lab(self, lab: Lab) -> None:
        """Shows the sweep and its results."""
        self.choices.show_lab(lab)
        shown = (lab.results, lab.stage is not LabStage.IDLE)
        if shown != self._shown:
            self._shown = shown
            self._show_results(*shown)

    def show_past(self, files: Sequence[tuple[str, str]], chosen: str) -> None:
        """Shows earlier sweeps as pairs of file and title; an empty file is the current sweep."""
        self.past.show_options(files, chosen)

    def open_difference(self, number: int) -> None:
        """Opens both texts of a differing answer."""
        places_ = self.parity.differing
        if number < len(places_):
            DifferenceWindow(self._theme, places_, number, self).show()

    def picture(self) -> QPixmap:
        """Returns a picture of the charts."""
        return self._body.grab()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _show_results(self, results: SweepResults | None, runs: bool) -> None:
        if results is None:
            self.titles.say(strings.SUBTITLE)
        else:
            said = strings.head(
                results.model, results.answers, results.took_s, results.ended, results.began_s, runs=runs
            )
            self.titles.say(said)
        for chart in (self.speed, self.parity, self.keeps):
            chart.show_results(results)
        self.places.show_curves(places(results) if results else [])
        self.turns.show_curves(turns(results) if results else [])
        differing = self.parity.differing
        close = sum(place.mark.pair.close_call for place in differing)
        any_answers = bool(results and results.cells)
        self.differ.setText(strings.differ(len(differing), close) if any_answers else "")
        self._under_board.setVisible(any_answers)
        self.show_button.setVisible(bool(differing))
        self.export_button.setEnabled(results is not None)

    def _lay_out(self) -> None:
        theme = self._theme
        header = self.make_header(
            (self.past, self.open_button, self.export_button), subtitle=strings.SUBTITLE
        )
        self._under_board = Hairline(theme)
        found = row_of((self.differ, 1), self.show_button, gap=6)
        found.setAlignment(self.differ, Qt.AlignmentFlag.AlignVCenter)
        board = column_of(self.parity, self._under_board, found, STRETCH, gap=10)
        upper = self._upper = row_of((column_of((self.speed, 1)), 66), (board, 34), gap=40)
        charts = (self.places, self.turns, self.keeps)
        lower = self._lower = row_of(*((chart, 1) for chart in charts), gap=28)
        self._body = _Page(theme)
        column_of(
            *((upper, 54), 14, Hairline(theme), 18, (lower, 46)),
            margins=(24, 20, 28, 16),
            parent=self._body,
        )
        right = column_of(header, (ScrollPage(theme, self._body), 1))
        row_of(self.choices, (right, 1), parent=self)

    def _arrange(self) -> None:
        """Lays the charts out side by side if they fit."""
        beside = width_of(self) >= _BESIDE_FROM_PX
        for row in (self._upper, self._lower):
            lay_beside(row, beside)


class _Page(QWidget):
    """The ground of the charts, so that an exported picture includes it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))


_PADDING_PX = 18
_LABEL_PX = 96
_BAR_PX = 4
KEEPS = (10.0, 20.0, 30.0, 50.0, 100.0)
_FIRST_DRAFTERS = ("auto", "ngram-simple", "ngram-mod")


class LabChoices(QWidget):
    """`plan` is the selected plan; `show_about` explains it."""

    changed = Signal()
    folder_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._classes: list[PromptClass] = []
        self._draft_model = ""
        self._has_head = True
        set_fixed_width(self, _CHOICES_PX)
        self.model = Popup(theme, [("starter", "starter")])
        self.model.setAccessibleName(strings.MODEL)
        labels = find("drafting.drafter").labels
        self.drafters = {name: CheckBox(theme, label) for name, label in labels.items() if name != "off"}
        self.kinds: dict[str, CheckBox] = {}
        self.own_prompts = Button(theme, strings.OWN_PROMPTS, "link", small=True)
        self.repeats = Spin(theme, 1, 9, 1)
        self.repeats.setAccessibleName(f"{strings.EACH_PROMPT}, {strings.TIMES}")
        self.repeats.set_value(3)
        self.most_tokens = Spin(theme, 8, 1024, 32)
        self.most_tokens.setAccessibleName(f"{strings.AT_MOST}, {strings.TOKENS}")
        self.most_tokens.set_value(128)
        exact = find("decoding.exactness")
        self.exactness = Popup(theme, list(exact.labels.items()))
        self.exactness.setAccessibleName(strings.EXACTNESS)
        self.keep_share = Switch(theme)
        self.keep_share.setAccessibleName(strings.KEEP_SHARE)
        self.keep_share.setAccessibleDescription(strings.KEEP_SAYS)
        self.keep_tokens = Spin(theme, 512, 131_072, 512)
        self.keep_tokens.setAccessibleName(f"{strings.LONG_PROMPT}, {strings.TOKENS}")
        self.keep_tokens.set_value(4000)
        self.run_button = Button(theme, strings.RUN, "primary")
        self.stop_button = Button(theme, strings.STOP)
        self.about = TextLabel(theme, "", 11, 15, tabular=True, wrap=True)
        self._bar = ProgressBar(theme, "accent_fill", _BAR_PX)
        self._lay_out(theme)
        for name in _FIRST_DRAFTERS:
            self.drafters[name].setChecked(True)
        self._wire()

    # ---- the plan

    @property
    def classes(self) -> list[PromptClass]:
        """All available prompt classes."""
        return self._classes

    @property
    def plan(self) -> SweepPlan:
        """The selected plan."""
        kinds = [each for each in self._classes if self.kinds[each.kind].isChecked()]
        return SweepPlan(
            self.model.value,
            tuple(
                name
                for name, box in self.drafters.items()
                if box.isChecked() and (name != "mtp" or self._has_head)
            ),
            tuple(dict.fromkeys(each.file for each in kinds)),
            tuple(each.kind for each in kinds),
            int(self.repeats.value),
            int(self.most_tokens.value),
            self.exactness.value,
            self._draft_model,
            KEEPS if self.keep_share.isChecked() else (),
            int(self.keep_tokens.value),
        )

    def show_models(self, models: Sequence[tuple[str, str]], chosen: str) -> None:
        """Shows models as pairs of reference and name, and last the choice of a folder."""
        offered = [*models, ("", strings.CHOOSE_FOLDER)]
        shown = [(self.model.itemData(row), self.model.itemText(row)) for row in range(self.model.count())]
        if (shown, self.model.value) == (offered, chosen):
            return
        self.model.show_options(offered, chosen)
        self.changed.emit()

    def show_head(self, has_head: bool) -> None:
        """Offers the drafter `mtp` only for a model with an MTP head; without one, it is not measured."""
        box = self.drafters["mtp"]
        box.setEnabled(has_head)
        box.setToolTip("" if has_head else strings.NO_HEAD)
        self._has_head = has_head

    def show_draft_model(self, reference: str) -> None:
        """Shows the draft model; empty: a cut-down copy of the model."""
        self._draft_model = reference
        self.drafters["draft-model"].setToolTip("" if reference else strings.NEEDS_DRAFT_MODEL)

    def add_classes(self, classes: Sequence[PromptClass]) -> None:
        """Adds prompt classes; one of the same name is replaced."""
        for each in classes:
            old = self.kinds.pop(each.kind, None)
            if old is not None:
                self._kinds.removeWidget(old)
                old.hide()
                old.deleteLater()
                self._classes = [known for known in self._classes if known.kind != each.kind]
            note = strings.prompts(each.prompts, each.turns)
            box = CheckBox(self._theme, strings.kind_of(each.kind), note)
            box.setChecked(True)
            box.toggled.connect(self.changed)
            self.kinds[each.kind] = box
            self._classes.append(each)
            self._kinds.addWidget(box)
        self.changed.emit()

    # ---- the sweep

    def show_lab(self, lab: Lab) -> None:
        """Switches between the Run button and Stop with progress."""
        idle = lab.stage is LabStage.IDLE
        shown, hidden = (self.run_button, self.stop_button) if idle else (self.stop_button, self.run_button)
        had_focus = hidden.hasFocus()
        shown.show()
        self.stop_button.setEnabled(lab.stage is LabStage.RUNNING)
        if had_focus:
            shown.setFocus()  # before the old box is deleted, which would move its focus
        hidden.hide()
        self._bar.setVisible(not idle)
        self._bar.show_share(lab.done / lab.total if lab.total else 0.0)
        self._body.setEnabled(idle)
        if idle:
            return
        if lab.stage is LabStage.STOPPING:
            said = strings.STOPPING
        elif lab.paused:
            said = strings.PAUSED
        elif not lab.total:
            said = strings.STARTING
        else:
            said = strings.progress(lab.done, lab.total, lab.seconds_left)
        self.show_about(said)

    def show_about(self, text: str, danger: bool = False) -> None:
        """Sets the explanation under the button."""
        self.about.setText(text)
        self.about.setAccessibleName(text)
        self.about.set_color("danger" if danger else "text2")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("panel"))
        painter.fillRect(QRectF(width_of(self) - 1, 0, 1, height_of(self)), self._theme.color("hair"))
        painter.fillRect(
            QRectF(0, design_px(self._foot.y()) - 1, width_of(self), 1), self._theme.color("hair")
        )

    # ---- inside

    def _wire(self) -> None:
        for box in (*self.drafters.values(), self.keep_share):
            box.toggled.connect(self.changed)
        for control in (self.repeats, self.most_tokens, self.keep_tokens, self.exactness):
            control.value_changed.connect(self.changed)
        self.keep_share.toggled.connect(self.keep_tokens.setEnabled)
        self.keep_tokens.setEnabled(False)
        self.model.value_changed.connect(self._take_model)

    def _take_model(self, reference: str) -> None:
        (self.changed if reference else self.folder_requested).emit()

    def _lay_out(self, theme: Theme) -> None:
        self._body, self._foot = QWidget(), QWidget()
        column = column_of(
            row_of(TextLabel(theme, strings.MODEL, 12, 16), 12, (self.model, 1)),
            gap=2,
            margins=(_PADDING_PX, 14, _PADDING_PX, 14),
            parent=self._body,
        )
        self._head(column, theme, strings.DRAFTERS)
        for box in self.drafters.values():
            column.addWidget(box)
        self._head(column, theme, strings.PROMPTS)
        self._kinds = column_of(gap=1)
        column.addLayout(self._kinds)
        column.addLayout(row_of(18, self.own_prompts, STRETCH))
        self._head(column, theme, strings.RUNS)
        for label, control, unit in (
            (strings.EACH_PROMPT, self.repeats, strings.TIMES),
            (strings.AT_MOST, self.most_tokens, strings.TOKENS),
            (strings.EXACTNESS, self.exactness, ""),
            (strings.KEEP_SHARE, self.keep_share, ""),
            (strings.LONG_PROMPT, self.keep_tokens, ""),
        ):
            name = TextLabel(theme, label, 12, 16)
            set_fixed_width(name, _LABEL_PX)
            units = [TextLabel(theme, unit, 12, 16)] if unit else []
            row = row_of(name, control, *units, STRETCH, gap=8)
            set_strut(row, 30)
            column.addLayout(row)
        column.addWidget(TextLabel(theme, strings.KEEP_SAYS, 11, 15, wrap=True, width_px=_CHOICES_PX - 40))
        column.addStretch(1)
        for button in (self.run_button, self.stop_button):
            button.setSizePolicy(button.sizePolicy().Policy.Expanding, button.sizePolicy().Policy.Fixed)
        inner_px = _CHOICES_PX - 2 * _PADDING_PX
        quiet = TextLabel(theme, strings.QUIET, 11, 15, wrap=True, width_px=inner_px)
        column_of(
            *(self.run_button, self.stop_button, self._bar, self.about, quiet),
            gap=8,
            margins=(_PADDING_PX, 14, _PADDING_PX, 14),
            parent=self._foot,
        )
        column_of((ScrollPage(theme, self._body), 1), self._foot, gap=1, margins=(0, 0, 1, 0), parent=self)

    def _head(self, column: QVBoxLayout, theme: Theme, text: str) -> None:
        add_gap(column, 14)
        column.addWidget(TextLabel(theme, text, 13, 17, "text", weight=600))
        add_gap(column, 4)
