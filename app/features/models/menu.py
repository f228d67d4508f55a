"""The menu under the chat's title: the model and its draft model."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from app.features.models import strings
from app.features.models.controller import ModelsController
from app.features.models.facts import FULL_PRECISION, fit_facts, names_of
from app.features.models.state import ModelsState
from core.events import ModelEntry


def fill_model_menu(menu: QMenu, models: ModelsController, context_tokens: int) -> None:
    """Add the installed models. `context_tokens` is the context for which their memory is estimated."""
    state, group = models.shown, QActionGroup(menu)
    names = names_of(state.models)
    for entry in state.models:
        action = menu.addAction(_label(names[entry.reference], entry, context_tokens, state))
        action.setCheckable(True)
        action.setChecked(state.loaded is entry)
        action.setEnabled(not entry.problem and models.can_load)
        action.setToolTip(entry.problem)
        group.addAction(action)
        action.triggered.connect(lambda checked=False, one=entry: _load(models, one))
    menu.setToolTipsVisible(True)
    drafting = _draft_menu(menu, models, context_tokens)
    if drafting is not None:
        menu.addSeparator()
        menu.addMenu(drafting)
    menu.addSeparator()


def _load(models: ModelsController, entry: ModelEntry) -> None:
    if models.state.loaded is not entry:
        models.load(entry.reference)


def _draft_menu(parent: QWidget, models: ModelsController, context_tokens: int) -> QMenu | None:
    """A menu of the smaller models of the same family; None if there are none."""
    loaded = models.state.loaded
    if loaded is None or not loaded.family:
        return None
    family = [
        entry
        for entry in models.state.models
        if entry.family == loaded.family and not entry.problem and entry.parameters < loaded.parameters
    ]
    if not family:
        return None
    menu = QMenu(strings.DRAFT_MENU, parent)
    group = QActionGroup(menu)
    state = models.shown
    tokens = min(context_tokens, loaded.context_tokens or context_tokens)
    beside = loaded.need.with_cache(state.kv, tokens).total_at(tokens)
    # A draft model's cache keeps full precision.
    plain = replace(state, kv=FULL_PRECISION)
    names = names_of(models.state.models)
    labels = [
        (each.reference, _label(names[each.reference], each, context_tokens, plain, beside))
        for each in family
    ]
    for reference, label in (("", strings.NO_DRAFT_MODEL), *labels):
        action = menu.addAction(label)
        action.setCheckable(True)
        action.setChecked(models.drafting == reference)
        group.addAction(action)
        action.triggered.connect(lambda checked=False, one=reference: models.draft_with(one))
    return menu


def _label(name: str, entry: ModelEntry, context_tokens: int, state: ModelsState, beside: int = 0) -> str:
    """`beside` is the memory in bytes of the model for which it would draft."""
    tokens = min(context_tokens, entry.context_tokens or context_tokens)
    fit = fit_facts(entry, tokens, state.limit_bytes, beside, state.kv)
    words = strings.FIT_WORDS[fit.fit].lower() if fit else ""
    if entry.problem and (fit is None or fit.fit != "too-large"):
        words = strings.CANNOT_LOAD
    return strings.menu_row(name, words)
