"""How large, how slow: what a training and its model will take, before anything is trained."""
