"""activations.py — an activation's name in, what the core knows it by out."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from beamwood import _core
from beamwood.errors import SettingsError

NAME = re.compile(r"(identity|(?:log-)?sigmoid)|((?:log-)?hinge)-([1-9]\d?)")  # the one grammar of activations
_PATHS_OF = {
    "identity": ("last",),
    "sigmoid": ("product",),
    "hinge": ("product",),
    "log-sigmoid": ("sum", "log-exp"),
    "log-hinge": ("sum", "log-exp"),
}


@dataclass(frozen=True)
class Activation:
    """How a node's z becomes a score, and how scores are put together along a path."""

    name: str
    path: str
    kind: str  # the name without the power
    power: int
    discount: float = 1.0  # of log-exp: what a node's score is multiplied by before its children add theirs

    @classmethod
    def parse(cls, name: str, path: str | None = None, discount: float = 1.0) -> Activation:
        """Reads "sigmoid", "hinge-3", "log-sigmoid", "log-hinge-2" or "identity"; path None takes its usual one."""
        found = NAME.fullmatch(str(name))
        if not found:
            raise SettingsError(
                f"activation {name!r} is not known. Use identity, sigmoid, log-sigmoid, or hinge-p and log-hinge-p "
                f"with p from 1 to 99, for example hinge-3."
            )
        kind = found[1] or found[2]
        paths = _PATHS_OF[kind]
        if path is not None and (not isinstance(path, str) or path not in paths):
            raise SettingsError(
                f"path {path!r} does not go with activation {name!r}. Use {' or '.join(map(repr, paths))}."
            )
        path = path or paths[0]
        narrow = float(np.float32(discount))
        if not 0 < narrow <= 1 or (narrow != 1 and path != "log-exp"):
            raise SettingsError(
                f"discount is {discount!r} with path {path!r}; expected a number above 0 and up to 1. Below 1 it goes "
                "with path 'log-exp' only."
            )
        return cls(str(name), path, kind, int(found[3] or 1), narrow)

    @property
    def native(self) -> _core.Activation:
        """The same for the core."""
        kind, path = (word.replace("-", "_") for word in (self.kind, self.path))
        return _core.Activation(_core.ActivationKind[kind], self.power, _core.Path[path], self.discount)

    @property
    def only_shrinks(self) -> bool:
        """True when no node can score above its parent: what exact search rests on."""
        return self.path != "last" and self.discount == 1

    @property
    def root_score(self) -> float:
        """The score that paths start with."""
        return 1.0 if self.path == "product" else 0.0

    def handed_down(self, scores: npt.NDArray[np.float32], stands_in: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        """What children start from, given their parents' scores.

        stands_in: certain children that are the only ones of their parent: each takes the parent's score as it is.
        """
        if self.path != "log-exp":
            return scores
        return np.where(stands_in, scores, scores * np.float32(self.discount))

    def scores(self, z: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The activation of each z."""
        out = np.empty(z.shape, np.float32)
        _core.activate(self.native, np.ascontiguousarray(z, np.float32), out)
        return out

    def leaf_scores(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What an answer shows for the path scores of leaves."""
        out = np.empty(scores.shape, np.float32)
        _core.leaf_scores(self.native, np.ascontiguousarray(scores, np.float32), out)
        return out
