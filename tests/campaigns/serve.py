"""serve.py — names of campaigns in, what they measured and whether each claim holds out: `make test-serve`.

    python tests/campaigns/serve.py [NAME]...

All of them when none is named. Exits with 1 when a claim does not hold. Everything stays on this machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

for _place in Path(__file__).resolve().parents[1:3]:  # tests/ for support, the repository for bench/rivals
    sys.path.insert(0, str(_place))


from campaigns import annif, attacks, cold, endure, hostile, load, processes, swaps  # noqa: E402


def main() -> None:
    """Runs the campaigns that are named."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--minutes", type=float, default=3)
    options.add_argument("--attack-seconds", type=float, default=20)
    options.add_argument("--swaps", type=int, default=100)
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--slow", type=int, default=500)
    given = options.parse_args()
    campaigns: dict[str, tuple[Callable[..., bool], tuple[float, ...]]] = {
        "overload": (load.overload, (given.seconds,)),
        "closed": (load.closed, (given.seconds,)),
        "swap": (swaps.swap, (given.swaps,)),
        "cold": (cold.cold, ()),
        "term": (swaps.term, (given.times,)),
        "kill": (swaps.kill, (10,)),
        "abort": (processes.abort, (20,)),
        "log": (processes.log, (9,)),
        "restart": (processes.restart, (9,)),
        "no-start": (processes.no_start, ()),
        "hung": (processes.hung, ()),
        "pipeline": (attacks.pipeline, (given.attack_seconds,)),
        "unread": (attacks.unread, ()),
        "long": (attacks.long, (given.attack_seconds,)),
        "endless": (attacks.endless, ()),
        "hostile": (hostile.hostile, (given.cases,)),
        "slow": (hostile.slow, (given.slow,)),
        "outside": (hostile.outside, ()),
        "annif": (annif.annif, ()),
        "endure": (endure.endure, (given.minutes * 60,)),
    }
    unknown = set(given.names) - set(campaigns)
    if unknown:
        sys.exit(f"not known: {', '.join(sorted(unknown))}; there are: {', '.join(campaigns)}")
    failed = []
    for name in given.names or campaigns:
        campaign, arguments = campaigns[name]
        print(f"{name}: {(campaign.__doc__ or '').splitlines()[0]}", flush=True)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                held = campaign(Path(folder), *arguments)
            except Exception as error:
                print(f"  {type(error).__name__}: {str(error)[:1500]}")
                held = False
        print(f"  {'holds' if held else 'DOES NOT HOLD'} ({time.monotonic() - begun:.0f} s)\n", flush=True)
        failed += [] if held else [name]
    sys.exit(f"did not hold: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
