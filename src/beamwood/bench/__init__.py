"""A plan in, a report out: the paper's benchmark for your models and machine. `beamwood bench PLAN.toml` runs it."""
