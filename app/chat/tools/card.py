"""CallCard: asks for permission to run a call. It shows the whole call; arguments can be edited.

A call cannot be allowed by accident: no button is the default one, the card never takes the focus, and the
buttons that allow stay disabled for `ARMED_AFTER_MS` after the card appeared or moved, so that neither a key
that was meant for another widget nor the second click of a double click presses them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtGui import QMoveEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from app.chat.intents import AllowCall, Intent, RefuseCall, StopAnswer
from app.chat.tools import strings
from app.chat.tools.arguments import ArgumentField, OriginLegend
from app.controls.buttons import Button, IconLabel, on_click
from app.controls.text_label import TextLabel
from app.richtext.canvas_menu import pop_up
from app.session.tools.calls import Scope
from app.session.tools.form import (
    Field,
    empty_field,
    fields_of,
    joined,
    optional_names,
    problem_of,
    read_json,
    values_of,
    visible,
)
from app.session.tools.views import ArgumentSpan, CallView
from app.theme.measures import STRETCH, column_of, lay_beside, row_of
from app.theme.sheet import set_ground
from app.theme.zoom import px

ARMED_AFTER_MS = 500
_PAD_PX = 14
_TWO_ROWS_BELOW_PX = 560


class CallNotes(QWidget):
    """The server's description of the tool, and the reasons why the call needs approval."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[TextLabel] = []
        self.reasons: list[TextLabel] = []
        self._shown: tuple[list[str], tuple[str, ...]] = [], ()
        self._column = column_of(gap=6, parent=self)

    @property
    def texts(self) -> list[str]:
        """The reasons, then the server's description."""
        return [label.text() for label in (*self.reasons, *self.notes)]

    def show_view(self, view: CallView) -> None:
        server = visible(view.record.server)
        says = strings.described(server, visible(view.tool.description))
        claim = strings.READ_ONLY if view.tool.read_only else strings.NOT_READ_ONLY
        notes = [*filter(None, (says,)), claim.format(server=server)]
        if (notes, view.reasons) == self._shown:
            return
        self._shown = notes, view.reasons
        while (item := self._column.takeAt(0)) is not None:
            if widget := item.widget():
                widget.hide()
                widget.deleteLater()
        self.notes = [TextLabel(words, 11.5, 16, "text2", wrap=True) for words in notes]
        self.reasons = [TextLabel(words, 12, 16, "text", wrap=True) for words in view.reasons]
        for note in self.notes:
            self._column.addWidget(note)
        for reason in self.reasons:
            row = QWidget()
            row_of(IconLabel("warn", "text2"), (reason, 1), gap=7, parent=row)
            self._column.addWidget(row)


