"""beamwood: train and serve sparse linear extreme multi-label ranking trees."""

from beamwood._version import __version__
from beamwood.client import Client, ServerError
from beamwood.engine import LayerChoice, Stats
from beamwood.errors import BeamwoodError, DataError, FormatError, SettingsError
from beamwood.explain import Explanation
from beamwood.filters import Filter
from beamwood.hits import Hit, Hits
from beamwood.inputs import datasets
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.inputs.text_block import TextBlock
from beamwood.metrics import Metrics, evaluate
from beamwood.model import Model, load
from beamwood.storage import stream
from beamwood.storage.layers import Layer
from beamwood.training.report import Report
from beamwood.training.settings import Settings
from beamwood.training.train import train, train_text

__all__ = [
    "BeamwoodError",
    "Client",
    "DataError",
    "Explanation",
    "Filter",
    "FittedText",
    "FormatError",
    "Hit",
    "Hits",
    "Layer",
    "LayerChoice",
    "Metrics",
    "Model",
    "Report",
    "ServerError",
    "Settings",
    "SettingsError",
    "Stats",
    "TextBlock",
    "TextFeatures",
    "__version__",
    "datasets",
    "evaluate",
    "load",
    "stream",
    "train",
    "train_text",
]
