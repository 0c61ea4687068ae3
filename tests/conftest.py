"""Tests import the modules beside them (training.py)."""
