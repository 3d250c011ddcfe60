"""A client for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ...access import CertificateAuthority, TokenProvider
from ...parts import JsonObject
from ..fleet_client import FleetClient
from ..generated import sync_operations as operations
from ..generated.models import AuthGetTokenResponse, KnowledgeGetStatusResponse, MessageRecord, MessagesResolveResponse, Plan
from ..not_given import NOT_GIVEN, NotGiven
from ..rpc import StreamEvent
from ..send_options import Content, SendOptions
from ..sent_task import EndedTask, Task
from ..text import text_stream
from ..waiting import Until
from .loop_thread import LoopThread, SyncApi


class SyncFleetClient(operations.Operations):
    """`FleetClient` without `async`: `with SyncFleetClient() as client`. Its methods block; it may be used by several threads.

    It runs an event loop in a thread of its own until `close()`.
    """

    messages: SyncMessages
    plans: SyncPlans
    knowledge: SyncKnowledge
    tasks: SyncTasks

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
        """As `FleetClient`."""
        self._client = FleetClient(url=url, client_id=client_id, client_secret=client_secret, token=token, ca=ca, agent_type=agent_type)
        self._thread = LoopThread()
        api = SyncApi(self._client._api, self._thread)
        super().__init__(api)
        self.messages = SyncMessages(api, self._client, self._thread)
        self.plans = SyncPlans(api, self._client, self._thread)
        self.knowledge = SyncKnowledge(api, self._client, self._thread)
        self.tasks = SyncTasks(self._client, self._thread)

    def __enter__(self) -> SyncFleetClient:
        return self

    def __exit__(self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections, and ends the thread. Calls of other threads that wait raise RuntimeError, and so does every later one."""
        self._thread.stop(self._client.close)

    def token(self) -> str:
        """A valid access token."""
        return self._thread.wait(self._client.token())

    def create_user_token(
        self,
        user_id: str,
        *,
        session_id: str | NotGiven = NOT_GIVEN,
        agent_types: list[str] | NotGiven = NOT_GIVEN,
        expires_in: int | NotGiven = NOT_GIVEN,
    ) -> AuthGetTokenResponse:
        """As `FleetClient.create_user_token`."""
        token = self._client.create_user_token(user_id, expires_in=expires_in, session_id=session_id, agent_types=agent_types)
        return self._thread.wait(token)

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, retry: bool = False) -> JsonObject:
        """As `FleetClient.post`."""
        return self._thread.wait(self._client.post(path, body, retry=retry))

    @overload
    def send(
        self, content: Content, *, through_questions: Literal[True], blocking: bool | None = None, **options: Unpack[SendOptions]
    ) -> EndedTask: ...
    @overload
    def send(
        self, content: Content, *, through_questions: bool = False, blocking: bool | None = None, **options: Unpack[SendOptions]
    ) -> Task: ...
    def send(
        self, content: Content, *, through_questions: bool = False, blocking: bool | None = None, **options: Unpack[SendOptions]
    ) -> Task:
        """As `FleetClient.send`."""
        return self._thread.wait(self._client.send(content, through_questions=through_questions, blocking=blocking, **options))

    def stream(self, content: Content, *, through_questions: bool = False, **options: Unpack[SendOptions]) -> Iterator[StreamEvent]:
        """As `FleetClient.stream`."""
        return self._thread.each(self._client.stream(content, through_questions=through_questions, **options))

    def stream_text(
        self,
        content: Content,
        *,
        through_questions: bool = False,
        on_restart: Callable[[], object] | None = None,
        **options: Unpack[SendOptions],
    ) -> Iterator[str]:
        """The text of a streamed answer as it arrives: `text_stream` of `stream`. `on_restart` is called in the thread that reads."""
        events = self._client.stream(content, through_questions=through_questions, **options)
        if not on_restart:
            return self._thread.each(text_stream(events))
        restarts: list[None] = []
        pieces = self._thread.each(text_stream(events, on_restart=lambda: restarts.append(None)))
        return _calling(on_restart, restarts, pieces)


