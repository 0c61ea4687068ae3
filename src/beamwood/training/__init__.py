"""Training, a stage per file: (X, Y) and settings in, the arrays of a model out."""
