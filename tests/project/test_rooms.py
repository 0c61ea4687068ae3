"""The source in, what its modules may not do out: read each other's private parts, or import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import beamwood

SOURCE = Path(beamwood.__file__).parent
MODULES = {
    ".".join(("beamwood", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
# Attributes that Python itself spells with an underscore, though they are for everybody's use.
SPELLED_SO = {"_make", "_asdict", "_replace", "_fields", "_exit"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in SPELLED_SO


def defined_in(tree: ast.AST) -> set[str]:
    """Every name that a module gives to something: functions, classes, fields, self.x = …"""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def reach_ins(path: Path) -> Iterator[str]:
    """Private names that a module reads, off anything but self and cls, without having defined them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = defined_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own:
            itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inherited = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            if not itself and not inherited:
                yield f"{path.name}:{node.lineno} reads {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("beamwood."):
            for alias in node.names:
                if private(alias.name):
                    yield f"{path.name}:{node.lineno} imports {node.module}.{alias.name}"


def imports(path: Path) -> set[str]:
    """The modules of beamwood that a module imports when it runs, wherever in it; what only types need is left out."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & set(MODULES)


def test_no_module_reads_private_parts_of_another() -> None:
    found = [line for path in MODULES.values() for line in reach_ins(path)]
    assert not found, "\n".join(found)


def packages_of(name: str) -> set[str]:
    """The packages around a module, whose __init__ runs when it is imported; that of beamwood itself always has."""
    pieces = name.split(".")
    return {".".join(pieces[:end]) for end in range(2, len(pieces))}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {}
    for name, path in MODULES.items():
        direct = imports(path) - {"beamwood", name}
        around = set().union(*(packages_of(other) for other in direct)) if direct else set()
        graph[name] = (direct | around) - packages_of(name) - {name}
    done: set[str] = set()

    def walk(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            pytest.fail(" → ".join((*above[above.index(name) :], name)))
        if name not in done:
            for below in sorted(graph[name]):
                walk(below, (*above, name))
            done.add(name)

    for name in graph:
        walk(name, ())


def test_a_reach_in_and_a_lazy_import_would_be_found(tmp_path: Path) -> None:
    source = tmp_path / "guest.py"
    source.write_text(
        "from beamwood.model import Model, _precision\n"
        "def f(model):\n    from beamwood import plot\n    return model._parts\n"
        "class Own:\n    def __init__(self):\n        self._mine = 1\n    def same(self, other):\n"
        "        return self._mine == other._mine\n"
    )
    assert sorted(reach_ins(source)) == [
        "guest.py:1 imports beamwood.model._precision",
        "guest.py:4 reads model._parts",
    ]
    assert imports(source) >= {"beamwood.model", "beamwood.plot"}
