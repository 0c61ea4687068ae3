"""How a model is stored: layers to the arrays of a tree and back, one file, names and keys."""
