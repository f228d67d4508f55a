"""The settings at the right: the model's facts and every setting of an answer, in sections."""
