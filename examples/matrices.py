"""Sparse matrices in, ranked label ids out: any features, any labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp

import beamwood as bw

rng = np.random.default_rng(0)
X: Any = sp.random(500, 300, density=0.05, random_state=rng, dtype=np.float32, format="csr")
truth = X @ rng.standard_normal((300, 40))
Y = sp.csr_matrix(truth >= np.sort(truth, axis=1)[:, [-3]])  # three labels a row

model = bw.train(X[:400], Y[:400], preset="fast", seed=0, progress=False)
labels, scores = model.topk(X[400:], k=5)  # 100 x 5, best first
print("the first row's labels:", labels[0].tolist())
print(bw.evaluate((labels, scores), Y[400:], at=(1, 3, 5)))
assert model.using(layout="column", matcher="binary").topk(X[400:], k=5)[1].tobytes() == scores.tobytes()
