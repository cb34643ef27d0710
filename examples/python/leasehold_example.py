#!/usr/bin/env python3
"""A lease in Python, over HTTP, with nothing but the standard library (3.9 or later, Linux or macOS).

    leasehold serve &
    python3 leasehold_example.py              # take the lease, write three pages, give it back
    python3 leasehold_example.py --pause 15   # be stopped in the middle for longer than the lease lasts

`Session` and `Lease` are the part to copy. They promise that `guard()` gives leave to act only while nobody else can hold the
lease, as long as this machine's clock runs at its usual rate. `Reports` is the receiver: it refuses old tokens, whatever clocks do.
"""

import argparse
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

# A clock that nobody sets and that counts while the machine sleeps. time.monotonic() stands still in sleep, on Linux.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# The longest that one write may take, in seconds: a guard is asked for so much.
ONE_WRITE = 0.5


def now():
    return time.clock_gettime(CLOCK)


class Refused(Exception):
    """The service said no. Asking the same again is no use."""


class NoAnswer(Exception):
    """Nothing came back, or nothing that settles it. What was asked for may have happened, or may happen yet."""


class NoGuard(Exception):
    """It is not certain that the lease is ours for as long as the work takes."""


class Session:
    """Is renewed by a thread of its own until it is closed. One renewal keeps all of its leases."""

    def __init__(self, url, ttl_ms, label):
        self.url, self.key = urlsplit(url), None
        opened = self._call("sessions", 5, label=label, ttl_ms=ttl_ms)
        if opened["margin_ms"] is None:
            raise Refused("no-margin", f"a ttl of {ttl_ms} ms is too short for the clocks of this service")
        self.key, self.id = opened["session_key"], opened["session"]
        self.ttl = opened["ttl_ms"] / 1000
        self.usable = (opened["ttl_ms"] - opened["margin_ms"]) / 1000
        self.every = opened["renew_every_ms"] / 1000
        self.held = {}  # as the last renewal's answer had them
        self.over = None  # why the session is over, once it is
        self._last_number, self._open_numbers = 0, set()  # of calls, and of those whose outcome is not known
        self._one_number = threading.Lock()
        self._one_at_a_time = threading.Lock()
        self._closed = threading.Event()  # from then on nothing of it is ours
        threading.Thread(target=self._keep_renewing, daemon=True).start()

    def renew(self):
        """Sends one renewal. Whatever its answer lists is ours until `usable` after it was *sent*."""
        with self._one_at_a_time:  # so that an older answer never replaces a newer one
            sent = now()
            answer = self._call(f"sessions/{self.id}/renew", self.every / 2)
            deadline = sent + self.usable
            self.held = {lease["token"]: (deadline, lease) for lease in answer["leases"]}

    def _keep_renewing(self):
        pause = self.every
        while not self._closed.wait(pause):
            try:
                self.renew()
                pause = self.every
            except NoAnswer:
                pause = self.every / 4  # try again soon; the deadline stays where it is
            except Refused as refused:
                self.over = refused
                return

    def acquire(self, resource, wait):
        """Waits in the queue for at most `wait` seconds, while the thread keeps the session alive."""
        call = self._begin("leases/acquire", resource=resource, wait_ms=round(wait * 1000))
        end = now() + wait + self.ttl
        while True:
            try:
                answer = self._say(call, min(wait, 60) + 5)
                if answer["outcome"] == "granted":
                    break  # and else it waits still: the same call goes on with the wait
            except NoAnswer:
                if now() >= end:
                    self._give_up(call)
                    raise
                time.sleep(self.every / 4)
        token = answer["leases"][0]["token"]
        while True:  # what counts is that a renewal lists it. That also sets the first deadline.
            try:
                self.renew()
                break
            except NoAnswer:
                if now() >= end:
                    raise
                time.sleep(self.every / 4)
        if token not in self.held:
            raise Refused("ended", f"{resource} was granted and taken away at once")
        return Lease(self, resource, token)

    def _give_up(self, call):
        """Nobody waits for this acquire any more: cancelled by its number it is never granted, even if it has yet to arrive."""
        cancel, end = self._begin("leases/cancel", acquire_number=call[1]["number"]), now() + self.ttl
        while now() < end:
            try:
                for lease in self._say(cancel, self.every)["leases"]:
                    Lease(self, lease["resource"], lease["token"]).release()
                self._settle(call)
                return
            except Refused:
                self._settle(call)
                return
            except NoAnswer:
                time.sleep(self.every / 4)

    def _begin(self, path, **fields):
        """A call with a number: sent again with it, it is done once and answered the same."""
        with self._one_number:
            self._last_number += 1
            self._open_numbers.add(self._last_number)
            return path, {"number": str(self._last_number), **fields}

    def _say(self, call, timeout):
        """Sends the call, the first time or again. Once it is answered its number is settled."""
        path, fields = call
        with self._one_number:
            settled = min(self._open_numbers)
        try:
            answer = self._call(path, timeout, settled=str(settled), **fields)
        except Refused:
            self._settle(call)
            raise
        if answer.get("outcome") != "queued":
            self._settle(call)
        return answer

    def _settle(self, call):
        with self._one_number:
            self._open_numbers.discard(int(call[1]["number"]))

    def close(self):
        """Gives everything back. Not being heard is no harm: then it ends by itself after the ttl."""
        self._closed.set()
        try:
            self._call(f"sessions/{self.id}/close", 5)
        except (Refused, NoAnswer):
            pass

    def is_closed(self):
        return self._closed.is_set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, path, timeout, **fields):
        """One call on a connection of its own: after an error there is nothing to repair."""
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.url.netloc, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Leasehold-Session"] = self.key
        try:
            connection.request("POST", "/v1/" + path, json.dumps(fields), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status in (200, 202):
                return answer
            error = {name: answer[name] for name in ("code", "kind", "detail")}
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as trouble:
            raise NoAnswer(f"{path}: {trouble!r}") from trouble
        finally:
            connection.close()
        if error["kind"] != "refused" and (response.status in (408, 429) or response.status >= 500):
            raise NoAnswer(error["code"], error["detail"])
        raise Refused(error["code"], error["detail"])


class Lease:
    def __init__(self, session, resource, token):
        self.session, self.resource, self.token = session, resource, token
        self.given_back = False

    def guard(self, seconds):
        """Leave to act for so long, from now on: gives the token to send along. Ask again for the next piece of work."""
        deadline, lease = self.session.held.get(self.token, (None, None))
        if self.given_back or self.session.is_closed():
            raise NoGuard(f"token {self.token} was given back")
        if deadline is None:
            raise NoGuard(f"token {self.token} is over: {self.session.over or 'the last renewal does not list it'}")
        left = deadline - now()
        if left < 0:
            raise NoGuard(f"token {self.token}: its time was over {-left:.1f} s ago")
        if left < seconds:
            raise NoGuard(f"token {self.token}: {left:.2f} s are certain, and {seconds} s are needed")
        return int(lease["fence_token"])

    def is_wanted_back(self):
        """Whether somebody asked for it with `leasehold release`."""
        _, lease = self.session.held.get(self.token, (None, {}))
        return lease.get("release_requested", False)

    def release(self):
        """Gives it back. It is not ours any more from the moment this is sent, whatever comes back."""
        self.given_back = True
        fields = {"resource": self.resource, "token": self.token}
        try:
            self.session._call("leases/release", 5, **fields)
        except (Refused, NoAnswer):
            pass  # it was over already, or ends with its session; asking again would be safe too


class Fenced(Exception):
    """The receiver has seen a greater token."""


class Reports:
    """The receiver: a database that remembers the highest token and takes no smaller one."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute("CREATE TABLE IF NOT EXISTS fence (name TEXT PRIMARY KEY, token INTEGER NOT NULL)")
        self.db.execute("CREATE TABLE IF NOT EXISTS page (id INTEGER PRIMARY KEY, token INTEGER, text TEXT)")
        self.db.execute(f"PRAGMA busy_timeout = {round(ONE_WRITE * 500)}")  # from here on in the time of a guard

    def seal(self, name, token):
        """Before the first write: from now on older tokens are refused, even if we never write."""
        self.write(name, token, None)

    def write(self, name, token, text):
        self.db.execute("BEGIN IMMEDIATE")  # comparing and writing are one step
        try:
            raised = self.db.execute(
                "INSERT INTO fence VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET token = excluded.token"
                " WHERE fence.token <= excluded.token",
                (name, token),
            )
            if raised.rowcount == 0:
                raise Fenced(f"token {token} is not the highest any more")
            if text is not None:
                self.db.execute("INSERT INTO page (token, text) VALUES (?, ?)", (token, text))
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise


def say(text):
    sys.stdout.write(text + "\n")  # one piece, so that lines of several programs do not mix
    sys.stdout.flush()


def stop_this_process(seconds):
    """What a debugger, a full machine or a closed laptop does: all threads stand still, and nobody is told."""
    again = 'sleep "$1"; kill -CONT "$2"'
    waker = subprocess.Popen(["sh", "-c", again, "sh", str(seconds), str(os.getpid())], stdout=subprocess.DEVNULL)
    os.kill(os.getpid(), signal.SIGSTOP)
    waker.wait()


def write_pages(lease, reports, options):
    reports.seal(lease.resource, lease.guard(ONE_WRITE))
    for page in range(1, options.pages + 1):
        if page == 2 and options.pause:
            say(f"stopped token {lease.token}")
            stop_this_process(options.pause)
        if lease.is_wanted_back():
            say(f"asked token {lease.token}")
            break
        token = lease.guard(ONE_WRITE)
        reports.write(lease.resource, token, f"page {page}")
        say(f"wrote token {token} page {page}")
        time.sleep(options.work)


def write_too_late(token, reports, options):
    """What the program must not do, to show who stops it: a write with the token of a lease that is over."""
    with Session(options.url, options.ttl_ms, "example.py again") as session:
        lease = session.acquire(options.resource, options.wait)
        reports.seal(options.resource, lease.guard(ONE_WRITE))
        say(f"sealed token {lease.token}")
        try:
            reports.write(options.resource, int(token), "too late")
            sys.exit(f"the write with token {token} was taken: the fence is broken")
        except Fenced as fenced:
            say(f"fenced token {token}: {fenced}")


def main():
    flags = argparse.ArgumentParser(description="Writes pages into a database while holding a lease.")
    flags.add_argument("--url", default="http://127.0.0.1:7420")
    flags.add_argument("--resource", default="reports/nightly")
    flags.add_argument("--db", default="reports.db", help="the receiver, a SQLite file (%(default)s)")
    flags.add_argument("--ttl-ms", type=int, default=10_000)
    flags.add_argument("--wait", type=float, default=30, help="seconds in the queue (%(default)s)")
    flags.add_argument("--pages", type=int, default=3)
    flags.add_argument("--work", type=float, default=0.1, help="seconds from page to page (%(default)s)")
    flags.add_argument("--pause", type=float, help="stop this process for so many seconds after the first page")
    options = flags.parse_args()
    reports = Reports(options.db)
    try:
        with Session(options.url, options.ttl_ms, f"example.py:{os.getpid()}") as session:
            lease = session.acquire(options.resource, options.wait)
            say(f"acquired token {lease.token}")
            try:
                write_pages(lease, reports, options)
                say(f"releasing token {lease.token}")
                lease.release()
                return 0
            except (NoGuard, Fenced) as lost:
                say(f"lost token {lease.token}: {lost}")
        # Closing the session also tells the service that we have stopped, so that others need not wait for our time to end.
        if options.pause:
            write_too_late(lease.token, reports, options)
        return 3
    except (Refused, NoAnswer, NoGuard) as trouble:
        print("not done:", *trouble.args, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
