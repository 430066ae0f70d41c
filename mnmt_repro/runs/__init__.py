"""The road to a run: what it is, its text, its start, training, evaluation, and its row."""
