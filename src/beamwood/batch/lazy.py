"""lazy.py — the path of a model file and how to load it in, a handle that loads it on first use out.

The law: a handle holds a path, not a model, so that its pickle has some hundred bytes wherever the model lies. Every
process loads the file once for all its handles; mapped, the processes of one machine share its pages. A handle that
knows a version gives that version's answers, or an error says which file is another one.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from beamwood.engine import Engine
from beamwood.errors import FormatError, SettingsError
from beamwood.model import Model, load
from beamwood.storage.draft import checked_path

_MEMORY = ("map", "read", "huge")
_loaded: dict[tuple[Any, ...], tuple[tuple[int, ...], Model]] = {}  # of this process: the file as it was, the model
_one_at_a_time = threading.Lock()


class Lazy:
    """A light handle of a model file for other processes and machines: it loads the model on first use.

    It does all that a `Model` does: `handle.search_many(texts)` loads the file, if this process has not done so yet,
    and asks the model. Pickled it is a path and these settings, so hand it to workers instead of the model.

    path:    where the file lies on every machine that uses the handle; a relative one is meant from here.
    memory:  as in `load`; "map" lets all processes of a machine share one copy.
    version: the `version` that the model must have; None: that of the file here, or any if there is no file here.
    verify:  read everything once and compare checksums, in every process.
    encoder: the name of what makes vectors of texts, as in `load`.
    engine:  `layout`, `matcher` and `isa` as in `Model.using`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        memory: str = "map",
        *,
        version: str | None = None,
        verify: bool = False,
        encoder: str | None = None,
        **engine: str,
    ) -> None:
        self._path = os.path.abspath(checked_path(path))
        if not isinstance(memory, str) or memory not in _MEMORY:
            raise SettingsError(f"memory is {memory!r:.80}; expected 'map', 'read' or 'huge'.")
        if version is not None and not isinstance(version, str):
            raise SettingsError(f"version is {version!r:.80}; expected a string, as model.version gives it, or None.")
        if encoder is not None and not isinstance(encoder, str):
            raise SettingsError(
                f"encoder is a {type(encoder).__name__}; expected a name, which can be pickled, or None."
            )
        if not {*engine} <= {"layout", "matcher", "isa"}:
            raise SettingsError(f"Lazy has no argument {sorted(engine)[0]!r}; expected layout, matcher or isa.")
        Engine(**engine)  # type: ignore[arg-type]  # says at once what is wrong with it
        self._memory, self._verify, self._engine = memory, bool(verify), tuple(sorted(engine.items()))
        if version is None and os.path.isfile(self._path):
            version = load(self._path).version
        self._version, self._encoder = version, encoder

    @property
    def path(self) -> str:
        """Where the file lies."""
        return self._path

    @property
    def expected_version(self) -> str | None:
        """The version that the model must have; None: any."""
        return self._version

    @property
    def model(self) -> Model:
        """The model: loaded now, or found among those that this process has loaded."""
        now = self._file()
        with _one_at_a_time:
            was, model = _loaded.get(self._key, (None, None))
            if model is None or was != now:
                model = load(self._path, self._memory, self._verify, encoder=self._encoder)
                model = model.using(**dict(self._engine)) if self._engine else model  # type: ignore[arg-type]
                _loaded[self._key] = (now, model)
        if self._version not in (None, model.version):
            raise FormatError(
                f"{self._path} on {socket.gethostname()} has version {model.version}; expected {self._version}. "
                "Bring the same file to every machine, or make the handle anew."
            )
        return model

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self._path, self._memory, self._verify, self._encoder, self._engine)

    def _file(self) -> tuple[int, ...]:
        """What tells one file from its successor of the same name."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise FormatError(
                f"{self._path} cannot be opened on {socket.gethostname()} ({error.strerror}); expected a model file. "
                "Bring it there, or use a path that every machine sees."
            ) from None
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def __getattr__(self, name: str) -> Any:
        """All that a Model has; asking for what it has not loads nothing."""
        if name.startswith("_") or not hasattr(Model, name):
            raise AttributeError(f"{type(self).__name__} and Model have no attribute {name!r}")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"<beamwood.Lazy: {self._path}, memory={self._memory!r}, version {self._version or 'not fixed'}>"
