"""What the agent says to the platform over HTTP, the frames of `service.v1`, and the answers after which it stops."""

import json
import os
import secrets
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

from websockets.exceptions import ConnectionClosed, InvalidStatus

AGENT_TYPE = os.environ.get("AGENT_TYPE", "python-counter")
INSTANCE_ID = os.environ.get("INSTANCE_ID", "python-counter-1")
FINAL_STATUSES = {400, 401, 403, 405, 409, 426}  # a retry does not change these
DEREGISTERED = "the instance was deregistered"  # the agent must not register itself again
FINAL_CLOSE_CODES = {4409: "another process has this instance_id now", 4410: DEREGISTERED}


def log(text):
    print(f"{AGENT_TYPE} {text}", flush=True)


def uuid7():
    """RFC 9562 version 7: 48 bits of milliseconds, then random bits."""
    millis = time.time_ns() // 1_000_000
    return str(uuid.UUID(int=millis << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)))


class Refusal(OSError):
    """An error answer to a request or to the WebSocket handshake."""

    def __init__(self, status, body):
        super().__init__(f"refused with {status}: {body.decode(errors='replace')}")
        self.status = status
        try:
            self.code = json.loads(body).get("code")
        except (ValueError, AttributeError):  # not JSON, for example a proxy's page
            self.code = None


def post(path, body, token=None):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(os.environ["FLEET_BASE_URL"] + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise Refusal(error.code, error.read()) from error


def get_token():
    credential = {"client_id": os.environ["FLEET_CLIENT_ID"], "client_secret": os.environ["FLEET_CLIENT_SECRET"]}
    return post("/auth/get_token", {**credential, "agent_type": AGENT_TYPE})["token"]


def check_not_deregistered(token):
    """Raises a Refusal with DEREGISTERED when a new registration would undo a deregistration."""
    try:
        post("/agents/heartbeat", {"instance_id": INSTANCE_ID}, token)
    except Refusal as refusal:
        if refusal.code != "NOT_FOUND":  # unknown to the platform, for example after a long silence: register again
            raise


def frame_text(frame_type, payload, in_reply_to=None):
    frame = {"v": 1, "type": frame_type, "id": uuid7(), "ts": datetime.now(timezone.utc).isoformat(), "payload": payload}
    return json.dumps({**frame, "in_reply_to": in_reply_to} if in_reply_to else frame)


def final_reason(error):
    """The reason to stop permanently after this error; None when the agent should reconnect."""
    if isinstance(error, ConnectionClosed):
        return FINAL_CLOSE_CODES.get(error.rcvd.code) if error.rcvd else None
    if isinstance(error, InvalidStatus):
        error = Refusal(error.response.status_code, error.response.body or b"")
    if not isinstance(error, Refusal):
        return None
    if error.code == "DEREGISTERED":
        return DEREGISTERED
    remedy = "; check FLEET_CLIENT_ID, FLEET_CLIENT_SECRET and AGENT_TYPE" if error.status in (401, 403) else ""
    return f"{error}{remedy}" if error.status in FINAL_STATUSES else None
