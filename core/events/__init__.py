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
    suggest_title → title_suggested
    embed_document, find_similar … → see `core.events.embedding`
    check_machines → machines_checked | failed
    (a cluster) → machine_figures about once a second while it works; cluster_ended, then the worker exits
    list_models, look_up_models, download_model … → see `core.events.catalogue`
    (always)    → heartbeat, about once a second
    (tables)    → table_status after a model was loaded, after an answer that taught them, after a save
"""

from core.events.answer import (
    Change,
    Effective,
    Finished,
    FinishReason,
    Gauges,
    Likely,
    Occupancy,
    Origin,
    PositionStat,
    Stats,
    Token,
)
from core.events.catalogue import (
    CancelDownload,
    DownloadModel,
    DownloadProgress,
    DownloadState,
    Fit,
    HubModel,
    ImportModel,
    ListModels,
    LookUpModels,
    MemoryNeed,
    ModelEntry,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    ModelSource,
    PauseDownload,
    RemoveModel,
    fit_of,
)
from core.events.cluster import (
    CheckMachines,
    ClusterEnd,
    ClusterEnded,
    MachineFigures,
    MachinesChecked,
    MachineSeen,
    MachineUse,
)
from core.events.codec import Command, Event, decode_command, decode_event, encode, failure
from core.events.embedding import (
    DocumentEmbedded,
    EmbeddingState,
    EmbedDocument,
    EmbedTexts,
    EraseVectors,
    FindSimilar,
    SimilarFound,
    SimilarPassage,
    StopEmbedding,
    TextsEmbedded,
)
from core.events.models import (
    LoadModel,
    LoadProgress,
    ModelDefault,
    ModelInfo,
    ModelLoaded,
    ModelUnloaded,
    UnloadModel,
)
from core.events.process import PROTOCOL, Activity, Failed, Heartbeat, Hello, Shutdown, StandStill
from core.events.reading import Passage, PrefillPhase, PrefillProgress, ReadingMap, ReadingWay
from core.events.rehearsal import RehearsalState, Rehearse, Rehearsing, Typing, WaitsFor
from core.events.request import (
    Attachment,
    Cancel,
    CountTokens,
    Generate,
    Grammar,
    Message,
    Role,
    TokenCount,
    Tool,
    ToolCall,
)
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
    TableUse,
)
from core.events.title import SuggestTitle, TitleSuggested

__all__ = [
    "PROTOCOL",
    "Activity",
    "Attachment",
    "Cancel",
    "CancelDownload",
    "Change",
    "CheckMachines",
    "ClusterEnd",
    "ClusterEnded",
    "Command",
    "CountTokens",
    "DocumentEmbedded",
    "DownloadModel",
    "DownloadProgress",
    "DownloadState",
    "Effective",
    "EmbedDocument",
    "EmbedTexts",
    "EmbeddingState",
    "EraseVectors",
    "Event",
    "ExportTable",
    "Failed",
    "FindSimilar",
    "FinishReason",
    "Finished",
    "Fit",
    "Gauges",
    "Generate",
    "Grammar",
    "Heartbeat",
    "Hello",
    "HubModel",
    "ImportModel",
    "ImportTable",
    "LearnedTable",
    "Likely",
    "ListModels",
    "ListTables",
    "LoadModel",
    "LoadProgress",
    "LoadTables",
    "LookUpModels",
    "MachineFigures",
    "MachineSeen",
    "MachineUse",
    "MachinesChecked",
    "MemoryNeed",
    "Message",
    "ModelDefault",
    "ModelEntry",
    "ModelImported",
    "ModelInfo",
    "ModelList",
    "ModelLoaded",
    "ModelRemoved",
    "ModelSource",
    "ModelUnloaded",
    "ModelsFound",
    "Occupancy",
    "Origin",
    "Passage",
    "PauseDownload",
    "PositionStat",
    "PrefillPhase",
    "PrefillProgress",
    "ReadingMap",
    "ReadingWay",
    "RehearsalState",
    "Rehearse",
    "Rehearsing",
    "RemoveModel",
    "ResetTable",
    "Role",
    "SaveTables",
    "Shutdown",
    "SimilarFound",
    "SimilarPassage",
    "StandStill",
    "Stats",
    "StopEmbedding",
    "SuggestTitle",
    "TableAction",
    "TableDay",
    "TableDone",
    "TableFigures",
    "TableInfo",
    "TableList",
    "TableMoment",
    "TableStatus",
    "TableTeacher",
    "TableUse",
    "TextsEmbedded",
    "TitleSuggested",
    "Token",
    "TokenCount",
    "Tool",
    "ToolCall",
    "Typing",
    "UnloadModel",
    "WaitsFor",
    "decode_command",
    "decode_event",
    "encode",
    "failure",
    "fit_of",
]
