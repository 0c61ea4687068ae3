"""history.py — what was added and removed in, the counts in a model's file out. Added labels stand at its end."""

from __future__ import annotations

from dataclasses import replace

from beamwood.storage.shape import ModelShape


def counted(shape: ModelShape, *, added: int = 0, removed: int = 0, removed_of_added: int = 0) -> ModelShape:
    """The description with labels added (behind all others) or removed, some of them labels that were added before.

    Nothing is noted where nothing is left of it: a model whose added labels are removed is the one it was made from.
    """
    past = shape.updates or {"trained": shape.labels, "added": 0, "removed": 0}
    now = {
        "trained": past["trained"],
        "added": past["added"] + added - removed_of_added,
        "removed": past["removed"] + removed - removed_of_added,
    }
    labels = now["trained"] - now["removed"] + now["added"]
    return replace(shape, labels=labels, updates=now if now["added"] or now["removed"] else None)
