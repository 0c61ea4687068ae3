"""beamwood: train and serve sparse linear extreme multi-label ranking trees."""

from beamwood.client import Client, ServerError
from beamwood.engine import LayerChoice, Stats
from beamwood.errors import BeamwoodError, DataError, FormatError, SettingsError
from beamwood.explain import Explanation
from beamwood.filters import Filter
from beamwood.hits import Hit, Hits
from beamwood.layers import Layer
from beamwood.loading import load
from beamwood.metrics import Metrics, evaluate
from beamwood.model import Model
from beamwood.report import Report
from beamwood.settings import Settings
from beamwood.text import FittedText, TextBlock, TextFeatures
from beamwood.train import train, train_text

__version__ = "0.1.0"

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
    "evaluate",
    "load",
    "train",
    "train_text",
]
