"""Text of documents, with a record of omissions, each read in a separate process. No Qt, no mlx.

Read are text, HTML, PDF, Word, spreadsheets, slides, OpenDocument, e-books, rich text, mail, tables,
subtitles, notebooks and logs; docs/documents.md says which parts. Readers of formats with marks fill one
model (`writer`).
"""
