"""A model in, a folder of parts for several machines out; and the parts in, the answers of the model out."""
