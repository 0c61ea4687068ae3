"""Rows with labels in, what settings are worth on rows that a model has not seen out: k-fold measures, and a search."""
