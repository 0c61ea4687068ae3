"""A model in, a folder of parts out, each of which fits a smaller machine; and the parts in, the model's answers out."""
