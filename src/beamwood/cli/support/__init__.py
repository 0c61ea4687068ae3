"""What several verbs share: options, the reading of what was given, filters from files, output."""
