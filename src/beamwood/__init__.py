"""beamwood: train and serve sparse linear extreme multi-label ranking trees. What stands in `__all__` is public."""

from beamwood._version import __version__
from beamwood.batch.lazy import Lazy
from beamwood.client import Client, ServerError
from beamwood.engine import LayerChoice, Stats
from beamwood.errors import BeamwoodError, BeamwoodWarning, DataError, FormatError, MissingFileError, SettingsError
from beamwood.explain import Explanation
from beamwood.filters import Filter
from beamwood.hits import Answers, Hit, Hits
from beamwood.inputs import datasets
from beamwood.inputs.data import LabelledRows, read_npz, read_svmlight, read_xmc, write_xmc
from beamwood.inputs.label_table import LabelTable
from beamwood.inputs.records import Records, iter_records, read_records
from beamwood.inputs.text import FittedText, TextFeatures
from beamwood.inputs.text_block import TextBlock
from beamwood.lexical.index import index, index_text
from beamwood.life.calibration import Calibration
from beamwood.life.cut import Cut
from beamwood.life.diff import AnswerChanges, ChangedQuery, Difference, diff
from beamwood.metrics import Metrics, evaluate
from beamwood.model import Model, load
from beamwood.shards.folder import shard
from beamwood.shards.sharded import Sharded
from beamwood.storage import stream
from beamwood.storage.activations import Activation
from beamwood.storage.compress import Compression
from beamwood.storage.layers import Layer
from beamwood.training.report import Report
from beamwood.training.settings import Settings
from beamwood.training.train import train, train_text
from beamwood.tuning.folds import CrossValidation, cross_validate
from beamwood.tuning.search import Trial
from beamwood.tuning.tune import Tuned, tune
from beamwood.update.labels import LabelUpdate

__all__ = [
    "Activation",
    "AnswerChanges",
    "Answers",
    "BeamwoodError",
    "BeamwoodWarning",
    "Calibration",
    "ChangedQuery",
    "Client",
    "Compression",
    "CrossValidation",
    "Cut",
    "DataError",
    "Difference",
    "Explanation",
    "Filter",
    "FittedText",
    "FormatError",
    "Hit",
    "Hits",
    "LabelTable",
    "LabelUpdate",
    "LabelledRows",
    "Layer",
    "LayerChoice",
    "Lazy",
    "Metrics",
    "MissingFileError",
    "Model",
    "Records",
    "Report",
    "ServerError",
    "Settings",
    "SettingsError",
    "Sharded",
    "Stats",
    "TextBlock",
    "TextFeatures",
    "Trial",
    "Tuned",
    "__version__",
    "cross_validate",
    "datasets",
    "diff",
    "evaluate",
    "index",
    "index_text",
    "iter_records",
    "load",
    "read_npz",
    "read_records",
    "read_svmlight",
    "read_xmc",
    "shard",
    "stream",
    "train",
    "train_text",
    "tune",
    "write_xmc",
]


def __dir__() -> list[str]:
    """What is public, and nothing else: docs/api.md lists the same names, docs/stability.md says what that means."""
    return sorted(__all__)
