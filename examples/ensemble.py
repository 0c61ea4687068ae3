"""Two trees in, one model that averages them out: `trees=3`, or models of your own."""

from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw

rng = np.random.default_rng(1)
X: Any = sp.random(600, 200, density=0.1, random_state=rng, dtype=np.float32, format="csr")
Y = sp.csr_matrix((X @ rng.standard_normal((200, 64))) > 1.5)
keep = np.flatnonzero(np.diff(Y.indptr))
X, Y = X[keep], Y[keep]

common: dict[str, Any] = {"branching": 4, "max_leaf": 4, "tree": "balanced", "progress": False}
one = bw.train(X, Y, seed=0, **common)
three = bw.train(X, Y, seed=0, trees=3, **common)
joined = bw.Model.from_trees([one, bw.train(X, Y, seed=1, **common)])
for name, model in (("one tree", one), ("three trees", three), ("two joined", joined)):
    print(f"{name}: precision at 1 {bw.evaluate(model.predict(X, beam=2), Y).precision[1]:.3f}")
