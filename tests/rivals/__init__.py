"""Tests with the rivals really installed, in environments of their own: `make test-rivals`."""
