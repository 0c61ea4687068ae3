"""mcp: requests of an agent in, answers of a model out: the Model Context Protocol over standard input and output."""
