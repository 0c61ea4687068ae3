"""ask: a model in, what it answers, measures and is made of out: one file per verb."""
