"""One message that the agent answers, and the answer itself."""

import asyncio
import re

from wire import log


async def answer(text):
    """The agent itself: yields the chunks of its answer."""
    counting = re.match(r"count (\d+)(?: every (\d+))?", text)
    if not counting:
        yield f"You said: {text}"
        return
    pause_ms = int(counting[2] or 500)
    for number in range(1, int(counting[1]) + 1):
        if number > 1:
            await asyncio.sleep(pause_ms / 1000)
        yield f"{number} "


class Dispatch:
    """One message to answer. It keeps the frames of its answer, because a broken socket does not tell which of them arrived."""

    def __init__(self, agent, frame):
        self.agent, self.frame_id, self.payload = agent, frame["id"], frame["payload"]
        self.frames = []  # the chunks, then the result or error
        self.next = 0  # index of the first frame that was not sent on the current socket
        self.is_answered = False
        self.sending = asyncio.Lock()
        self.task = asyncio.create_task(self.run())

    async def run(self):
        try:
            async with asyncio.timeout(self.payload["deadline_ms"] / 1000):
                parts = self.payload["params"]["message"]["parts"]
                whole = ""
                async for chunk in answer("\n".join(part["text"] for part in parts if part["kind"] == "text")):
                    await self.agent.connected.wait()  # pauses the answer while there is no connection
                    whole += chunk
                    await self.send("dispatch_chunk", {"seq": len(self.frames), "parts": [{"kind": "text", "text": chunk}]})
                count = len(self.frames)
                end = ("dispatch_result", {"result": whole, "status": {"state": "completed"}, "chunk_count": count})
        except asyncio.CancelledError:
            log(f"{self.payload['dispatch_id']} was aborted")
            return
        except Exception as error:  # any error of `answer`
            end = ("error", {"code": "HANDLER_ERROR", "message": str(error) or type(error).__name__, "retryable": False})
        self.is_answered = True
        await self.send(*end)
        self.agent.drop_oldest_answered()

    async def send(self, frame_type, payload):
        self.frames.append((frame_type, payload))
        await self.flush()

    async def flush(self):
        """Sends the remaining frames in order; the mesh fails a dispatch whose chunks have a gap."""
        async with self.sending:
            while self.agent.socket and self.next < len(self.frames):
                self.next += 1
                await self.agent.send(*self.frames[self.next - 1], self.frame_id)
