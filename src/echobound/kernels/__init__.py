"""Evaluate a block of draws: the reference in plain NumPy says what is right, the others are fast."""
