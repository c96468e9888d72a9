"""A small Kubernetes API server on loopback: lists in pages, get, merge-patch with preconditions, errors.

It keeps what the sweep may rely on: resource versions that change with every write, 409 for a patch against
an old one or against another uid, 410 for a page of a list that was forgotten, `Status` objects for errors.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.hook.http_server import serving

_PATH = re.compile(r"(/apis/[^/]+/[^/]+|/api/v1)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?")


@dataclass
class FakeKubernetes:
    """The objects of the cluster, by group, namespace, plural and name."""

    url: str = ""
    token: str = ""
    kinds: set[tuple[str, str]] = field(
        default_factory=lambda: {("/apis/batch/v1", "jobs"), ("/api/v1", "configmaps")}
    )
    objects: dict[tuple[str, str, str, str], dict[str, Any]] = field(default_factory=dict)
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    #: Names of objects that a policy of the cluster lets nobody annotate.
    guarded: set[str] = field(default_factory=set)
    #: Statuses to answer the next calls with, before anything is done.
    failures: list[int] = field(default_factory=list)
    #: What it then says of when to ask again.
    retry_after: str = ""
    #: Kinds that it cannot convert, by a webhook that is down.
    broken: set[tuple[str, str]] = field(default_factory=set)
    page_length: int = 500
    forgets_pages: bool = False
    #: Answers each page of a list but the first with 410, however often it is begun anew.
    always_forgets_pages: bool = False
    calls: list[str] = field(default_factory=list)
    #: Called before a patch is carried out, to let something happen in between.
    before_patch: Any = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def add(
        self, group: str, plural: str, name: str, *, namespace: str = "training", **body: Any
    ) -> dict[str, Any]:
        """Add an object; returns it as the server keeps it."""
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"{len(self.objects):08x}-0000-4000-8000-000000000000",
            "resourceVersion": str(next(self.versions)),
            "creationTimestamp": "2023-01-01T00:00:00Z",
            **body.pop("metadata", {}),
        }
        self.kinds.add((group, plural))
        item = {"metadata": metadata, **body}
        self.objects[group, namespace, plural, name] = item
        return item

    def annotations(self, name: str, group: str = "/apis/batch/v1", plural: str = "jobs") -> dict[str, str]:
        """Return the annotations of a job as they are now."""
        return dict(self.objects[group, "training", plural, name]["metadata"].get("annotations", {}))

    def answer(self, method: str, target: str, content_type: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Carry out one call; returns the status and the object."""
        path, _, query = target.partition("?")
        match = _PATH.fullmatch(path)
        with self.lock:
            self.calls.append(f"{method} {path}")
            if self.failures:
                return _status(self.failures.pop(0), "as the test wants it")
            if not match or (match[1], match[3]) not in self.kinds:
                return _status(404, "the server could not find the requested resource")
            group, namespace, plural, name = match.groups()
            if (group, plural) in self.forbidden:
                return _status(403, f"{plural} is forbidden")
            if (group, plural) in self.broken:
                return _status(500, f"conversion webhook for {plural} failed: connection refused")
            if name is None:
                return self._list(group, namespace, plural, dict(urllib.parse.parse_qsl(query)))
            key = (group, namespace, plural, name)
            if method == "PATCH" and name in self.guarded:
                return _status(403, 'admission webhook "policy.site" denied the request')
            if method == "PATCH" and self.before_patch is not None:
                self.before_patch(key)
            if key not in self.objects:
                return _status(404, f'{plural} "{name}" not found')
            if method == "GET":
                return 200, self.objects[key]
            if content_type != "application/merge-patch+json":
                return _status(415, "the body of the request was in an unknown format")
            return self._patch(key, json.loads(body))

    def _list(
        self, group: str, namespace: str, plural: str, parameters: dict[str, str]
    ) -> tuple[int, dict[str, Any]]:
        wanted = dict(one.split("=") for one in parameters.get("labelSelector", "").split(",") if one)
        items = [
            item
            for (g, ns, p, _), item in sorted(self.objects.items())
            if (g, ns, p) == (group, namespace, plural)
            and wanted.items() <= item["metadata"].get("labels", {}).items()
        ]
        begin = int(parameters.get("continue") or 0)
        if begin and self.always_forgets_pages:
            return _status(410, "the provided continue parameter is too old")
        if begin and self.forgets_pages:
            self.forgets_pages = False
            self.page_length = 500
            return _status(410, "the provided continue parameter is too old")
        length = min(self.page_length, int(parameters.get("limit", "500")))
        rest = begin + length < len(items)
        metadata = {"resourceVersion": "1", **({"continue": str(begin + length)} if rest else {})}
        return 200, {"kind": "List", "metadata": metadata, "items": items[begin : begin + length]}

    def _patch(self, key: tuple[str, str, str, str], change: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        item = self.objects[key]
        for precondition in ("resourceVersion", "uid"):
            expected = change.get("metadata", {}).get(precondition)
            if expected is not None and expected != item["metadata"][precondition]:
                return _status(
                    409, "the object has been modified; please apply your changes to the latest version"
                )
        patched = _merged(item, change)
        patched["metadata"]["resourceVersion"] = str(next(self.versions))
        self.objects[key] = patched
        return 200, patched


def _merged(target: Any, change: Any) -> Any:
    """RFC 7386."""
    if not isinstance(change, dict):
        return change
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _status(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


@contextmanager
def fake_kubernetes(tls: ssl.SSLContext | None = None) -> Iterator[FakeKubernetes]:
    """Run the server while the block runs."""
    cluster = FakeKubernetes()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if cluster.token and self.headers.get("Authorization") != f"Bearer {cluster.token}":
                code, answer = _status(401, "Unauthorized")
            else:
                kind = self.headers.get("Content-Type", "")
                code, answer = cluster.answer(self.command, self.path, kind, body)
            content = json.dumps(answer).encode()
            self.send_response(code)
            if code >= 400 and cluster.retry_after:
                self.send_header("Retry-After", cluster.retry_after)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._serve()

        def do_PATCH(self) -> None:
            self._serve()

        def log_message(self, *_args: object) -> None:
            return

    with serving(Handler, tls) as port:
        cluster.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield cluster
