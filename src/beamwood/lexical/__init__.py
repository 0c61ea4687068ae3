"""Labels as sparse vectors: inverted lists, BM25 weights, exact indexes."""
