"""life — what happens to a model after training: probabilities, cuts, how two models differ."""
