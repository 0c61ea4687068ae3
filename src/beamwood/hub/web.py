"""web.py — a web address in, a verified file in the cache out: resumed where it was cut, in place only when complete.

The law: a name in the cache leads to a whole, checked model file or to nothing, whatever was killed or cut off before.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from beamwood._version import __version__
from beamwood.errors import FormatError, warn
from beamwood.hub import cache
from beamwood.hub.address import WebAddress
from beamwood.storage import store

TRIES = 5  # without a byte of progress
_PAUSE, _TIMEOUT, _BLOCK = 0.2, 30.0, 1 << 20
_NOT_MODIFIED, _PARTIAL, _RANGE = 304, 206, 416
_SAYS = {
    401: "needs a login (HTTP 401); expected a file that may be read without. Download it yourself and load the file",
    403: "may not be read (HTTP 403); expected a file that may. Download it yourself and load the file",
    404: "is not there (HTTP 404); expected a model file. Check the address",
    410: "is gone (HTTP 410); expected a model file. Check the address",
}


def fetched_from_web(address: WebAddress) -> Path:
    """The file in the cache."""
    name = address.sha256 or "url-" + hashlib.sha256(address.url.encode()).hexdigest()
    target = cache.folder("web") / f"{name}.bw"
    if address.sha256 is None or not target.exists():
        try:
            with cache.one_at_a_time(target.with_suffix(".lock")):
                if address.sha256 is None or not target.exists():
                    _Download(address, target).run()
        except OSError as error:
            raise cache.full_disk(error, str(address), None) from error
        cache.trim(target)
    return cache.used(target)


class _Download:
    """One file on its way: `part` grows until it is complete, `target` is where it then goes."""

    def __init__(self, address: WebAddress, target: Path) -> None:
        self._address, self._target = address, target
        self._part, self._notes = target.with_suffix(".part"), target.with_suffix(".json")
        self._about: dict[str, Any] = {}  # what the server says of the file: etag, size

    def run(self) -> None:
        """Fetches, checks, puts in place."""
        tries, had = 0, self._had()
        while not self._step():
            tries = tries + 1 if self._had() <= had else 1
            had = self._had()
            if tries >= TRIES:
                raise FormatError(
                    f"{self._address} was cut off {TRIES} times after {had:,} bytes; expected "
                    f"{self._about.get('size') or 'more'}. Load it again: it goes on from there."
                )
            time.sleep(_PAUSE * tries)
        if self._part.exists():
            self._check()
            self._notes.unlink(missing_ok=True)
            os.replace(self._part, self._target)
            if self._about.get("etag"):
                self._notes.write_text(json.dumps({"etag": self._about["etag"]}), encoding="utf-8")
            self._part_notes.unlink(missing_ok=True)

    def _step(self) -> bool:
        """One request; whether everything is there after it."""
        try:
            with _opener(self._address.url).open(self._request(), timeout=_TIMEOUT) as reply:
                return self._take(reply)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NOT_MODIFIED:
                self._drop()
                return True
            if error.code == _RANGE:
                self._drop()
                return False
            says = _SAYS.get(error.code, f"was answered with HTTP {error.code}; expected the file. Try again later")
            raise FormatError(f"{self._address} {says}.") from None
        except (urllib.error.URLError, ConnectionError, TimeoutError, http.client.HTTPException) as error:
            return self._without_network(error)

    def _without_network(self, error: Exception) -> bool:
        """Goes on with a copy from before where there is one; asks again where some of the file has come."""
        if self._had() or self._about:
            return False
        why = str(getattr(error, "reason", None) or error or type(error).__name__)
        if self._address.sha256 is None and self._target.exists():
            warn(f"{self._address} cannot be reached ({why}); the copy that was fetched before is used.")
            return True
        raise FormatError(f"{self._address} cannot be reached ({why}). Check the network and the address.") from None

    def _request(self) -> urllib.request.Request:
        """Asks for what is missing; or, of an unchecked file, only for a newer one."""
        request = urllib.request.Request(self._address.url, headers={"User-Agent": f"beamwood/{__version__}"})
        request.add_header("Accept-Encoding", "identity")
        etag = _note(self._part_notes)
        if self._had() and (etag or self._address.sha256):
            request.add_header("Range", f"bytes={self._had()}-")
            if etag:
                request.add_header("If-Range", etag)
        elif self._address.sha256 is None and self._target.exists() and _note(self._notes):
            request.add_header("If-None-Match", str(_note(self._notes)))
        return request

    def _take(self, reply: Any) -> bool:
        """Writes what comes; whether that was all."""
        had = self._had() if reply.status == _PARTIAL else 0
        length = reply.headers.get("Content-Length", "")
        size = had + int(length) if length.isdigit() else None
        etag = reply.headers.get("ETag")
        strong = etag if etag and not etag.startswith("W/") else None
        self._about = {"size": size, "etag": strong}
        self._refuse_what_cannot_fit(size, had)
        self._part_notes.write_text(json.dumps({"etag": strong}), encoding="utf-8")
        most = cache.limit()
        try:
            with open(self._part, "r+b" if had else "wb") as part:
                part.seek(had)
                while block := reply.read(_BLOCK):
                    had += len(block)
                    if had > most:
                        self._refuse_what_cannot_fit(had, 0)
                    part.write(block)
                part.truncate()
                part.flush()
                os.fsync(part.fileno())
        except (ConnectionError, TimeoutError, http.client.HTTPException):
            return False
        except OSError as error:
            self._drop()
            raise cache.full_disk(error, str(self._address), size) from error
        return size is None or had >= size

    def _refuse_what_cannot_fit(self, size: int | None, had: int) -> None:
        if size is None:
            return
        if size > cache.limit():
            self._drop()
            raise FormatError(
                f"{self._address} has {size:,} bytes or more; expected at most {cache.limit():,}, what the cache may "
                "hold. Allow more with BEAMWOOD_CACHE_SIZE, for example 100G."
            )
        if shutil.disk_usage(self._target.parent).free < size - had:
            raise FormatError(
                f"{self._address} does not fit on the disk. Free {size - had:,} bytes or name another folder with "
                "BEAMWOOD_CACHE."
            )

    def _check(self) -> None:
        """Refuses a file that is not what was asked for, or no model; it goes then."""
        try:
            with open(self._part, "rb") as part:
                found = _sha256(part)
            if self._address.sha256 not in (None, found):
                raise FormatError(
                    f"{self._address} has the SHA-256 {found}; expected {self._address.sha256}. It was changed or "
                    "damaged, or the checksum is another file's: ask who gave you the address."
                )
            checked_model(self._part, str(self._address))
        except FormatError:
            self._drop()
            raise
        if self._address.sha256 is None:
            warn(
                f"{self._address} came without a checksum; expected one. To be sure that it stays the same file, load "
                f"{self._address}#sha256={found}"
            )

    @property
    def _part_notes(self) -> Path:
        return self._part.with_suffix(".part.json")

    def _had(self) -> int:
        """Bytes that are there already."""
        return self._part.stat().st_size if self._part.exists() else 0

    def _drop(self) -> None:
        for path in (self._part, self._part_notes):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def checked_model(path: Path, called: str) -> None:
    """Refuses a file that is no model, or a damaged one, under the name that people know it by."""
    try:
        store.read_file(path, "map", verify=True)
    except FormatError as error:
        with open(path, "rb") as file:
            head = file.read(64).lstrip()
        if head[:1] == b"<":
            raise FormatError(
                f"{called} is a web page; expected a model file. Give the address of the file itself."
            ) from None
        raise FormatError(str(error).replace(str(path), called)) from None


def _sha256(part: Any) -> str:
    digest = hashlib.sha256()
    while block := part.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _note(path: Path) -> str | None:
    """What the server called the version of a file that is here."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["etag"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and found.isprintable() else None


class _SameSafety(urllib.request.HTTPRedirectHandler):
    """Follows a redirect, but never from https to something less."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The next request."""
        allowed = ("https://",) if req.full_url.startswith("https://") else ("https://", "http://")
        if not newurl.startswith(allowed):
            raise FormatError(
                f"{req.full_url} leads to {newurl:.200}; expected https://. Ask who gave you the address."
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(url: str) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SameSafety)
