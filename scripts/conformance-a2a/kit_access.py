"""A pytest plugin for the public A2A kits. The kits cannot send a token, reuse a messageId for different messages, and request the agent card
without a version in the 1.0 branch.

The plugin adds the token to each request to the platform that has none, except in tests about a missing token. It makes each messageId unique,
because the platform treats a repeated id as a retry. It writes the outcome of each test, as one JSON object per line.

Environment: CONFORMANCE_BASE_URL, CONFORMANCE_TOKEN, CONFORMANCE_RESULTS (a file), CONFORMANCE_CARD_VERSION (may be empty).
"""

import copy
import itertools
import json
import os
import re

import httpx
import pytest

BASE_URL = os.environ["CONFORMANCE_BASE_URL"]
TOKEN = os.environ["CONFORMANCE_TOKEN"]
RESULTS = os.environ["CONFORMANCE_RESULTS"]
CARD_VERSION = os.environ.get("CONFORMANCE_CARD_VERSION", "")
CARD = "/.well-known/agent-card.json"
WITHOUT_TOKEN = re.compile(r"missing_authentication|authentication_error_codes|without_auth")

running = {"test": ""}
numbers = itertools.count(1)


def authenticate(request):
    """Completes a request of httpx or requests; both have `url` and `headers`."""
    url = str(request.url)
    if not url.startswith(BASE_URL):
        return
    if url.startswith(BASE_URL + CARD):
        if CARD_VERSION and "a2a-version" not in request.headers:
            request.headers["A2A-Version"] = CARD_VERSION
        return
    if "authorization" not in request.headers and not WITHOUT_TOKEN.search(running["test"]):
        request.headers["Authorization"] = "Bearer " + TOKEN


def before(original):
    def send(self, request, *args, **kwargs):
        authenticate(request)
        return original(self, request, *args, **kwargs)

    return send


def with_own_id(body):
    """Makes the messageId of a JSON-RPC call unique; returns anything else unchanged."""
    try:
        name = body["params"]["message"]["messageId"]
    except (KeyError, TypeError):
        return body
    if not isinstance(name, str) or name == "":
        return body
    body = copy.deepcopy(body)
    body["params"]["message"]["messageId"] = f"{name}-{next(numbers)}"
    return body


def before_build(original):
    def build_request(self, *args, **kwargs):
        if kwargs.get("json") is not None:
            kwargs["json"] = with_own_id(kwargs["json"])
        return original(self, *args, **kwargs)

    return build_request


for client in (httpx.Client, httpx.AsyncClient):
    client.send = before(client.send)
    client.build_request = before_build(client.build_request)
try:
    import requests
except ImportError:
    pass  # the 1.0 branch uses only httpx
else:
    requests.Session.send = before(requests.Session.send)


def pytest_runtest_call(item):
    """Called when the test itself starts, after its fixtures."""
    running["test"] = item.name


def pytest_runtest_teardown(item):
    running["test"] = ""


def outcome_of(report):
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "passed"
    return report.outcome


def reason_of(report):
    if hasattr(report, "wasxfail"):
        return report.wasxfail.removeprefix("reason: ")
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "")


@pytest.hookimpl
def pytest_runtest_logreport(report):
    if report.when != "call" and report.passed:
        return
    line = {"test": report.nodeid, "outcome": outcome_of(report), "reason": reason_of(report)}
    with open(RESULTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
