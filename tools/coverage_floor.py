"""coverage_floor.py — what the tests measured (coverage's JSON) and the floors of pyproject.toml in; 1 when below out.

The floors only rise: when the tests reach a whole percent more, the line it prints says what to write there.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = "[tool.beamwood.coverage]"


def floors() -> dict[str, float]:
    """`lines` and `branches` in percent."""
    _, _, rest = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition(TABLE)
    return {name: float(value) for name, value in re.findall(r"^(lines|branches) = ([\d.]+)", rest, re.MULTILINE)}


def main() -> None:
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["totals"]
    reached = {
        "lines": 100 * found["covered_lines"] / found["num_statements"],
        "branches": 100 * found["covered_branches"] / found["num_branches"],
    }
    low = False
    for name, floor in floors().items():
        note = ""
        if reached[name] < floor:
            low, note = True, f", which is below the floor of {floor:g} %: test what is missing above"
        elif reached[name] >= floor + 1:
            note = f"; the floor may rise to {int(reached[name])}"
        print(f"Python {name} that tests run: {reached[name]:.1f} %{note}")
    sys.exit(low)


if __name__ == "__main__":
    main()
