"""Keeps generated requests short, and lets them reach the table.

A random session key or token is refused before anything else is looked at. Most of the requests that the document allows therefore
speak for a session that lives and a lease that it holds, so that what is behind these is tested too. Waits are cut to a moment.
"""

import json
import os
import re
import urllib.request

import schemathesis
from schemathesis import GenerationMode

URL = os.environ["LEASEHOLD_URL"]
LONGEST_WAIT_MS = 50
NOBODY_LISTENS = "127.0.0.1:1"
NEEDS_A_LEASE = ("/v1/leases/release", "/v1/leases/set-value", "/v1/leases/ready", "/v1/registers/write")
KEY = "leasehold-session"
WHOLE_KEY = re.compile(r"[0-9]{1,19}-[0-9a-fA-F]{32}")


class Holder:
    """One session for the whole run, and leases of it."""

    def __init__(self):
        self.key = None
        self.count = 0

    def living_key(self):
        if self.key is None:
            opened = ask("/v1/sessions", {"label": "schemathesis", "ttl_ms": 300_000})
            self.key = opened["session_key"]
        return self.key

    def lease(self):
        """A lease that is held. A new one each time: other requests may have ended the last."""
        self.count += 1
        wanted = {"resource": f"schemathesis/{self.count}"}
        return ask("/v1/leases/acquire", wanted, self.living_key())["leases"][0]


def ask(path, fields, key=None):
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers[KEY] = key
    request = urllib.request.Request(f"{URL}{path}", json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


HOLDER = Holder()


def shorten(body):
    wait = body.get("wait_ms")
    # A whole number is one however it is written: 435001.0 waits for minutes as 435001 does.
    is_number = isinstance(wait, (int, float)) and not isinstance(wait, bool)
    if is_number and LONGEST_WAIT_MS < wait <= 86_400_000 and wait == int(wait):
        body["wait_ms"] = int(wait) % LONGEST_WAIT_MS


def let_in(path, body):
    # What the document tells in words only: these exclude each other.
    if body.get("mode") != "slots":
        body.pop("slots", None)
    elif body.get("slots") is None:
        body["slots"] = 3
    if body.get("value") is not None:
        body.pop("value_hex", None)
    if body.get("value") is not None or body.get("value_hex") is not None:
        body.pop("remove", None)
    if path in NEEDS_A_LEASE:
        lease = HOLDER.lease()
        body["resource"], body["token"] = lease["resource"], lease["token"]


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body if isinstance(case.body, dict) else {}
    shorten(body)
    allowed = case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
    path = case.operation.path
    if allowed and path == "/v1/cluster/add" and isinstance(body.get("address"), str):
        # A made-up host is looked for in the network, and takes as long as the network likes.
        body["address"] = NOBODY_LISTENS
    if not allowed and case.query:
        # With it, what is not known is let in on purpose.
        case.query.pop("ignore-unknown", None)
    if allowed and (case.headers or {}).get(KEY) == HOLDER.key:
        let_in(path, body)


@schemathesis.hook
def map_headers(context, headers):
    key = (headers or {}).get(KEY)
    if isinstance(key, str) and WHOLE_KEY.fullmatch(key) and not context.operation.path.endswith("/close") and int(key[-1], 16) % 4 != 0:
        headers[KEY] = HOLDER.living_key()
    return headers


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    session = (path_parameters or {}).get("session")
    if isinstance(session, str) and session.isdecimal() and context.operation.path.endswith("/renew"):
        path_parameters["session"] = HOLDER.living_key().split("-")[0]
    return path_parameters
