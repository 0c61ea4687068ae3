"""Foreign formats, one per file: what others made in, our objects out, and back."""

from beamwood.interop.convert import read, read_text, write
from beamwood.interop.foreign import Imported, ImportedText
from beamwood.interop.libmultilabel import from_libmultilabel
from beamwood.interop.nodes import from_nodes
from beamwood.interop.tree_text import TreeText, read_tree, tree_of

__all__ = [
    "Imported",
    "ImportedText",
    "TreeText",
    "from_libmultilabel",
    "from_nodes",
    "read",
    "read_text",
    "read_tree",
    "tree_of",
    "write",
]
