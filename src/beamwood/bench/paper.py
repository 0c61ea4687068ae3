"""paper.py — figures of the paper (Etter et al., WWW 2022), to compare with: its three tables of times.

Times are milliseconds per query on one thread of an r5.4xlarge; "chunk" is the paper's MSCM, "column" its baseline.
"""

from __future__ import annotations

SETS = ("amazon-3m", "amazon-670k", "amazoncat-13k", "eurlex-4k", "wiki-500k", "wiki10-31k")

# (branching, setting, matcher, layout): milliseconds per query, in the order of SETS
TIMES: dict[tuple[int, str, str, str], tuple[float, ...]] = {
    (2, "batch", "binary", "chunk"): (0.83, 0.69, 0.45, 0.55, 3.46, 2.69),
    (2, "batch", "binary", "column"): (2.83, 2.02, 2.24, 2.55, 8.75, 7.79),
    (2, "batch", "dense", "chunk"): (0.43, 0.2, 0.14, 0.18, 1.34, 0.62),
    (2, "batch", "dense", "column"): (0.82, 0.36, 0.28, 0.49, 1.44, 1.18),
    (2, "batch", "hash", "chunk"): (0.49, 0.29, 0.19, 0.25, 1.41, 0.99),
    (2, "batch", "hash", "column"): (1.26, 0.83, 0.6, 1.34, 3.15, 3.44),
    (2, "batch", "march", "chunk"): (7.78, 2.62, 2.88, 0.49, 16, 2.13),
    (2, "batch", "march", "column"): (13.2, 4.65, 6.31, 1.85, 24.4, 5.4),
    (2, "online", "binary", "chunk"): (1.91, 1.33, 0.95, 0.64, 7.07, 3.27),
    (2, "online", "binary", "column"): (4.62, 2.72, 3.16, 2.62, 12.9, 8.06),
    (2, "online", "dense", "chunk"): (17.1, 4.45, 4.87, 0.77, 74.7, 3.04),
    (2, "online", "dense", "column"): (9.1, 6.26, 10.1, 1.37, 112, 4.13),
    (2, "online", "hash", "chunk"): (1.81, 1.32, 0.88, 0.42, 6.2, 2.57),
    (2, "online", "hash", "column"): (2.44, 1.82, 1.62, 1.73, 7.12, 5.43),
    (2, "online", "march", "chunk"): (9.1, 3.54, 3.52, 0.58, 20.4, 3.12),
    (2, "online", "march", "column"): (14.8, 5.48, 7.37, 1.88, 28.2, 5.67),
    (8, "batch", "binary", "chunk"): (0.43, 0.34, 0.23, 0.29, 1.67, 1.23),
    (8, "batch", "binary", "column"): (3.01, 2.2, 2.22, 2.52, 9.73, 8.16),
    (8, "batch", "dense", "chunk"): (0.32, 0.16, 0.11, 0.13, 0.83, 0.41),
    (8, "batch", "dense", "column"): (0.84, 0.38, 0.28, 0.48, 1.54, 1.21),
    (8, "batch", "hash", "chunk"): (0.33, 0.19, 0.13, 0.16, 0.87, 0.6),
    (8, "batch", "hash", "column"): (1.31, 0.87, 0.6, 1.33, 3.36, 3.57),
    (8, "batch", "march", "chunk"): (3.41, 1.34, 1.48, 0.28, 10.1, 1.24),
    (8, "batch", "march", "column"): (15.5, 5.14, 6.35, 1.84, 26.2, 5.79),
    (8, "online", "binary", "chunk"): (0.83, 0.59, 0.43, 0.33, 3.25, 1.49),
    (8, "online", "binary", "column"): (4.71, 2.76, 3.03, 2.57, 14, 8.31),
    (8, "online", "dense", "chunk"): (6.23, 2.04, 2.18, 0.43, 33.6, 1.68),
    (8, "online", "dense", "column"): (32.7, 6.57, 9.32, 1.27, 109, 4.28),
    (8, "online", "hash", "chunk"): (0.79, 0.6, 0.4, 0.24, 2.88, 1.27),
    (8, "online", "hash", "column"): (2.55, 1.89, 1.58, 1.68, 7.77, 5.48),
    (8, "online", "march", "chunk"): (3.81, 1.69, 1.71, 0.32, 11.9, 1.7),
    (8, "online", "march", "column"): (17.3, 5.93, 7.35, 1.84, 30.3, 5.96),
    (32, "batch", "binary", "chunk"): (0.38, 0.29, 0.21, 0.21, 1.44, 0.95),
    (32, "batch", "binary", "column"): (4.28, 3.6, 2.88, 2.45, 16.4, 11.6),
    (32, "batch", "dense", "chunk"): (0.32, 0.18, 0.12, 0.11, 0.77, 0.37),
    (32, "batch", "dense", "column"): (0.93, 0.54, 0.36, 0.47, 2.34, 1.69),
    (32, "batch", "hash", "chunk"): (0.33, 0.2, 0.14, 0.13, 0.84, 0.53),
    (32, "batch", "hash", "column"): (1.64, 1.19, 0.76, 1.32, 5.04, 4.41),
    (32, "batch", "march", "chunk"): (2.07, 1.06, 1.25, 0.21, 8.78, 1.01),
    (32, "batch", "march", "column"): (20, 8.03, 8.44, 1.78, 36.8, 7.42),
    (32, "online", "binary", "chunk"): (0.69, 0.51, 0.37, 0.25, 2.7, 1.18),
    (32, "online", "binary", "column"): (7.06, 4.4, 3.81, 2.51, 23.1, 11.7),
    (32, "online", "dense", "chunk"): (3.57, 1.55, 1.84, 0.33, 23.5, 1.35),
    (32, "online", "dense", "column"): (44.6, 10.7, 17, 1.2, 175, 5.77),
    (32, "online", "hash", "chunk"): (0.61, 0.48, 0.33, 0.2, 2.26, 1.06),
    (32, "online", "hash", "column"): (3.59, 2.8, 1.93, 1.63, 12.6, 7.1),
    (32, "online", "march", "chunk"): (2.3, 1.28, 1.41, 0.25, 9.98, 1.3),
    (32, "online", "march", "column"): (22.6, 9.23, 9.66, 1.78, 43.5, 7.61),
}


def speed_up(name: str, branching: int, setting: str, matcher: str) -> float | None:
    """Times as fast as its baseline that the paper's MSCM is in this cell; None where the paper has no such cell."""
    if name not in SETS or (branching, setting, matcher, "chunk") not in TIMES:
        return None
    at = SETS.index(name)
    return TIMES[branching, setting, matcher, "column"][at] / TIMES[branching, setting, matcher, "chunk"][at]
