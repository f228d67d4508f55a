"""UI strings of this package."""

from __future__ import annotations

KEEP_IN_LIBRARY = "Keep in Library"
# ---- document
DOCUMENT_TEXT = "Document text"
DOCUMENT_MAP = "Map of the document"
FIND_IN_DOCUMENT = "Find in document"
DOCUMENT_CHOICE = "Document"
DOCUMENT_FILTER = (("all", "All"), ("kept", "Kept only"))
DOCUMENT_FILTER_NAME = "Which passages"
PREVIOUS_PASSAGE = "Previous kept passage"
NEXT_PASSAGE = "Next kept passage"
DOCUMENT_NOTE = "{size} · {kept:,} of {passages:,} passages kept"
NOTHING_READ = "{size} · nothing of it was read"
EARLIER_ANSWER = "{note} · for an earlier answer"
NO_DOCUMENT = "No document in this chat yet. Paste or drop one into the message to see it here."
PASSAGE_OF = "Kept passage {number} of {count}: {text}"
