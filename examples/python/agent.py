"""A connected agent without the SDK: the standard library and `websockets` are enough for the protocol `service.v1`.

    pip install -r requirements.txt
    FLEET_BASE_URL=… FLEET_CLIENT_ID=… FLEET_CLIENT_SECRET=… FLEET_CA_FILE=… python agent.py

The credential is one for agents: `npm start` writes it into `dev.json`, as `agent_client_id` and `agent_client_secret`.

It counts: "count 3" is answered with "1 2 3", a chunk for each number, half a second apart ("count 3 every 10" milliseconds);
anything else is said back. What docs/agents.md says of the wire is here in code.
"""

import asyncio
import json
import os
import random
import re
import secrets
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections import deque
from datetime import datetime, timezone

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

AGENT_TYPE = os.environ.get("AGENT_TYPE", "python-counter")
INSTANCE_ID = os.environ.get("INSTANCE_ID", "python-counter-1")
BACKOFF_SECONDS = (1, 2, 4, 8, 16, 30)
GRACE_SECONDS = 30
HELD_CHUNKS = 256  # what the mesh buffers for a dispatch; older ones have arrived
ANSWERED_MAX = 64
REFUSED = {400, 401, 403, 405, 409, 426}  # repeating does not change these
CLOSE_NORMAL = 1000
UNWANTED = "the instance was deregistered"  # it stays away until somebody starts it again
FINAL_CLOSINGS = {4409: "another process has this instance_id now", 4410: UNWANTED}


def log(text):
    print(f"{AGENT_TYPE} {text}", flush=True)


def uuid7():
    """RFC 9562 version 7: 48 bits of milliseconds, then random bits."""
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Refusal(OSError):
    """The platform, or what is before it, refused a request."""

    def __init__(self, status, body):
        super().__init__(f"refused with {status}: {body.decode(errors='replace')}")
        self.status = status
        try:
            self.code = json.loads(body).get("code")
        except (ValueError, AttributeError):  # a proxy's page: the status says enough
            self.code = None


