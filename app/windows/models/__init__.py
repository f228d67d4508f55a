"""The models' window: what is on this machine, what fits, what drafts for what, and downloads."""
