"""`python -m beamwood.cli` is `beamwood`."""

from beamwood.cli import main

main()
