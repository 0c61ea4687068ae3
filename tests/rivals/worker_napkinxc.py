"""A request in (a JSON file), files out: napkinXC in its own interpreter."""

import json
import sys
from pathlib import Path

import scipy.sparse as sp
from napkinxc.models import PLT


def labels_of(y):
    """Lists of labels, as napkinXC wants them."""
    Y = sp.csr_matrix(sp.load_npz(y))
    return [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def train(x, y, folder, **how):
    """Trains on npz files; the model is in the folder."""
    PLT(folder, threads=1, seed=1, **how).fit(sp.csr_matrix(sp.load_npz(x)), labels_of(y))


def predict(x, folder, out, k, **how):
    """Saves what the exact search of a model in a folder predicts. It reads norm and ensemble from its caller alone."""
    model = PLT(folder, threads=1, tree_search_type="exact", **how)
    model.load()
    rows = model.predict_proba(sp.csr_matrix(sp.load_npz(x)), top_k=k)
    Path(out).write_text(json.dumps([[[int(label), float(score)] for label, score in row] for row in rows]))


request = json.loads(Path(sys.argv[1]).read_text())
{"train": train, "predict": predict}[request.pop("verb")](**request)
