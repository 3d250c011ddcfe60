"""A connected agent without the SDK: the protocol `service.v1` with the standard library and `websockets`.

    pip install -r requirements.txt
    FLEET_BASE_URL=… FLEET_CLIENT_ID=… FLEET_CLIENT_SECRET=… FLEET_CA_FILE=… python agent.py

The credential is one for agents: `npm start` writes it into `dev.json`, as `agent_client_id` and `agent_client_secret`.

The agent counts: it answers "count 3" with "1 2 3", one chunk for each number, half a second apart ("count 3 every 10": 10 ms apart). It
echoes anything else. docs/agents.md describes the protocol. What an agent of your own would answer is `answer` in dispatch.py.
"""

import asyncio
import json
import os
import random
import signal
import ssl
from datetime import datetime, timezone

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from dispatch import Dispatch
from wire import AGENT_TYPE, INSTANCE_ID, check_not_deregistered, final_reason, frame_text, get_token, log, post

BACKOFF_SECONDS = (1, 2, 4, 8, 16, 30)
GRACE_SECONDS = 30
ANSWERED_MAX = 64


class Agent:
    def __init__(self):
        self.socket = None  # set at `welcome`: frames between `hello` and `welcome` would overtake repeated ones
        self.connected = asyncio.Event()
        self.draining = asyncio.Event()
        self.resume_token = None
        self.resume_url = None  # of the node that has this agent's work; tried once, then the usual address
        self.dispatches = {}  # by frame id; answered ones too, because their result may be lost with the socket
        self.has_registered = False
        self.attempts = 0
        self.renewed = None  # resolves with the end of the new token

    async def send(self, frame_type, payload, in_reply_to=None):
        """Sends a frame. Without a connection it is dropped; a dispatch sends its frames again after a resume."""
        if self.socket:
            try:
                await self.socket.send(frame_text(frame_type, payload, in_reply_to))
            except ConnectionClosed:
                pass

    def drop_oldest_answered(self):
        answered = [dispatch.frame_id for dispatch in self.dispatches.values() if dispatch.is_answered]
        for frame_id in answered[:-ANSWERED_MAX]:
            del self.dispatches[frame_id]

    def abort(self, frame_id):
        dispatch = self.dispatches.pop(frame_id, None)
        if dispatch:
            dispatch.task.cancel()

    async def heartbeat(self):
        status = "draining" if self.draining.is_set() else "available"
        running = [dispatch.payload["session_context"] for dispatch in self.dispatches.values() if not dispatch.is_answered]
        sessions = len({context["session_id"] for context in running})
        await self.send("heartbeat", {"instance_id": INSTANCE_ID, "status": status, "current_sessions": sessions})

    async def heartbeats(self, interval_ms):
        while True:
            await self.heartbeat()
            await asyncio.sleep(interval_ms / 1000)

    async def renew_token(self, expires_at):
        """Sends a new token before the old one ends, so that the mesh does not close the socket."""
        while True:
            left = (datetime.fromisoformat(expires_at) - datetime.now(timezone.utc)).total_seconds()
            await asyncio.sleep(max(left - min(60, left / 5), 1))
            try:
                self.renewed = asyncio.get_running_loop().create_future()
                await self.send("reauth", {"token": await asyncio.to_thread(get_token)})
                expires_at = await asyncio.wait_for(self.renewed, 10)
            except (OSError, TimeoutError) as error:  # tried again; without success the mesh closes the socket with TOKEN_EXPIRED
                log(f"token not renewed: {error or type(error).__name__}")

    async def drain(self):
        """Asks for no new work and finishes running work. The mesh then closes the socket."""
        await self.draining.wait()
        await self.heartbeat()
        await self.send("close_request", {"grace_seconds": GRACE_SECONDS, "reason": "agent stops"})
        await asyncio.sleep(GRACE_SECONDS)
        log("aborting what still runs")
        await self.socket.close()

    async def receive(self, frame):
        payload, frame_type, frame_id = frame["payload"], frame["type"], frame["id"]
        if frame_type == "ping":
            await self.send("pong", payload, frame_id)
        elif frame_type == "dispatch" and frame_id in self.dispatches:  # a repeat: send its frames again
            self.dispatches[frame_id].next = 0
            await self.dispatches[frame_id].flush()
        elif frame_type == "dispatch":
            await self.send("dispatch_ack", {}, frame_id)
            self.dispatches[frame_id] = Dispatch(self, frame)
        elif frame_type == "error" and frame.get("in_reply_to"):
            self.abort(frame["in_reply_to"])  # canceled, or the mesh already has the result
        elif frame_type == "error":
            log(f"error from the mesh: {payload['code']}: {payload.get('message', '')}")
        elif frame_type == "reauth_ok" and self.renewed and not self.renewed.done():
            self.renewed.set_result(payload["token_expires_at"])
        elif frame_type == "close_request":
            log("the mesh is shutting down; it closes the socket when nothing is in flight")
            self.resume_url = None  # another node goes on with what is in flight by then

    async def welcomed(self, socket, welcome):
        log(f"connected to {welcome['mesh_id']}, resumed: {welcome['resumed']}")
        self.resume_token = welcome["resume_token"]
        url = welcome.get("resume_url", "")
        self.resume_url = url if url.startswith("wss://") else None
        if not welcome["resumed"]:
            for frame_id in list(self.dispatches):
                self.abort(frame_id)  # the mesh has failed it with AGENT_DISCONNECTED
        self.socket = socket
        self.connected.set()
        for dispatch in list(self.dispatches.values()):
            await dispatch.flush()

    def disconnected(self):
        self.socket = None
        self.connected.clear()
        for dispatch in self.dispatches.values():
            dispatch.next = 0  # the next socket gets all frames; the mesh drops repeats

    def register(self):
        """Gets a token and registers. Returns the token and the address of the mesh."""
        token = get_token()
        if self.has_registered:
            check_not_deregistered(token)
        registration = {"agent_type": AGENT_TYPE, "instance_id": INSTANCE_ID, "deployment_mode": "connected"}
        connect_url = post("/agents/register", registration, token)["connect_url"]
        self.has_registered = True
        return token, connect_url

    async def connect_once(self):
        token, connect_url = await asyncio.to_thread(self.register)
        own_url, self.resume_url = self.resume_url, None
        options = {
            "subprotocols": ["service.v1"],
            "additional_headers": {"Authorization": f"Bearer {token}"},
            "ssl": ssl.create_default_context(cafile=os.environ.get("FLEET_CA_FILE")),
            "max_size": 2 * 1024 * 1024,
            "compression": None,
        }
        try:
            connection = await connect(own_url or connect_url, **options)
        except InvalidStatus as error:
            raise OSError(f"no node at its own address: {error}") if own_url else error
        async with connection as socket:
            # `last_seq` -1: after a resume this agent sends all chunks again.
            inflight = [{"dispatch_id": each.payload["dispatch_id"], "last_seq": -1} for each in self.dispatches.values()]
            hello = {"instance_id": INSTANCE_ID, "agent_type": AGENT_TYPE, "resume_token": self.resume_token}
            await socket.send(frame_text("hello", {**hello, "inflight": inflight}))
            welcome = json.loads(await socket.recv())
            if welcome["type"] != "welcome":
                raise OSError(f"no welcome: {welcome['payload']}")
            self.attempts = 0
            await self.welcomed(socket, welcome["payload"])
            interval_ms = welcome["payload"]["heartbeat_interval_ms"]
            tasks = [asyncio.create_task(self.heartbeats(interval_ms)), asyncio.create_task(self.drain())]
            if welcome["payload"].get("reauth"):
                tasks.append(asyncio.create_task(self.renew_token(welcome["payload"]["token_expires_at"])))
            try:
                async for text in socket:
                    await self.receive(json.loads(text))
            finally:
                for task in tasks:
                    task.cancel()
                self.disconnected()

    async def run(self):
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, self.draining.set)
        while not self.draining.is_set():
            try:
                await self.connect_once()
            except (OSError, ConnectionClosed, InvalidHandshake) as error:
                reason = final_reason(error)
                if reason:
                    raise SystemExit(f"{AGENT_TYPE} stops: {reason}") from error
                log(f"not connected: {error}")
            seconds = BACKOFF_SECONDS[min(self.attempts, len(BACKOFF_SECONDS) - 1)] * random.uniform(0.75, 1.25)
            self.attempts += 1
            await asyncio.wait([asyncio.create_task(self.draining.wait())], timeout=seconds)


asyncio.run(Agent().run())
