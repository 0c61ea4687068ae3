"""What is known about words: which ones say little, by language, and how somebody's own tokenizer is known by."""
