"""What people hand in: arguments, matrices, texts, files and label tables, checked and in one form."""
