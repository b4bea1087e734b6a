"""Statements: what can be promised, a file each; `registry` lists them."""