class CallCard(QWidget):
    """Asks about `view`. `act` gets the person's intents; `resized` is called when its height may change."""

    def __init__(
        self,
        turn_id: str,
        view: CallView,
        act: Callable[[Intent], object],
        resized: Callable[[], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        set_ground(self, "card")
        self._turn_id, self._view, self._act, self._resized = turn_id, view, act, resized
        self.is_armed = False
        self.is_edited = False
        self._arming = QTimer(self, singleShot=True, interval=ARMED_AFTER_MS)
        self._arming.timeout.connect(self._arm)
        record = view.record
        title = strings.question(visible(record.server), visible(record.tool or record.name))
        self.title = TextLabel(title, 13, 18, "text", weight=600, wrap=True)
        self.setAccessibleName(title)
        self.about = CallNotes()
        self.fields: list[ArgumentField] = []
        self.empty = TextLabel(strings.NO_ARGUMENTS, 12, 16, "text2")
        self.legend = OriginLegend()
        self.problem = TextLabel("", 12, 16, "danger", wrap=True)
        self.problem.hide()
        self.add = Button(strings.ADD_ARGUMENT, "link", True)
        self.once = Button(strings.ALLOW_ONCE, small=True)
        self.in_chat = Button(strings.ALLOW_CHAT, small=True)
        self.always = Button(strings.ALLOW_ALWAYS, small=True)
        self.refuse = Button(strings.REFUSE, small=True)
        self.stop = Button(strings.STOP, small=True)
        self._allowing = (self.once, self.in_chat, self.always)
        for button, says in (
            (self.once, strings.ALLOW_ONCE_SAYS),
            (self.in_chat, strings.ALLOW_CHAT_SAYS),
            (self.always, strings.ALLOW_ALWAYS_SAYS),
            (self.refuse, strings.REFUSE_SAYS),
            (self.stop, strings.STOP_SAYS),
        ):
            button.setToolTip(says)
            button.setAccessibleDescription(says)
        on_click(
            (self.add, self._offer_arguments),
            (self.once, partial(self._allow, "once")),
            (self.in_chat, partial(self._allow, "chat")),
            (self.always, partial(self._allow, "always")),
            (self.refuse, lambda: act(RefuseCall(turn_id, record.id))),
            (self.stop, lambda: act(StopAnswer())),
        )
        self._lay_out()
        self._make_fields()

    # ---- content

    def show_view(self, view: CallView) -> None:
        """Update the origins of words, the reasons and the tool. Edits stay."""
        if view == self._view:
            return
        self._view = view
        for shown in self.fields:
            shown.area.show_spans(self._spans(shown.field))
        self._show_state()
        self._disarm()  # the person must see the change before allowing
        self._resized()

    @property
    def call_id(self) -> str:
        return self._view.record.id

    @property
    def arguments(self) -> str:
        """The arguments as they are now, as one JSON object; empty if they cannot be sent."""
        values, problems = self._values()
        if problems or problem_of(values, self._view.tool.schema)[1]:
            return ""
        return joined(values)

    def height_for(self, width: int) -> int:
        """The height in screen pixels at that width."""
        lay_beside(self._buttons, width >= px(_TWO_ROWS_BELOW_PX))
        self._column.invalidate()
        self._column.activate()  # nested layouts keep their old heights until then
        return self._column.heightForWidth(width)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._disarm()

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        if event.pos() != event.oldPos():
            self._disarm()

    # ---- inside

    def _lay_out(self) -> None:
        self._forms: QVBoxLayout = column_of(gap=8)
        allow = row_of(STRETCH, *reversed(self._allowing), gap=8)
        deny = row_of(self.stop, self.refuse, STRETCH, gap=8)
        self._buttons = row_of((deny, 1), (allow, 1), gap=8)
        self._column = column_of(
            row_of(IconLabel("tools", "text2", 16), (self.title, 1), gap=8),
            self.about,
            2,
            self.empty,
            self._forms,
            row_of(self.add, STRETCH),
            self.legend,
            self.problem,
            2,
            self._buttons,
            gap=6,
            margins=(_PAD_PX, 12, _PAD_PX, 12),
            parent=self,
        )

    def _make_fields(self) -> None:
        record = self._view.record
        fields = fields_of(record.arguments, self._view.tool.schema)
        if fields is None:
            fields = (Field("", record.arguments, False),)
        for field in fields:
            self._add_field(field)
        self._show_state()

    def _add_field(self, field: Field) -> ArgumentField:
        removable = field.name and not field.required
        shown = ArgumentField(
            field if field.name else Field(strings.WHOLE, field.text, False),
            self._spans(field),
            self._edited,
            self._resized,
            partial(self._remove, field.name) if removable else None,
            self,
        )
        self.fields.append(shown)
        self._forms.addWidget(shown)
        shown.show()
        return shown

    def _spans(self, field: Field) -> list[ArgumentSpan]:
        return [each for each in self._view.spans if each.argument == field.name and field.given]

    def _offer_arguments(self) -> None:
        menu = QMenu(self)
        for name in self._left_out():
            menu.addAction(visible(name).replace("&", "&&"), partial(self._add_empty, name))
        pop_up(menu, self.add.mapToGlobal(QPoint(0, self.add.height())))

    def _left_out(self) -> tuple[str, ...]:
        """The declared arguments that have no field."""
        return optional_names((shown.field for shown in self.fields), self._view.tool.schema)

    def _add_empty(self, name: str) -> None:
        self._add_field(empty_field(name, self._view.tool.schema)).area.setFocus()
        self._edited()
        self._resized()

    def _remove(self, name: str) -> None:
        shown = next(each for each in self.fields if each.field.name == name)
        self.fields.remove(shown)
        self._forms.removeWidget(shown)
        shown.hide()
        shown.deleteLater()
        self._edited()
        self._resized()

    def _edited(self) -> None:
        self.is_edited = True
        self._show_state()

    @property
    def _is_whole(self) -> bool:
        """Whether the arguments are one text, because they are not a JSON object."""
        return len(self.fields) == 1 and self.fields[0].field.name == strings.WHOLE

    def _values(self) -> tuple[dict[str, object], dict[str, str]]:
        """Values and errors of the fields, both by name."""
        if not self._is_whole:
            return values_of((shown.field, shown.text) for shown in self.fields)
        try:
            values = read_json(self.fields[0].text)
        except ValueError as error:
            return {}, {strings.WHOLE: str(error)}
        if not isinstance(values, dict):
            return {}, {strings.WHOLE: strings.NOT_AN_OBJECT}
        return values, {}

    def _show_state(self) -> None:
        """Show errors and origins, and enable the buttons that can be pressed."""
        values, problems = self._values()
        about, refused = ("", "") if problems else problem_of(values, self._view.tool.schema)
        named = {shown.field.name for shown in self.fields}
        if refused and about in named:
            problems[about], refused = refused, ""
        for shown in self.fields:
            shown.show_problem(problems.get(shown.field.name, ""))
        if refused != self.problem.text():
            self.problem.setText(refused)
            self.problem.setVisible(bool(refused))
            self._resized()
        self.empty.setVisible(not self.fields)
        self.add.setVisible(bool(self._left_out()) and not self._is_whole)
        spans = (span for shown in self.fields for span in shown.area.spans)
        self.legend.show_origins(spans, edited=self.is_edited)
        self._can_run = not (problems or refused)
        self._show_buttons()
        self.about.show_view(self._view)
        self.setAccessibleDescription(". ".join(filter(None, (*self.about.texts, self.legend.text))))

    def _show_buttons(self) -> None:
        for button in self._allowing:
            button.setEnabled(self.is_armed and self._can_run)

    def _disarm(self) -> None:
        self.is_armed = False
        self._arming.start()
        self._show_buttons()

    def _arm(self) -> None:
        self.is_armed = True
        self._show_buttons()

    def _allow(self, scope: Scope) -> None:
        if self.is_armed and (arguments := self.arguments):
            self._act(AllowCall(self._turn_id, self.call_id, scope, arguments))
