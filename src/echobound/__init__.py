"""echobound."""