def _calling(on_restart: Callable[[], object], restarts: list[None], pieces: Iterator[str]) -> Iterator[str]:
    """The pieces of a text. Its restarts were noted in the client's thread, where a callback could not use the client."""
    while True:
        piece = next(pieces, None)
        while restarts:
            restarts.pop()
            on_restart()
        if piece is None:
            return
        yield piece


class SyncMessages(operations.MessagesOperations):
    """`/messages/*`, and the decisions of humans."""

    def __init__(self, api: SyncApi, client: FleetClient, thread: LoopThread) -> None:
        super().__init__(api)
        self._of = client.messages
        self._thread = thread

    def wait_for(self, message_id: str, *, until: Until = "settled", timeout_ms: float = 600_000) -> MessageRecord:
        """As `client.messages.wait_for` of `FleetClient`."""
        return self._thread.wait(self._of.wait_for(message_id, until=until, timeout_ms=timeout_ms))

    def wait_for_end(self, message_id: str, *, timeout_ms: float | None = None) -> MessageRecord:
        """As `client.messages.wait_for_end` of `FleetClient`."""
        return self._thread.wait(self._of.wait_for_end(message_id, timeout_ms=timeout_ms))

    def approve(self, message_id: str, **options: Any) -> MessagesResolveResponse:
        """As `client.messages.approve` of `FleetClient`."""
        return self._thread.wait(self._of.approve(message_id, **options))

    def reject(self, message_id: str, **options: Any) -> MessagesResolveResponse:
        """As `client.messages.reject` of `FleetClient`."""
        return self._thread.wait(self._of.reject(message_id, **options))


class SyncPlans(operations.PlansOperations):
    """`/plans/*`."""

    def __init__(self, api: SyncApi, client: FleetClient, thread: LoopThread) -> None:
        super().__init__(api)
        self._of = client.plans
        self._thread = thread

    def wait_for(self, plan_id: str, *, until: Until = "settled", timeout_ms: float = 600_000) -> Plan:
        """As `client.plans.wait_for` of `FleetClient`."""
        return self._thread.wait(self._of.wait_for(plan_id, until=until, timeout_ms=timeout_ms))


class SyncKnowledge(operations.KnowledgeOperations):
    """`/knowledge_base/*`."""

    def __init__(self, api: SyncApi, client: FleetClient, thread: LoopThread) -> None:
        super().__init__(api)
        self._of = client.knowledge
        self._thread = thread

    def wait_for(self, job_id: str, *, timeout_ms: float = 600_000) -> KnowledgeGetStatusResponse:
        """As `client.knowledge.wait_for` of `FleetClient`."""
        return self._thread.wait(self._of.wait_for(job_id, timeout_ms=timeout_ms))


class SyncTasks:
    """A2A's methods for tasks that exist."""

    def __init__(self, client: FleetClient, thread: LoopThread) -> None:
        self._of = client.tasks
        self._thread = thread

    def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """A task in its present state."""
        return self._thread.wait(self._of.get(task_id, history_length=history_length))

    def cancel(self, task_id: str) -> Task:
        """Cancels a task. Raises ApiError when it has ended."""
        return self._thread.wait(self._of.cancel(task_id))

    def resubscribe(self, task_id: str, *, last_event_id: str = "") -> Iterator[StreamEvent]:
        """The updates of a task."""
        return self._thread.each(self._of.resubscribe(task_id, last_event_id=last_event_id))

    def set_push_config(self, task_id: str, config: JsonObject) -> JsonObject:
        """Sets a URL that is notified about a task."""
        return self._thread.wait(self._of.set_push_config(task_id, config))

    def get_push_config(self, task_id: str, *, config_id: str | None = None) -> JsonObject:
        """A configuration of push notifications; without an id, the one with the task's id or the oldest."""
        return self._thread.wait(self._of.get_push_config(task_id, config_id=config_id))

    def list_push_configs(self, task_id: str) -> list[JsonObject]:
        return self._thread.wait(self._of.list_push_configs(task_id))

    def delete_push_config(self, task_id: str, config_id: str) -> None:
        self._thread.wait(self._of.delete_push_config(task_id, config_id))
