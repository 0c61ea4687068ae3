"""`python -m beamwood` in, the command line out."""

from beamwood.cli import main

main()
