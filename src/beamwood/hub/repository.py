"""repository.py — a repository's address in, its model's file out; and a model in, a commit with its card out.

All traffic goes through the package `huggingface_hub`, with its settings: `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beamwood._version import __version__
from beamwood.errors import BeamwoodError, FormatError, SettingsError, install
from beamwood.hub import cache
from beamwood.hub.address import HubAddress, parsed
from beamwood.hub.card import card as make_card
from beamwood.hub.web import checked_model

MODEL = "model.bw"  # what a repository's model is called unless told otherwise
_LETTERS_OF_SHA256 = 64


def fetched_from_hub(address: HubAddress) -> Path:
    """The file in the cache; one that is new there was read and compared with its checksums."""
    hub = _package()
    with _errors_of(hub, address):
        file = address.file or _file_of(hub, address)
        where = {"repo_id": address.repo, "filename": file, "revision": address.revision}
        where |= {"cache_dir": str(cache.folder("hub"))}
        before = hub.try_to_load_from_cache(**where)
        path = Path(hub.hf_hub_download(**where, library_name="beamwood", library_version=__version__))
    if str(path) != before:
        _check(path, str(address))
    cache.used(path)
    cache.trim(path)
    return path


def _file_of(hub: Any, address: HubAddress) -> str:
    """model.bw, or else the only model of a repository."""
    known = hub.try_to_load_from_cache(
        address.repo, MODEL, cache_dir=str(cache.folder("hub")), revision=address.revision
    )
    if isinstance(known, str):
        return MODEL
    try:
        names = hub.HfApi().list_repo_files(address.repo, revision=address.revision)
    except hub.errors.OfflineModeIsEnabled:
        return MODEL
    models = [name for name in names if name.endswith(".bw")]
    if MODEL in models or len(models) == 1:
        return MODEL if MODEL in models else models[0]
    found = f"the models {', '.join(models)[:200]}" if models else "no model (a file that ends in .bw)"
    raise FormatError(f"{address} has {found}; expected one. Name a file: {address}/FILE.bw")


def _check(path: Path, called: str) -> None:
    """Refuses a file that is not the one that the hub named, or no model; it goes then."""
    blob = path.resolve()
    try:
        if len(blob.name) == _LETTERS_OF_SHA256:
            digest = hashlib.sha256()
            with open(blob, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            if digest.hexdigest() != blob.name:
                raise FormatError(
                    f"{called} has the SHA-256 {digest.hexdigest()}; expected {blob.name}, as the hub says. It was "
                    "damaged on its way: load it again."
                )
        checked_model(path, called)
    except FormatError:
        blob.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise


def pushed_with_card(
    model: Any,
    repo: str,
    card: str | None,
    says: dict[str, Any],
    *,
    file: str = MODEL,
    revision: str | None = None,
    private: bool = False,
    token: str | None = None,
    message: str | None = None,
) -> str:
    """Writes a model and its card into a repository, in one commit; the address of what was written.

    card: a text in place of the one that is made of the model and what its maker `says`.
    """
    address = _target(repo, file)
    card = make_card(model, address.repo, file=file, **says) if card is None else card
    hub = _package()
    api = hub.HfApi(token=token, library_name="beamwood", library_version=__version__)
    with _errors_of(hub, address), tempfile.TemporaryDirectory(prefix="beamwood-push-") as folder:
        path = Path(folder) / "model.bw"
        model.save(path)
        api.create_repo(address.repo, private=private, exist_ok=True)
        operations = [
            hub.CommitOperationAdd(path_in_repo=file, path_or_fileobj=str(path)),
            hub.CommitOperationAdd(path_in_repo="README.md", path_or_fileobj=card.encode()),
        ]
        text = message or f"beamwood {__version__}: {model.n_labels:,} labels, version {model.version}"
        done = api.create_commit(address.repo, operations, commit_message=text, revision=revision)
    return str(HubAddress(address.repo, done.oid, None if file == MODEL else file))


def _target(repo: Any, file: Any) -> HubAddress:
    """The repository that is written to."""
    address = parsed(f"hf://{repo.removeprefix('hf://')}") if isinstance(repo, str) else None
    if not isinstance(address, HubAddress) or address.revision is not None or address.file is not None:
        raise SettingsError(f"repo is {repo!r:.100}; expected org/name. Give revision and file as arguments.")
    if not isinstance(file, str) or not file.endswith(".bw"):
        raise SettingsError(f"file is {file!r:.100}; expected a name that ends in .bw, for example {MODEL}.")
    parsed(f"hf://{address.repo}/{file}")
    return address


def _package() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError:
        raise SettingsError(f"hf:// needs huggingface_hub, which is not installed. {install('hub')}") from None
    return huggingface_hub


@contextmanager
def _errors_of(hub: Any, address: HubAddress) -> Iterator[None]:
    """What the package raises, as one of our errors in a sentence."""
    e = hub.errors
    try:
        yield
    except BeamwoodError:
        raise
    except e.GatedRepoError:
        said = "is open only to those whom its owner let in. Ask there, then log in: hf auth login, or set HF_TOKEN"
    except e.RepositoryNotFoundError:
        said = "is not there, or private. Check its name; for a private one log in: hf auth login, or set HF_TOKEN"
    except e.RevisionNotFoundError:
        said = f"has no revision {address.revision!r}; expected a branch, tag or commit of it. Check its page"
    except e.LocalEntryNotFoundError as error:
        why = "HF_HUB_OFFLINE is set" if _offline(error, e) else "no connection, or the hub is down"
        said = f"cannot be reached ({why}) and is not in the cache. Check the network and HF_ENDPOINT"
    except e.EntryNotFoundError:
        said = f"has no file {address.file or MODEL}; expected a model file. Check its list of files"
    except e.HfHubHTTPError as error:
        said = _status(error)
    except Exception as error:
        of_network = type(error).__module__.startswith(("httpx", "requests", "huggingface_hub", "hf_xet"))
        if isinstance(error, OSError) and not of_network:
            raise cache.full_disk(error, str(address), None) from error
        if not of_network:
            raise
        said = f"cannot be reached ({error!s:.100}). Check the network and HF_ENDPOINT"
    else:
        return
    raise FormatError(f"{address} {said}.") from None


def _offline(error: BaseException, e: Any) -> bool:
    return isinstance(error.__cause__, e.OfflineModeIsEnabled)


def _status(error: Any) -> str:
    status = getattr(error.response, "status_code", None)
    if status in (401, 403):
        return f"was refused (HTTP {status}); expected a token with that right. Log in: hf auth login, or set HF_TOKEN"
    return f"was answered with HTTP {status}; expected the file. Try again later"
