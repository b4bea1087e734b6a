"""The command line: arguments in, calls out, progress drawn; no mathematics."""
