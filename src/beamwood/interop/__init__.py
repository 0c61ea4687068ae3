"""Foreign formats, one a file: what others made in, our objects out, and back."""
