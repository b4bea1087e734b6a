"""What is tried to break echobound: a module for each kind, with `prepare(folder)` and `attempt(folder, number)`."""
