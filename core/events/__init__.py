"""The messages between window and worker: commands down, events up.

Wire form: one JSON object a line, tagged by `type` (the struct's name in snake case).
Times end in `_s` and are seconds; times of events are measured from the moment the worker
took up the request. Token counts end in `_tokens` or are plain nouns. All are frozen.

Which of them follow each other:

    load_model  → load_progress* → model_loaded | failed
    generate    → prefill_progress* → (reading_map → prefill_progress*)? → (token | gauges)*
                  → finished | failed
    cancel      → the running generate ends with finished(reason="cancelled")
    unload_model→ model_unloaded
    count_tokens→ token_count | failed
    list_tables → table_list | failed
    save_tables, load_tables, reset_table, export_table, import_table → table_done | failed
    rehearse    → rehearsing* | failed
    typing      → rehearsing, if it stops one
    (always)    → heartbeat, about once a second
    (tables)    → table_status after a model was loaded, after an answer that taught them, after a save
"""

from core.events.answer import (
    Change,
    Effective,
    Finished,
    FinishReason,
    Gauges,
    Occupancy,
    Origin,
    PositionStat,
    Stats,
    Token,
)
from core.events.codec import Command, Event, decode_command, decode_event, encode, failure
from core.events.models import LoadModel, LoadProgress, ModelInfo, ModelLoaded, ModelUnloaded, UnloadModel
from core.events.process import PROTOCOL, Activity, Failed, Heartbeat, Hello, Shutdown
from core.events.reading import Passage, PrefillPhase, PrefillProgress, ReadingMap, ReadingWay, ScorerName
from core.events.rehearsal import RehearsalState, Rehearse, Rehearsing, Typing, WaitsFor
from core.events.request import Attachment, Cancel, CountTokens, Generate, Message, Role, TokenCount
from core.events.tables import (
    ExportTable,
    ImportTable,
    LearnedTable,
    ListTables,
    LoadTables,
    ResetTable,
    SaveTables,
    TableAction,
    TableDay,
    TableDone,
    TableFigures,
    TableInfo,
    TableList,
    TableMoment,
    TableStatus,
    TableTeacher,
)

__all__ = [
    "PROTOCOL",
    "Activity",
    "Attachment",
    "Cancel",
    "Change",
    "Command",
    "CountTokens",
    "Effective",
    "Event",
    "ExportTable",
    "Failed",
    "FinishReason",
    "Finished",
    "Gauges",
    "Generate",
    "Heartbeat",
    "Hello",
    "ImportTable",
    "LearnedTable",
    "ListTables",
    "LoadModel",
    "LoadProgress",
    "LoadTables",
    "Message",
    "ModelInfo",
    "ModelLoaded",
    "ModelUnloaded",
    "Occupancy",
    "Origin",
    "Passage",
    "PositionStat",
    "PrefillPhase",
    "PrefillProgress",
    "ReadingMap",
    "ReadingWay",
    "RehearsalState",
    "Rehearse",
    "Rehearsing",
    "ResetTable",
    "Role",
    "SaveTables",
    "ScorerName",
    "Shutdown",
    "Stats",
    "TableAction",
    "TableDay",
    "TableDone",
    "TableFigures",
    "TableInfo",
    "TableList",
    "TableMoment",
    "TableStatus",
    "TableTeacher",
    "Token",
    "TokenCount",
    "Typing",
    "UnloadModel",
    "WaitsFor",
    "decode_command",
    "decode_event",
    "encode",
    "failure",
]
