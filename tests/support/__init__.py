"""What tests share: models, problems, strategies, servers and processes to test with."""
