"""A request in (a JSON file), files out: libpecos in its own interpreter."""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pecos.utils.featurization.text.vectorizers import Vectorizer
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel


def train(x, y, folder, branching, bias, **how):
    """Trains on npz files and saves the model."""
    X = sp.csr_matrix(sp.load_npz(x), dtype=np.float32)
    Y = sp.csc_matrix(sp.load_npz(y), dtype=np.float32)
    vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=1)
    chain = Indexer.gen(vectors, nr_splits=branching, max_leaf_size=branching, seed=0, threads=1)
    XLinearModel.train(X, Y, C=chain, bias=bias, threads=1).save(folder)


def predict(x, folder, out, beam, k, post_processor, kind):
    """Saves what a model in a folder predicts."""
    X = sp.csr_matrix(sp.load_npz(x), dtype=np.float32)
    model = XLinearModel.load(folder, is_predict_only=True, weight_matrix_type=kind)
    P = model.predict(X, beam_size=beam, only_topk=k, post_processor=post_processor, threads=1)
    sp.save_npz(out, sp.csr_matrix(P))


def vectorize(texts, config, folder, out):
    """Trains a vectorizer, saves and loads it, and saves the rows that it then makes."""
    lines = json.loads(Path(texts).read_text())
    Vectorizer.train(lines["train"], config=config).save(folder)
    sp.save_npz(out, sp.csr_matrix(Vectorizer.load(folder).predict(lines["test"])))


request = json.loads(Path(sys.argv[1]).read_text())
{"train": train, "predict": predict, "vectorize": vectorize}[request.pop("verb")](**request)
