"""Campaigns on a cluster: `make test-ray` and its sisters."""
