"""__main__.py — the words of an `annif` command in, that command with the backend `beamwood` known to it out."""

from annif.cli import cli

from beamwood.annif import register

register()
cli()
