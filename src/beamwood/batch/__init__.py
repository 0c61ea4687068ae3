"""Files that do not fit into memory: rows in blocks, answers as they are found, a run that can go on after a kill."""
