"""`python -m echobound`."""

from echobound.cli.main import main

main()
