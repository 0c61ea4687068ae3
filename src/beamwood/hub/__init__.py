"""Models that lie elsewhere: addresses in (`hf://…`, `https://…`), files in a cache out; and the way back, with a card.

`beamwood.load` and every verb of the command line take such addresses. Nothing is fetched unless one is given. A model
file holds numbers and texts and is never run: there is no pickle in it and nothing to trust.
"""

from beamwood.hub.card import card
from beamwood.hub.fetch import fetch

__all__ = ["card", "fetch"]
