"""deploy.py — the folder of a model that was cut in, a Ray Serve application that answers for the model out."""

from __future__ import annotations

import os
import pickle
from typing import Any

from beamwood._version import __version__
from beamwood.errors import SettingsError
from beamwood.inputs.arguments import positive
from beamwood.ray import again
from beamwood.ray.cluster import connected, imported, plainly, same_version
from beamwood.shards.folder import read_manifest
from beamwood.shards.sharded import opened

_AT_ONCE = 64  # questions that a replica has under way
_LOOKED_AFTER = {"health_check_period_s": 2, "health_check_timeout_s": 10, "graceful_shutdown_timeout_s": 5}


class ShardReplica:
    """A shard on a machine of the cluster."""

    def __init__(self, version: str, folder: str, number: int, build: str) -> None:
        same_version(version)
        manifest = read_manifest(folder)
        if manifest.build != build:
            raise SettingsError(
                f"{folder} holds build {manifest.build} here; expected {build}. Give every machine the same folder."
            )
        self._part = opened(manifest, number)

    def tell(self, ask: bytes) -> bytes:
        """Answers some queries. Ray hands bytes on as they are; each array by itself would cost it more."""
        return pickle.dumps(self._part.tell(pickle.loads(ask)), protocol=5)


def application(
    folder: str | os.PathLike[str],
    *,
    name: str = "model",
    replicas: int = 1,
    ingresses: int = 1,
    cpus: float = 1.0,
    shard_seconds: float = 3.0,
) -> Any:
    """The Ray Serve application of a model that `bw.shard` cut: for `serve.run`, or beside others in a cluster.

    folder:        what `bw.shard` wrote, at the same path on every machine; a machine needs only the files of its own
                   part and manifest.json.
    name:          what the model is called in requests.
    replicas:      of each shard; ingresses: of what takes requests.
    cpus:          that each replica asks Ray for.
    shard_seconds: how long a shard may take; then it counts as missing.
    """
    serve = imported("ray.serve")
    manifest = read_manifest(folder)
    replicas, ingresses = positive(replicas, "replicas"), positive(ingresses, "ingresses")
    if not 0.01 <= shard_seconds <= 3600:
        raise SettingsError(f"shard_seconds is {shard_seconds!r:.40}; expected seconds from 0.01 to 3,600.")
    asked = {"num_cpus": cpus}
    where, tag = str(manifest.folder), manifest.build[:8] + manifest.build[16:]
    shards = [
        serve.deployment(ShardReplica)
        .options(
            name=f"shard-{number}-{tag}", num_replicas=replicas, max_ongoing_requests=_AT_ONCE, ray_actor_options=asked,
            **_LOOKED_AFTER,
        )
        .bind(__version__, where, number, manifest.build)
        for number in range(len(manifest.shards))
    ]  # fmt: skip
    front = serve.deployment(_ingress()).options(
        name="ingress", num_replicas=ingresses, max_ongoing_requests=_AT_ONCE, ray_actor_options=asked, **_LOOKED_AFTER
    )  # fmt: skip
    return front.bind(__version__, where, name, shard_seconds, 8, *shards)


def _ingress() -> Any:
    """What takes requests; it needs what a server needs, which training and scoring do not."""
    try:
        from beamwood.ray.ingress import Ingress
    except ImportError as error:
        raise SettingsError(
            f"{error.name} is not installed here; expected it for serving. Install it: "
            "pip install 'beamwood[ray,serve]'."
        ) from None
    return Ingress


def serve(
    folder: str | os.PathLike[str],
    *,
    address: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    application_name: str = "beamwood",
    **arguments: Any,
) -> None:
    """Serves a model that was cut on a Ray cluster, and returns when it answers; it goes on when this program ends.

    folder, arguments: as in `application`.
    address:           as in `beamwood.ray.train`; Ray must stay connected where it is None and starts here. Over a
                       connection that was there before, a request whose ingress dies is a bare 500, unless nodes were
                       started with the variable that `beamwood.ray.again` names.
    host, port:        where every machine with a replica of the ingress listens.
    """
    made = application(folder, **arguments)
    ray_serve = imported("ray.serve")
    with connected(address, {again.WHERE: again.WHAT}) as ray, plainly(ray):
        ray_serve.start(http_options={"host": host, "port": port})
        ray_serve.run(made, name=application_name, route_prefix="/")
