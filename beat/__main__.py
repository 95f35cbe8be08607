"""`python -m beat` is `beat`."""

from beat.cli import main

main()
