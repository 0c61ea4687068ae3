"""What runs: supervisor, workers, connections, admission queue, registry of models, log."""