def post(path, body, token=None):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(os.environ["FLEET_BASE_URL"] + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise Refusal(error.code, error.read()) from error


def check_wanted(token):
    """Raises a refusal with DEREGISTERED where registering anew would undo what somebody decided meanwhile."""
    try:
        post("/agents/heartbeat", {"instance_id": INSTANCE_ID}, token)
    except Refusal as refusal:
        if refusal.code != "NOT_FOUND":  # it was silent for too long, or the platform has forgotten it
            raise


def frame_text(frame_type, payload, in_reply_to=None):
    frame = {"v": 1, "type": frame_type, "id": uuid7(), "ts": datetime.now(timezone.utc).isoformat(), "payload": payload}
    return json.dumps({**frame, "in_reply_to": in_reply_to} if in_reply_to else frame)


async def answer(text):
    """The agent itself: yields the pieces of its answer."""
    counting = re.match(r"count (\d+)(?: every (\d+))?", text)
    if not counting:
        yield f"You said: {text}"
        return
    pause_ms = int(counting[2] or 500)
    for number in range(1, int(counting[1]) + 1):
        if number > 1:
            await asyncio.sleep(pause_ms / 1000)
        yield f"{number} "


def final_reason(error):
    """Why the agent must stop for good after this error; None where it should come back."""
    if isinstance(error, ConnectionClosed):
        return FINAL_CLOSINGS.get(error.rcvd.code) if error.rcvd else None
    if isinstance(error, InvalidStatus):
        error = Refusal(error.response.status_code, error.response.body or b"")
    if not isinstance(error, Refusal):
        return None
    if error.code == "DEREGISTERED":
        return UNWANTED
    remedy = "; check FLEET_CLIENT_ID, FLEET_CLIENT_SECRET and AGENT_TYPE" if error.status in (401, 403) else ""
    return f"{error}{remedy}" if error.status in REFUSED else None


class Dispatch:
    """One message to answer. Its frames are held: a socket that breaks does not say what arrived."""

    def __init__(self, agent, frame):
        self.agent, self.frame_id, self.payload = agent, frame["id"], frame["payload"]
        self.held = deque(maxlen=HELD_CHUNKS)
        self.chunks = 0
        self.ending = None
        self.next_seq = 0  # of the chunks, the next one for the present socket
        self.ending_sent = False
        self.sending = asyncio.Lock()
        self.task = asyncio.create_task(self.run())

    def inflight(self):
        """Chunks after `last_seq` are sent (again) when a resume succeeds."""
        first_held = self.held[0]["seq"] if self.held else self.chunks
        return {"dispatch_id": self.payload["dispatch_id"], "last_seq": first_held - 1}

    async def run(self):
        try:
            async with asyncio.timeout(self.payload["deadline_ms"] / 1000):
                parts = self.payload["params"]["message"]["parts"]
                whole = ""
                async for piece in answer("\n".join(part["text"] for part in parts if part["kind"] == "text")):
                    whole += piece
                    await self.stream(piece)
                result = {"result": whole, "status": {"state": "completed"}, "chunk_count": self.chunks}
                self.ending = ("dispatch_result", result)
        except asyncio.CancelledError:
            log(f"{self.payload['dispatch_id']} is not wanted any more")
            return
        except Exception as error:  # whatever the agent's own code does
            self.ending = ("error", {"code": "HANDLER_ERROR", "message": str(error) or type(error).__name__, "retryable": False})
        await self.flush()
        self.agent.ended(self)

    async def stream(self, text):
        await self.agent.connected.wait()  # the agent's own code goes on when there is somebody to read it
        self.held.append({"seq": self.chunks, "parts": [{"kind": "text", "text": text}]})
        self.chunks += 1
        await self.flush()

    def rewind(self):
        """The socket is gone: the next one gets all that is held once more."""
        self.next_seq = self.held[0]["seq"] if self.held else self.chunks
        self.ending_sent = False

    async def flush(self):
        """Sends what the present socket has not had. One after the other: a chunk before its predecessor fails the dispatch."""
        async with self.sending:
            while self.agent.socket:
                chunk = next((each for each in self.held if each["seq"] >= self.next_seq), None)
                if chunk:
                    self.next_seq = chunk["seq"] + 1
                    await self.agent.send("dispatch_chunk", chunk, self.frame_id)
                elif self.ending and not self.ending_sent:
                    self.ending_sent = True
                    await self.agent.send(*self.ending, self.frame_id)
                else:
                    return


class Agent:
    def __init__(self):
        self.socket = None  # only from `welcome` on: what is sent between `hello` and `welcome` would overtake what has to be repeated
        self.connected = asyncio.Event()
        self.resume_token = None
        self.dispatches = {}  # by the id of their frame, the answered ones too: an answer may be lost with its socket
        self.draining = asyncio.Event()
        self.has_joined = False  # the platform has registered it once

    async def send(self, frame_type, payload, in_reply_to=None):
        """Sends a frame; one for a socket that is gone is dropped, and repeated after a resume."""
        if self.socket:
            try:
                await self.socket.send(frame_text(frame_type, payload, in_reply_to))
            except ConnectionClosed:
                pass

    def running(self):
        return [dispatch for dispatch in self.dispatches.values() if dispatch.ending is None]

    def ended(self, dispatch):
        answered = [each for each in self.dispatches.values() if each.ending]
        for oldest in answered[:-ANSWERED_MAX]:
            del self.dispatches[oldest.frame_id]

    def give_up(self, frame_id):
        dispatch = self.dispatches.pop(frame_id, None)
        if dispatch:
            dispatch.task.cancel()

    async def heartbeats(self, interval_ms):
        while True:
            status = "draining" if self.draining.is_set() else "available"
            sessions = {each.payload["session_context"]["session_id"] for each in self.running()}
            await self.send("heartbeat", {"instance_id": INSTANCE_ID, "status": status, "current_sessions": len(sessions)})
            try:  # at once when the status changes, else when it is time
                waiting = asyncio.sleep(interval_ms / 1000) if self.draining.is_set() else self.draining.wait()
                await asyncio.wait_for(waiting, interval_ms / 1000)
            except TimeoutError:
                pass

    async def drain(self):
        """Asks for nothing new, finishes what runs (a dispatch may cross the request), and leaves when the mesh closes the socket."""
        await self.draining.wait()
        await self.send("close_request", {"grace_seconds": GRACE_SECONDS, "reason": "agent stops"})
        await asyncio.sleep(GRACE_SECONDS)
        log("what still runs is given up")
        await self.socket.close(CLOSE_NORMAL)

    async def receive(self, frame):
        payload, frame_type = frame["payload"], frame["type"]
        if frame_type == "ping":
            await self.send("pong", payload, frame["id"])
        elif frame_type == "dispatch" and frame["id"] in self.dispatches:
            self.dispatches[frame["id"]].rewind()
            await self.dispatches[frame["id"]].flush()
        elif frame_type == "dispatch":
            await self.send("dispatch_ack", {}, frame["id"])
            self.dispatches[frame["id"]] = Dispatch(self, frame)
        elif frame_type == "error" and frame.get("in_reply_to"):
            self.give_up(frame["in_reply_to"])  # canceled, or the mesh had the answer already
        elif frame_type == "error":
            log(f"the mesh says {payload['code']}: {payload.get('message', '')}")
        elif frame_type == "close_request":
            log("the mesh is shutting down; it closes the socket when nothing is in flight")

    async def welcomed(self, socket, welcome):
        log(f"connected to {welcome['mesh_id']}, resumed: {welcome['resumed']}")
        self.resume_token = welcome["resume_token"]
        if not welcome["resumed"]:
            for frame_id in list(self.dispatches):
                self.give_up(frame_id)  # the mesh has failed it with AGENT_DISCONNECTED
        self.socket = socket
        self.connected.set()
        for dispatch in list(self.dispatches.values()):
            await dispatch.flush()

    def lost(self):
        self.socket = None
        self.connected.clear()
        for dispatch in self.dispatches.values():
            dispatch.rewind()

    async def connect_once(self):
        credential = {"client_id": os.environ["FLEET_CLIENT_ID"], "client_secret": os.environ["FLEET_CLIENT_SECRET"]}
        token = (await asyncio.to_thread(post, "/auth/get_token", {**credential, "agent_type": AGENT_TYPE}))["token"]
        if self.has_joined:
            await asyncio.to_thread(check_wanted, token)
        registration = {"agent_type": AGENT_TYPE, "instance_id": INSTANCE_ID, "deployment_mode": "connected"}
        registered = await asyncio.to_thread(post, "/agents/register", registration, token)
        self.has_joined = True
        options = {
            "subprotocols": ["service.v1"],
            "additional_headers": {"Authorization": f"Bearer {token}"},
            "ssl": ssl.create_default_context(cafile=os.environ.get("FLEET_CA_FILE")),
            "max_size": 2 * 1024 * 1024,
            "compression": None,
        }
        async with connect(registered["connect_url"], **options) as socket:
            hello = {"instance_id": INSTANCE_ID, "agent_type": AGENT_TYPE, "resume_token": self.resume_token}
            hello["inflight"] = [each.inflight() for each in self.dispatches.values()]
            await socket.send(frame_text("hello", hello))
            welcome = json.loads(await socket.recv())
            if welcome["type"] != "welcome":
                raise OSError(f"no welcome: {welcome['payload']}")
            self.attempts = 0
            await self.welcomed(socket, welcome["payload"])
            beating = asyncio.create_task(self.heartbeats(welcome["payload"]["heartbeat_interval_ms"]))
            draining = asyncio.create_task(self.drain())
            try:
                async for text in socket:
                    await self.receive(json.loads(text))
            finally:
                beating.cancel()
                draining.cancel()
                self.lost()

    async def run(self):
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, self.draining.set)
        self.attempts = 0
        while not self.draining.is_set():
            try:
                await self.connect_once()
            except (OSError, ConnectionClosed, InvalidHandshake) as error:
                reason = final_reason(error)
                if reason:
                    raise SystemExit(f"{AGENT_TYPE} stops: {reason}") from error
                log(f"not connected: {error}")
            if self.draining.is_set():
                break
            wait = BACKOFF_SECONDS[min(self.attempts, len(BACKOFF_SECONDS) - 1)] * random.uniform(0.75, 1.25)
            self.attempts += 1
            await asyncio.wait([asyncio.create_task(self.draining.wait())], timeout=wait)


asyncio.run(Agent().run())
