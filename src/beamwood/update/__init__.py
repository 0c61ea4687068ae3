"""Labels that come and go: new ones find their place in the trees of a model, old ones leave it, the rest stays."""
