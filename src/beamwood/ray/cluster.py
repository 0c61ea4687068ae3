"""cluster.py — an address in, a connection to a Ray cluster out; and what Ray says when it fails, in one line.

Ray is imported here and nowhere else, when something is asked of it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from beamwood._version import __version__
from beamwood.errors import BeamwoodError, DataError, FormatError, SettingsError

TRIED = ((2, 60), (3, 0))  # Ray from this version on, and below that one
_PATIENCE = 5.0  # seconds for the head of a cluster to take a connection
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # of HTTP/2, and no settings
_FRAME, _SETTINGS = 9, 4  # bytes of the head of a frame; what its fourth byte is in the first one of a server
_HOW = "Install it: in a clone, pip install '.[ray]'."
_OURS = {kind.__name__: kind for kind in (DataError, FormatError, SettingsError, BeamwoodError)}
_RAISED = re.compile(rf"^beamwood\.errors\.({'|'.join(_OURS)}): (.+)$", re.MULTILINE)  # in a traceback
_TOKEN = re.compile("AuthenticationError|InvalidAuthToken")  # in what Ray says
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '(\w+)", re.MULTILINE)


def imported(part: str = "ray") -> Any:
    """Ray, or a part of it such as "ray.data"; an error in one line where it is missing or of another version."""
    try:
        found = importlib.import_module("ray")
        version = tuple(int(number) for number in found.__version__.split(".")[:2])
    except (ImportError, AttributeError, ValueError):
        raise SettingsError(f"Ray is not installed here; expected it for work on a cluster. {_HOW}") from None
    if not TRIED[0] <= version < TRIED[1]:
        raise SettingsError(
            f"Ray is version {found.__version__}; expected {_words(TRIED[0])} or newer, below {_words(TRIED[1])}, "
            f"which were tried. {_HOW}"
        )
    try:
        return importlib.import_module(part)
    except ImportError as error:
        raise SettingsError(f"{part} cannot be imported ({error}); expected ray[data]. {_HOW}") from None


def _words(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


@contextlib.contextmanager
def connected(address: str | None = None, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Ray, connected: to `address`, or as it is already, or to RAY_ADDRESS, or to a cluster of this machine only.

    A connection that was made here ends here; one that was there stays. environment: of the processes that are started
    over a connection made here.
    """
    if address is not None and (not isinstance(address, str) or not address):
        raise SettingsError(f"address is {address!r:.80}; expected 'HOST:PORT', 'auto', 'local' or None.")
    ray = imported()
    if ray.is_initialized():
        yield ray
        return
    _check_reachable(address if address is not None else os.environ.get("RAY_ADDRESS"))
    given = {"runtime_env": {"env_vars": dict(environment)}} if environment else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="warning", configure_logging=False, **given)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if _TOKEN.search(f"{error} {error.__cause__}"):
            raise SettingsError(
                f"the Ray cluster at {address or 'this machine'} asks for a token that this program has not; expected "
                "the one of its head. Copy ~/.ray/auth_token of the head to every machine and set RAY_AUTH_MODE=token "
                "there, or start the cluster with RAY_AUTH_MODE=disabled."
            ) from None
        said = str(error).strip().partition("\n")[0]
        raise SettingsError(
            f"the Ray cluster at {address or 'this machine'} cannot be used ({said:.200}). "
            "Start one with `ray start --head`, or check the address."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Ray itself would try for minutes."""
    if address in (None, "", "auto", "local"):
        return
    host, _, port = str(address).removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise SettingsError(f"address is {address!r:.80}; expected HOST:PORT, for example 10.0.0.1:6379.")
    try:
        with socket.create_connection((host, int(port)), _PATIENCE) as connection:
            answers = _is_a_head(connection)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"no Ray cluster answers at {address} ({error}). "
            "Check the address, that `ray start --head` runs there, and that no firewall lies between."
        ) from None
    if not answers:
        raise SettingsError(
            f"what answers at {address} is no head of a Ray cluster; expected one. Check the port: `ray start --head` "
            "says which it is, 6379 unless it was told another."
        )


def _is_a_head(connection: socket.socket) -> bool:
    """Whether the other end speaks HTTP/2, as heads do: it greets with its settings. With TLS nobody can tell."""
    if os.environ.get("RAY_USE_TLS", "0").lower() not in ("0", "false", ""):
        return True
    try:
        connection.sendall(_PREFACE)
        frame = b""
        while len(frame) < _FRAME and (some := connection.recv(_FRAME - len(frame))):
            frame += some
    except OSError:  # it says nothing, or hangs up
        return False
    return len(frame) == _FRAME and frame[3] == _SETTINGS


@contextlib.contextmanager
def plainly(ray: Any) -> Iterator[None]:
    """What went wrong on another machine, as the error that it would be here."""
    try:
        yield
    except Exception as error:
        if isinstance(error, BeamwoodError) and not isinstance(error, ray.exceptions.RayError):
            raise
        found = _ours_in(error)
        if found is None and not isinstance(error, ray.exceptions.RayError):
            raise
        raise (found or _of_ray(ray, error)) from (None if found else error)


def _ours_in(error: Exception) -> BeamwoodError | None:
    """Our own error from inside Ray's, which carries the traceback of the other machine as text, often only that."""
    text = str(error)
    found = _RAISED.findall(text)
    if found:
        kind, said = found[-1]
        return _OURS[kind](said)
    missing = _MISSING.findall(text)
    if missing:
        return SettingsError(
            f"a machine of the cluster has no module {missing[-1]!r}; expected beamwood {__version__} there too. "
            "Install it on every machine, or give it in a runtime environment of Ray."
        )
    return None


def _of_ray(ray: Any, error: Exception) -> BeamwoodError:
    """What Ray says, in one line and with what to do."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return DataError(
            "a machine of the cluster ran out of memory and Ray ended a task there, several times. "
            "Give machines with more memory, or start Ray with fewer CPUs per machine."
        )
    said = str(error).strip().rpartition("\n")[2]
    return DataError(
        f"the Ray cluster could not go on ({type(error).__name__}: {said:.300}). "
        "Check its machines with `ray status`; a training with a checkpoint goes on where it was."
    )


def same_version(expected: str) -> None:
    """Refuses to work for another version of beamwood than this machine has: it might give other bits."""
    if expected != __version__:
        raise SettingsError(
            f"beamwood on {socket.gethostname()} has version {__version__}; expected {expected}, as where the work "
            "was started. Install the same version on every machine."
        )
