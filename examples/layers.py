"""Weights of your own in, a model out: a tree from its layers, and back, bit for bit."""

import numpy as np
import scipy.sparse as sp

import beamwood as bw

top = bw.Layer(
    weights=sp.csc_array(np.array([[1, 0], [0, 1], [0, 0]], np.float32)),  # 3 features x 2 nodes
    parent=np.zeros(2, np.int64),
)
leaves = bw.Layer(
    weights=sp.csc_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, -1]], np.float32)),  # 3 x 4 labels
    parent=np.array([0, 0, 1, 1]),
    bias=np.array([0, 0, 0, 0.5], np.float32),
)
model = bw.Model.from_layers([top, leaves], activation="sigmoid", names=["apple", "pear", "oak", "fir"])
labels, scores = model.topk(np.array([[1, 0, 2]], np.float32), k=2)
print([(model.name(label), round(float(score), 3)) for label, score in zip(labels[0], scores[0], strict=True)])
for given, found in zip([top, leaves], model.layers(), strict=True):
    assert (given.weights != found.weights).nnz == 0
