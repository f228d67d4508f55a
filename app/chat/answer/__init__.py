"""One answer or message: text, thoughts, figures and actions."""
