"""trees.py — a checked problem and settings in, its trees put together out; finished stages stay in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beamwood._version import __version__
from beamwood.storage.activations import Activation
from beamwood.storage.assemble import Assembly
from beamwood.storage.build import Sections
from beamwood.storage.layers import Layer
from beamwood.storage.shape import ModelShape
from beamwood.training.checkpoint import Checkpoint
from beamwood.training.label_vectors import label_vectors
from beamwood.training.matched import matcher_for
from beamwood.training.problem import Problem
from beamwood.training.progress import Update
from beamwood.training.pruned import Emptied
from beamwood.training.report import Report, Stopwatch, peak_bytes
from beamwood.training.settings import Settings
from beamwood.training.stages import keep_layer, keep_shape, keep_tree, kept_layers, kept_shape, restored_tree
from beamwood.training.tree import grow
from beamwood.training.weights import Learner, Skeleton, layer_weights

NEXT_TREE = 1_000_003  # between the seeds of two trees of an ensemble


@dataclass(frozen=True)
class How:
    """What a training is told beside its data."""

    settings: Settings
    seed: int
    threads: int
    max_memory: int | None
    calibrate: int = 0  # rows that probabilities are learnt on
    learn: Learner | None = None  # who works out the weights of a layer; None: this process

    def facts(self) -> dict[str, Any]:
        """What a checkpoint must have been made with, too."""
        return {"beamwood": __version__, "settings": self.settings.to_dict(), "seed": self.seed}


def report_of(problem: Problem, how: How, watch: Stopwatch, shape: ModelShape, needed: int) -> Report:
    """How the training went."""
    return Report(
        version=__version__,
        seed=how.seed,
        threads=how.threads,
        rows=problem.rows,
        features=problem.features,
        labels=problem.labels,
        labels_without_rows=problem.labels_without_rows,
        seconds=tuple(watch.seconds),
        nonzeros=tuple(tree.nonzeros for tree in shape.trees),
        estimated_bytes=needed,
        peak_bytes=peak_bytes(),
        settings=how.settings.to_dict(),
        lexical=shape.lexical,
        calibration=shape.calibration,
    )


def grown_trees(
    problem: Problem,
    how: How,
    watch: Stopwatch,
    unit_rows: bool,
    strings: Sections,
    checkpoint: Checkpoint,
    shapes: Sequence[Skeleton] | None = None,
) -> Assembly:
    """The trees of a problem whose rows are as they will be searched with, put together one after the other.

    shapes: of the trees, where they are known; None: they are grown from the labels' vectors.
    """
    settings = how.settings
    assembly = Assembly(
        Activation.parse(settings.activation),
        unit_rows,
        settings.to_dict(),
        sections=dict(strings),
        beam=settings.beam,
    )
    emptied = Emptied(settings.prune if problem.X.nnz else 0.0)
    if shapes is None:
        grown = _grown(problem, settings, how.seed, how.threads, watch, checkpoint)
    else:
        grown = [(shape, how.seed + tree * NEXT_TREE) for tree, shape in enumerate(shapes)]
    for tree, (shape, tree_seed) in enumerate(grown):
        if restored_tree(checkpoint, assembly, emptied):
            continue
        layers = _tree_layers(problem, shape, how, seed=tree_seed, watch=watch, tree=tree, checkpoint=checkpoint)
        before = len(emptied.found)
        emptied.look(tree, layers)
        with watch.stage(_of("model", tree, settings.trees), 0):
            assembly.add(layers)
            keep_tree(checkpoint, assembly, emptied.found[before:])
            layers.clear()
            assembly.put_aside(getattr(how.learn, "put_aside", None))
    emptied.say()
    return assembly


def _grown(
    problem: Problem, settings: Settings, seed: int, threads: int, watch: Stopwatch, checkpoint: Checkpoint
) -> list[tuple[Skeleton, int]]:
    """The shapes of all trees, each with the seed that it and its weights are made from."""
    seeds = [seed + tree * NEXT_TREE for tree in range(settings.trees)]
    kept = [kept_shape(checkpoint, tree) for tree in range(settings.trees)]
    if all(shape is not None for shape in kept):
        return [(shape, tree_seed) for shape, tree_seed in zip(kept, seeds, strict=True) if shape is not None]
    with watch.stage("label vectors", problem.rows):
        vectors = label_vectors(
            problem.X,
            problem.Y,
            kind=settings.vectors,
            label_features=problem.label_features,
            threads=threads,
        )
    kind, parents = (settings.tree, None) if isinstance(settings.tree, str) else ("given", settings.tree)
    grown: list[tuple[Skeleton, int]] = []
    for tree, (shape, tree_seed) in enumerate(zip(kept, seeds, strict=True)):
        if shape is not None:
            grown.append((shape, tree_seed))
            continue
        with watch.stage(_of("tree", tree, settings.trees), 0):
            fresh = grow(
                vectors,
                kind=kind,
                parents=parents,
                branching=settings.branching,
                max_leaf=settings.max_leaf,
                max_depth=settings.max_depth or None,
                seed=tree_seed,
                threads=threads,
                frequency=problem.rows_of_label,
            )
            keep_shape(checkpoint, tree, fresh)
        grown.append((fresh, tree_seed))
    return grown


def _tree_layers(
    problem: Problem,
    shape: Skeleton,
    how: How,
    *,
    seed: int,
    watch: Stopwatch,
    tree: int,
    checkpoint: Checkpoint,
) -> list[Layer]:
    """The layers of one tree, each a stage of its own."""
    settings, threads = how.settings, how.threads
    layers: list[Layer] = []
    done = kept_layers(checkpoint, tree, shape)
    updates: list[Update] = []
    learned = layer_weights(
        problem,
        shape,
        settings,
        seed=seed,
        threads=threads,
        match=matcher_for(problem, settings, threads),
        watch=lambda depth: updates[depth],
        done=done,
        learn=how.learn,
    )
    for depth in range(len(shape)):
        name = f"{_of('weights', tree, settings.trees)}, layer {depth + 1}/{len(shape)}"
        with watch.stage(name, problem.rows) as update:
            updates.append(update)
            layers.append(next(learned))
            if depth >= len(done):
                keep_layer(checkpoint, tree, depth, layers[-1])
    return layers


def _of(stage: str, tree: int, trees: int) -> str:
    return stage if trees == 1 else f"{stage} {tree + 1}/{trees}"
