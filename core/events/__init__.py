"""The messages between window and worker: commands to the worker, events from it.

Wire format: one JSON object per line, tagged by `type` (the struct's name in snake case). Times end in `_s`
and are seconds; times of events are measured from the start of the request. Token counts end in `_tokens` or
are plain nouns. All structs are frozen.

Order of messages:

    load_model  → load_progress* → model_loaded | failed
    generate    → queued* → prefill_progress* → (reading_map → prefill_progress*)? → (token | gauges)*
                  → finished | failed
    take_turn   → queued* → turn_taken | failed; then generate or cancel
    cancel      → a generate ends with finished(reason="cancelled"), a take_turn with failed
    unload_model→ model_unloaded
    count_tokens→ token_count | failed
    list_tables → table_list | failed
    save_tables, load_tables, reset_table, export_table, import_table → table_done | failed
    suggest_title → title_suggested, which `cancel` or another command interrupts
    embed_document, find_similar, open_chat … → see `core.events.idle`
    (under mlx.launch) → cluster_ended if a rank fails; then the worker exits
    list_models, look_up_models, download_model … → see `core.events.models`
    (always)    → heartbeat, about once a second
    (tables)    → table_status after a model was loaded, after an answer that taught them, after a save
"""

from core.events.answer import *
from core.events.codec import *
from core.events.idle import *
from core.events.models import *
from core.events.tables import *
