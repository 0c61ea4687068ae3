"""Beyond one machine, over Ray (the extra `ray`): training, scoring, serving on a cluster, with one machine's bits."""

from beamwood.ray.deploy import application, serve
from beamwood.ray.predict import predict
from beamwood.ray.train import train, train_text

__all__ = ["application", "predict", "serve", "train", "train_text"]
