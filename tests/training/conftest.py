"""A random problem that all tests of training share."""

from __future__ import annotations

from typing import Any

import pytest
from support.problems import random_problem


@pytest.fixture(scope="module")
def problem() -> Any:
    """300 rows, 40 features, 30 labels."""
    return random_problem(300, 40, 30, seed=0)
