"""Campaigns against what we promise: run.py runs them, test_promises.py their short forms."""
