"""`python -m beamwood` is `beamwood`."""

from beamwood.cli import main

main()
