"""The Kubernetes API as far as the sweep needs it: list by label, get, merge-patch. Over HTTP, by hand.

The official client would be some 30 MB and a dozen packages for these three calls, and Volcano's and
Ascend's jobs, which it has no types for, would come as plain objects all the same.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from cluster_run.errors import ClusterError, InputError, read_as, spoken
from cluster_run.files import json_of
from cluster_tell.webhook import NoRedirection, is_http, seconds_until, tls_context

#: Objects of the API are JSON objects of any form; `trainingjob` gives the ones we use a type.
ApiObject = Mapping[str, Any]

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEADLINE_S = 15.0
_PAGE_LENGTH = 100
#: Before each further attempt at a call, and each new begin of a long list that the server forgets.
_PAUSES_S = (0.5, 1.0, 2.0)
#: The longest that the server may ask for.
_LONGEST_PAUSE_S = 10.0
#: Answers that a second attempt may better: too many requests, and an API server that restarts.
_PASSING = frozenset({429, 500, 502, 503, 504})


class ApiError(ClusterError):
    """The API server refused or did not answer; the fourth argument says when it may be asked again."""

    @property
    def status(self) -> int:
        """The HTTP status, 0 where there was no answer."""
        return int(self.args[2])


@dataclass(frozen=True)
class ApiAccess:
    """Where the API server is and what to show it. The token's file is read anew: it changes every hour."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None


def access_from_pod(environment: Mapping[str, str], directory: Path = _SERVICE_ACCOUNT) -> ApiAccess:
    """Return the access that Kubernetes gives a pod.

    Raises:
        InputError: this is no pod, or it has no service account.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (directory / "token").is_file():
        raise InputError(
            "this is no pod with a service account",
            "run it in one, or beside `kubectl proxy` with --api-server http://127.0.0.1:8001",
        )
    bracketed = f"[{host}]" if ":" in host else host
    return ApiAccess(f"https://{bracketed}:{port}", directory / "token", directory / "ca.crt")


def namespace_from_pod() -> str:
    """Return the namespace of the pod we are in; empty outside of one."""
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""


class ApiClient:
    """Calls of one API server."""

    def __init__(self, access: ApiAccess) -> None:
        if not is_http(access.url):
            raise InputError("--api-server holds no http:// or https:// address")
        self._access = access
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), NoRedirection()]
        if access.url.startswith("https://"):
            try:
                context = tls_context(access.ca_file)
            except OSError as error:
                raise InputError(f"{access.ca_file}: not a certificate authority: {spoken(error)}") from error
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def list(self, path: str, selector: str) -> Iterator[ApiObject]:
        """Yield the objects of a collection that have the labels, page by page.

        Raises:
            ApiError: status 404 where the cluster has no such kind of object.
        """
        parameters = {"labelSelector": selector, "limit": str(_PAGE_LENGTH)}
        seen: set[str] = set()
        pauses_s = list(_PAUSES_S)
        while True:
            try:
                page = self._call("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
            except ApiError as error:
                # The server forgot where we were in a long list; from the start, but each object once.
                if error.status != 410 or "continue" not in parameters or not pauses_s:
                    raise
                time.sleep(pauses_s.pop(0))
                del parameters["continue"]
                continue
            for item in page.get("items") or []:
                uid = str(item.get("metadata", {}).get("uid", ""))
                if uid not in seen:
                    seen.add(uid)
                    yield item
            parameters["continue"] = str(page.get("metadata", {}).get("continue") or "")
            if not parameters["continue"]:
                return

    def get(self, path: str) -> ApiObject | None:
        """Return an object; None where there is none.

        Raises:
            ApiError: the server refuses or does not answer.
        """
        try:
            return self._call("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def merge_patch(self, path: str, change: ApiObject) -> ApiObject:
        """Change an object; return what it is then.

        With `metadata.resourceVersion` in `change` the server refuses, with status 409, when the object is
        no longer that version; with `metadata.uid` when it is another object of the same name.

        Raises:
            ApiError: the server refuses or does not answer.
        """
        return self._call("PATCH", path, json.dumps(change).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> ApiObject:
        for pause_s in _PAUSES_S:
            try:
                return self._call_once(method, path, body)
            except ApiError as error:
                if error.status and error.status not in _PASSING:
                    raise
                asked_s = error.args[3]
            time.sleep(max(pause_s, min(asked_s, _LONGEST_PAUSE_S)))
        return self._call_once(method, path, body)

    def _call_once(self, method: str, path: str, body: bytes | None) -> ApiObject:
        headers = {"Accept": "application/json", "User-Agent": "cluster-hook"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        if self._access.token_file is not None:
            headers["Authorization"] = f"Bearer {self._token(self._access.token_file)}"
        request = urllib.request.Request(  # noqa: S310  the address is the administrator's
            self._access.url.rstrip("/") + path, data=body, headers=headers, method=method
        )
        where = path.partition("?")[0]
        try:
            with self._opener.open(request, timeout=_DEADLINE_S) as response:
                answer = json_of(response.read())
        except urllib.error.HTTPError as error:
            with error:
                after_s = seconds_until(error.headers.get("Retry-After", "")) or 0.0
                text = f"{method} {where}: {error.code} {_message(error)}"
                raise ApiError(text, _advice(error.code), error.code, after_s) from error
        except (urllib.error.URLError, OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            why = spoken(why) if isinstance(why, Exception) else why
            text = f"{method} {where}: no answer from {self._access.url}: {why}"
            raise ApiError(text, "", 0, 0.0) from error
        if not isinstance(answer, dict):
            raise ApiError(f"{method} {where}: the answer is no object", "", 0, 0.0)
        return answer

    def _token(self, file: Path) -> str:
        with read_as(f"{file}: the service account's token cannot be read"):
            return file.read_text().strip()


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json_of(error.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return str(error.reason)


def _advice(status: int) -> str:
    if status == 401:
        return "the token is not accepted: check the service account"
    if status == 403:
        return "give the service account the role of deploy/kubernetes/base/rbac.yaml in this namespace"
    return ""
