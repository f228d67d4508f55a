"""OpenAI's shapes: chat completions, completions, models, errors."""
