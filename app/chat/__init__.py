"""The widgets of the open chat: transcript, composer, attachments, banner and bars."""
