"""Pure state behind the window: conversations, the running turn, the link to the worker. No widgets."""
