"""Named groups of features: words beside vectors, each scaled by itself, with a weight that held-out rows choose."""
