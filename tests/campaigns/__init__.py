"""Long campaigns against a real server: `make test-serve`, one file per subject."""
