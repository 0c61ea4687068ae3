"""life — what happens to a model after training: probabilities, cuts."""
