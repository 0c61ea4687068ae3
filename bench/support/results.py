"""results.py — measurements by name: one JSON file each in a folder while they are made, one file to check in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]


class Results:
    """A folder, where measurements are kept as they come, or a .json file that `keep` wrote, which is only read."""

    def __init__(self, place: Path) -> None:
        self._place = place
        if place.suffix != ".json":
            self._kept = None
        elif place.is_file():
            self._kept = json.loads(place.read_text())
        else:
            raise SystemExit(f"{place} is missing: run without --table first, or point --results at a folder")

    def get(self, name: str) -> Result | None:
        if self._kept is not None:
            found: Result | None = self._kept.get(name)
            return found
        file = self._file(name)
        return json.loads(file.read_text()) if file.exists() else None

    def put(self, name: str, result: Result) -> None:
        if self._kept is not None:
            raise SystemExit(f"{self._place} is only read: point --results at a folder to measure")
        file = self._file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(result, indent=1))
        draft.rename(file)

    def names(self) -> list[str]:
        if self._kept is not None:
            return sorted(self._kept)
        return sorted(str(f.relative_to(self._place).with_suffix("")) for f in self._place.rglob("*.json"))

    def take_over(self, file: Path) -> None:
        """Take what a kept file has and the folder has not."""
        for name, result in json.loads(file.read_text()).items():
            if self.get(name) is None:
                self.put(name, result)

    def keep(self, file: Path) -> None:
        """Write all measurements to one file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({name: self.get(name) for name in self.names()}, indent=1) + "\n")

    def _file(self, name: str) -> Path:
        return self._place / f"{name}.json"
