"""plan.py — a TOML or JSON file in, a checked plan of what to measure out.

```toml
sets = ["eurlex-4k", "wiki10-31k"]   # stand-ins of the paper's sets, or folders under --data
scale = 0.1                          # of the stand-ins
branching = [2, 8, 32]
rivals = ["libpecos", "napkinxc"]    # which --rivals must hold
```
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from beamwood.bench.rivals import TIMED
from beamwood.engine import MATCHERS
from beamwood.errors import SettingsError


@dataclass(frozen=True)
class Plan:
    """What a run measures. Times are taken in turns; the median of the rounds counts."""

    sets: tuple[str, ...]
    scale: float | dict[str, float] = 1.0  # for all stand-ins, or one number each
    branching: tuple[int, ...] = (2, 8, 32)
    matchers: tuple[str, ...] = MATCHERS
    threads: tuple[int, ...] = (1, 2)
    beams: tuple[int, ...] = (10, 20)  # the first one is used wherever a single beam is needed
    k: int = 10
    rivals: tuple[str, ...] = ()
    queries: int = 1000  # in a batch
    online: int = 200  # of them, asked one by one
    rounds: int = 5
    seed: int = 0

    @property
    def beam(self) -> int:
        return self.beams[0]

    def scale_of(self, name: str) -> float:
        return self.scale.get(name, 1.0) if isinstance(self.scale, dict) else self.scale

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def read_plan(path: Path) -> Plan:
    """The plan in a file; a mistake is named with the key it is in."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else _toml(text)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise SettingsError(f"{path} is not {kind}: {error}") from None
    return plan_of(found, str(path))


def plan_of(found: Any, where: str = "plan") -> Plan:
    """A plan from what a file held."""
    if not isinstance(found, dict):
        raise SettingsError(f"{where} is a {type(found).__name__}; expected a table of keys.")
    known = [field.name for field in fields(Plan)]
    for key in found:
        if key not in known:
            raise SettingsError(f"{where} has the key {key!r}; expected only {', '.join(known)}.")
    if "sets" not in found:
        raise SettingsError(f'{where} has no "sets"; expected at least one. Name it, for example sets = ["eurlex-4k"].')
    return Plan(**{key: _checked(key, value, where) for key, value in found.items()})


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise SettingsError(
                "Python 3.10 reads TOML with the package tomli: pip install tomli, or use JSON."
            ) from None
    return tomllib.loads(text)


def _checked(key: str, value: Any, where: str) -> Any:
    expected, right = _RULES[key]
    value = tuple(value) if isinstance(value, list) else value
    if not right(value):
        raise SettingsError(f"{where}: {key} = {value!r}; expected {expected}.")
    return value


def _many(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and len(value) > 0 and all(right(entry) for entry in value)


def _count(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def _name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "sets": ("a list of names", _many(_name)),
    "scale": (
        "a number in (0, 1], or a table of them by set",
        lambda v: _share(v) or (isinstance(v, dict) and all(_share(entry) for entry in v.values())),
    ),
    "branching": ("a list of whole numbers of 2 or more", _many(_count(2))),
    "matchers": (f"a list of {', '.join(MATCHERS)}", _many(MATCHERS.__contains__)),
    "threads": ("a list of whole numbers of 1 or more", _many(_count(1))),
    "beams": ("a list of whole numbers of 1 or more", _many(_count(1))),
    "k": ("a whole number of 1 or more", _count(1)),
    "rivals": (f"a list of {', '.join(TIMED)}", lambda v: v == () or _many(TIMED.__contains__)(v)),
    "queries": ("a whole number of 1 or more", _count(1)),
    "online": ("a whole number of 1 or more", _count(1)),
    "rounds": ("a whole number of 1 or more", _count(1)),
    "seed": ("a whole number of 0 or more", _count(0)),
}
