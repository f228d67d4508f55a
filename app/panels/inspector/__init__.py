"""The settings panel: the model's facts and all settings of an answer, in sections."""
