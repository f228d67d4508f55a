"""The conversation: transcript, token tints, composer, attachments. Knows no worker and no session."""
