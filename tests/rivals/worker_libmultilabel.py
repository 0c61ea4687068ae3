"""A request in (a JSON file), files out: LibMultiLabel, and beamwood beside it, in one process."""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from libmultilabel import linear

from beamwood.interop import from_libmultilabel


def compare(x, y, out, beams, options, trees, **how):
    """Trains, takes the model over in process, and saves what both predict."""
    np.random.seed(3)
    X, Y = sp.csr_matrix(sp.load_npz(x), dtype=np.float64), sp.csr_matrix(sp.load_npz(y), dtype=np.float64)
    if trees == 1:
        model = linear.train_tree(Y, X, options, verbose=False, **how)
    else:
        model = linear.train_ensemble_tree(Y, X, options, n_trees=trees, verbose=False, seed=3, **how)
    ours = from_libmultilabel(model)
    found = {}
    for beam in beams:
        found[f"theirs_{beam}"] = model.predict_values(X, beam_width=beam)
        found[f"ours_{beam}"] = ours.predict(X.astype(np.float32), k=Y.shape[1], beam=beam).toarray()
    np.savez(out, depth=ours.info()["depth"], **found)


request = json.loads(Path(sys.argv[1]).read_text())
{"compare": compare}[request.pop("verb")](**request)
