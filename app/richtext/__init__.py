"""Rich text: Markdown and LaTeX, laid out, painted, selected and copied. Independent of chats."""
