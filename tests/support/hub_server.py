"""hub_server.py — requests of the package huggingface_hub in, answers of a small hub in this process out.

It speaks what that package asks when a repository is made, a commit with large files is written, and files are listed
and fetched: create, preupload, the LFS batch and its PUT, commit, tree, resolve. Large files come from another address,
as from a hub's store. `damage` changes the bytes of a large file on their way, `gated` names repositories that are
shut.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_a_token_for_the_tests"
Reply = tuple[int, Any, dict[str, str]]


class HubServer:
    """A hub at `url`. repos: name to {"private", "refs": {revision: commit}, "commits": {commit: {path: bytes}}}."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, Any]] = {}
        self.large: dict[str, bytes] = {}
        self.gated: set[str] = set()
        self.damage, self.status, self.asked = False, 0, [""]
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                server._answer(self)

            do_GET = do_HEAD = do_POST = do_PUT = answer

            def log_message(self, *words: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self.store = f"http://localhost:{self._http.server_port}"  # another host, to those who ask

    def close(self) -> None:
        """Stops it."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, request: Any) -> None:
        path = unquote(urlsplit(request.path).path)
        self.asked.append(f"{request.command} {path}")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if "chunked" in request.headers.get("Transfer-Encoding", ""):
            body = _chunks(request.rfile)
        known = request.headers.get("Authorization") == f"Bearer {TOKEN}"
        status, content, headers = (
            (self.status, b"", {}) if self.status else self._reply(request.command, path, body, known)
        )
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if "Content-Length" not in headers:
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(data)

    def _reply(self, method: str, path: str, body: bytes, known: bool) -> Reply:  # noqa: PLR0911 (a route a line)
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}, {}
        if path == "/api/repos/create":
            return self._create(json.loads(body), known)
        if found := re.fullmatch(r"/lfs/(\w+)", path):
            return self._stored(method, found[1], body)
        if found := re.fullmatch(r"/(.+/.+)\.git/info/lfs/objects/batch", path):
            return self._batch(json.loads(body))
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit|tree|revision)/(.+)", path):
            return self._api(found[1], found[2], found[3], body, known)
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+(?:/pr/\d+)?)/(.+)", path):
            return self._resolve(found[1], found[2], found[3], known)
        return 404, {"error": "no such route"}, {}

    def _create(self, asked: dict[str, Any], known: bool) -> Reply:
        if not known:
            return 401, {"error": "Invalid username or password."}, {}
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.repos:
            return 409, {"error": "You already created this model repo", "url": f"{self.url}/{name}"}, {}
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        self.repos[name] = {"private": private, "refs": {"main": "0" * 40}, "commits": {"0" * 40: {}}}
        return 200, {"url": f"{self.url}/{name}", "name": name, "id": name}, {}

    def _stored(self, method: str, oid: str, body: bytes) -> Reply:
        if method == "PUT":
            assert hashlib.sha256(body).hexdigest() == oid
            self.large[oid] = body
            return 200, b"", {}
        data = self.large[oid]
        return 200, bytes(len(data)) if self.damage else data, {}

    def _batch(self, asked: dict[str, Any]) -> Reply:
        objects = []
        for each in asked["objects"]:
            action = (
                {} if each["oid"] in self.large else {"actions": {"upload": {"href": f"{self.url}/lfs/{each['oid']}"}}}
            )
            objects.append({"oid": each["oid"], "size": each["size"], **action})
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _found(self, repo: str, revision: str, known: bool) -> dict[str, bytes] | Reply:
        """The files of a revision, or why there are none."""
        if repo in self.gated:
            return 403, {"error": "gated"}, {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"}
        if repo not in self.repos or (self.repos[repo]["private"] and not known):
            return 401, {"error": "not found"}, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "not found"}
        commit = self.repos[repo]["refs"].get(revision, revision)
        if commit not in self.repos[repo]["commits"]:
            return 404, {"error": "no such revision"}, {"X-Error-Code": "RevisionNotFound"}
        files: dict[str, bytes] = self.repos[repo]["commits"][commit]
        return files

    def _api(self, repo: str, verb: str, revision: str, body: bytes, known: bool) -> Reply:
        files = self._found(repo, revision, known)
        if isinstance(files, tuple):
            return files
        if verb in ("preupload", "commit") and not known:
            return 403, {"error": "read only"}, {"X-Error-Message": "you may only read"}
        if verb == "preupload":
            asked = json.loads(body)["files"]
            modes = [
                {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".bw") else "regular"} for f in asked
            ]
            return 200, {"files": [{**mode, "shouldIgnore": False} for mode in modes]}, {}
        if verb == "commit":
            return self._commit(repo, revision, files, [json.loads(line) for line in body.splitlines()])
        listed = [{"type": "file", "path": path, "size": len(data), "oid": _oid(data)} for path, data in files.items()]
        return 200, listed, {}

    def _commit(self, repo: str, revision: str, files: dict[str, bytes], lines: list[dict[str, Any]]) -> Reply:
        files = dict(files)
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
        commit = hashlib.sha1(
            repr(sorted(files.items())).encode() + str(len(self.repos[repo]["commits"])).encode()
        ).hexdigest()
        self.repos[repo]["commits"][commit] = files
        self.repos[repo]["refs"][revision] = commit
        return 200, {"success": True, "commitOid": commit, "commitUrl": f"{self.url}/{repo}/commit/{commit}"}, {}

    def _resolve(self, repo: str, revision: str, path: str, known: bool) -> Reply:
        files = self._found(repo, revision, known)
        if isinstance(files, tuple):
            return files
        commit = {"X-Repo-Commit": self.repos[repo]["refs"].get(revision, revision)}
        if path not in files:
            return 404, {"error": "no such file"}, {"X-Error-Code": "EntryNotFound", **commit}
        data = files[path]
        oid = hashlib.sha256(data).hexdigest()
        if oid not in self.large:
            return 200, data, {"ETag": f'"{_oid(data)}"', **commit}
        linked = {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data)), "Location": f"{self.store}/lfs/{oid}"}
        return 302, b"", {**linked, **commit}


def _oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _chunks(stream: Any) -> bytes:
    """A body that came in pieces, each behind its length."""
    whole = b""
    while size := int(stream.readline().split(b";")[0], 16):
        whole += stream.read(size)
        stream.readline()
    stream.readline()
    return whole
