"""A request in (a JSON file), files out: omikuji in its own interpreter."""

import json
import sys
from pathlib import Path

import omikuji
import scipy.sparse as sp


def train(data, folder, loss, **how):
    """Trains on a text file and saves the model."""
    settings = omikuji.Model.default_hyper_param()
    settings.linear_loss_type = omikuji.LossType[loss].value
    for name, value in how.items():
        setattr(settings, name, value)
    omikuji.Model.train_on_data(data, settings, 1).save(folder)


def predict(x, folder, out, beam, k):
    """Saves what a model in a folder predicts."""
    X = sp.csr_matrix(sp.load_npz(x))
    model = omikuji.Model.load(folder)
    rows = []
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        pairs = list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        rows.append([[int(j), float(s)] for j, s in model.predict(pairs, beam_size=beam, top_k=k)])
    Path(out).write_text(json.dumps(rows))


request = json.loads(Path(sys.argv[1]).read_text())
{"train": train, "predict": predict}[request.pop("verb")](**request)
