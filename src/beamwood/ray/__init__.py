"""Beyond one machine, over Ray (the extra `ray`): training and scoring on a cluster, with the bits of one machine."""

from beamwood.ray.predict import predict
from beamwood.ray.train import train, train_text

__all__ = ["predict", "train", "train_text"]
