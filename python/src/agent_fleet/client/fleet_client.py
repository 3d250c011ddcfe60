"""A client of the platform's API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, cast, overload

from typing_extensions import Unpack

from ..access import Access, CertificateAuthority, TokenProvider
from ..parts import JsonObject
from .generated.models import AuthGetTokenResponse
from .generated.operations import Operations
from .messaging import Messaging
from .not_given import NOT_GIVEN, NotGiven
from .platform_api import PlatformApi
from .rpc import StreamEvent
from .send_options import Content, SendOptions
from .sent_task import EndedTask, Task, has_ended
from .streams.resumed_stream import StreamPosition
from .tasks import Tasks
from .waiting import Knowledge, Messages, Plans


class FleetClient(Operations):
    """A client of the platform's API: `async with FleetClient() as client`.

    Every operation is a method by the name of its path: `POST /sessions/get_by_id` is `client.sessions.get_by_id(session_id)`.
    Answers are plain dicts, typed for checkers; members and values that a newer platform adds are there too. Tokens are cached and
    renewed before they expire, and once after a 401. What only reads is repeated up to three times when the platform is
    unavailable. Every method raises ApiError or UnreachableError.
    """

    messages: Messages
    plans: Plans
    knowledge: Knowledge
    tasks: Tasks

    def __init__(
        self,
        *,
        url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | TokenProvider | None = None,
        ca: CertificateAuthority | None = None,
        agent_type: str | None = None,
    ) -> None:
        """Missing options come from the environment, as for `Agent`. `agent_type` is the claim of the token; none by default.

        Raises ValueError when an address or a credential is missing.
        """
        options = Access(url=url, client_id=client_id, client_secret=client_secret, token=token, ca=ca)
        self._api = PlatformApi(options, agent_type)
        super().__init__(self._api)
        self.messages = Messages(self._api)
        self.plans = Plans(self._api)
        self.knowledge = Knowledge(self._api)
        self._messaging = Messaging(self._api)
        self.tasks = Tasks(self._messaging)

    async def __aenter__(self) -> FleetClient:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; in-flight calls fail with `UnreachableError`."""
        await self._api.close()

    async def token(self) -> str:
        """A valid access token."""
        return await self._api.tokens.get()

    async def create_user_token(
        self,
        user_id: str,
        *,
        session_id: str | NotGiven = NOT_GIVEN,
        agent_types: list[str] | NotGiven = NOT_GIVEN,
        expires_in: int | NotGiven = NOT_GIVEN,
    ) -> AuthGetTokenResponse:
        """A token for an end user, which the user's browser may have: it sends as that user, and reaches what is that user's.

        `session_id` and `agent_types` limit it further. `expires_in`: seconds, an hour by default, a day at most. Raises TypeError where
        the client has a token and no client id and secret.
        """
        access = self._api.access
        if access.client_id is None or access.client_secret is None:
            raise TypeError("a token for a user takes a client with a client_id and client_secret")
        return await self.auth.get_token(
            access.client_id,
            client_secret=access.client_secret,
            user_id=user_id,
            session_id=session_id,
            agent_types=agent_types,
            expires_in=expires_in,
        )

    async def post(self, path: str, body: Mapping[str, Any] | None = None, *, retry: bool = False) -> JsonObject:
        """Calls any operation, also one that this version of the package does not know. Repeated only with `retry`."""
        return await self._api.call(path, dict(body or {}), retry=retry)

    @overload
    async def send(
        self,
        content: Content,
        *,
        through_questions: Literal[True],
        blocking: bool | None = None,
        **options: Unpack[SendOptions],
    ) -> EndedTask: ...
    @overload
    async def send(
        self,
        content: Content,
        *,
        through_questions: bool = False,
        blocking: bool | None = None,
        **options: Unpack[SendOptions],
    ) -> Task: ...
    async def send(
        self,
        content: Content,
        *,
        through_questions: bool = False,
        blocking: bool | None = None,
        **options: Unpack[SendOptions],
    ) -> Task:
        """A2A `message/send`: gives the task when it ends, when it waits for a human, or after the platform's `SEND_WAIT_MS`.

        `has_ended(task)` and `is_waiting(task)` say which. With `through_questions=True` it waits until the task has ended, while humans
        answer its questions, for days if need be: `asyncio.timeout` bounds that.

        - Where it goes: `agent_type`, `instance_id`, `target_agent`, `skill_id` with its `args`; `deadline_ms` bounds the answer.
        - `context_id`: the session; a new one is opened by default. `task_id`: the `input-required` task that this answers.
        - `metadata`: members of your own, which the agent gets.
        - `message_id`: the same one gives the same task; a random one by default. A retry repeats it, so the message exists once.
        - `blocking=False` gives the task at once, in its current state. `traceparent`: W3C trace context of the caller.

        Raises TypeError for an unknown option, and for an option in `metadata`, where it would have no effect.
        """
        task = await self._messaging.send(content, blocking, **options)
        if not through_questions or has_ended(task):
            return task
        await self.messages.wait_for_end(task["id"])
        return await self.tasks.get(task["id"])

    def stream(
        self, content: Content, *, through_questions: bool = False, **options: Unpack[SendOptions]
    ) -> AsyncGenerator[StreamEvent, None]:
        """A2A `message/stream`: the task, then its updates, to a final state or until the task waits for a human.

        With `through_questions=True` it goes on when a human has answered, and ends with the task.

        A broken connection is reopened after the last event, without a gap or a repeat. When the platform no longer retains that
        event, the stream continues with the whole task. The options are those of `send`. `text_stream` gives the text alone.
        """
        position = StreamPosition()
        events = self._messaging.stream(content, position, **options)
        return self._through_questions(events, position) if through_questions else events

    async def _through_questions(
        self, events: AsyncGenerator[StreamEvent, None], position: StreamPosition
    ) -> AsyncGenerator[StreamEvent, None]:
        while True:
            waits = False
            async with aclosing(events):
                async for event in events:
                    state = cast(Any, event).get("status", {}).get("state")
                    waits = state in ("input-required", "auth-required") if state else waits
                    yield event
            if not waits:
                return
            await self.messages.wait_for_answer(position.task_id)
            events = self._messaging.follow(position, {}, {})
