"""The tools of an agent."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from ..cancelation import is_canceled
from ..errors import ToolError, UnsendableError
from ..handlers.answer_fields import RESULT
from ..handlers.sync_task import SyncToolCalls
from ..interactive import is_interactive
from ..log import DEFAULT_LOG
from ..tracing import handler_span
from ..values.parameters import InvalidInput, Parameters, call, parameter_of_type
from ..values.sendable import is_error_code, sendable
from .tool_caller import CallContext, CallsTools, ToolCaller, tool_failure


class ToolCall(CallsTools):
    """A call to one of this agent's tools.

    The tool is canceled (`asyncio.CancelledError`) when the call is canceled, exceeds its deadline or is lost with the connection.
    """

    def __init__(self, delivery: dict[str, Any], traceparent: str, tools: ToolCaller) -> None:
        caller = delivery["caller"]
        self.tool: str = delivery["tool"]
        self.call_id: str = delivery["dispatch_id"]
        self.session_id: str | None = delivery.get("session_id")
        """The session that the caller is working on; None outside a session."""
        self.caller_agent_type: str = caller["agent_type"]
        """The caller, as authenticated by the platform."""
        self.caller_instance_id: str | None = caller.get("instance_id")
        self.idempotency_key: str = delivery.get("idempotency_key", self.call_id)
        """A repeat of the same call in the same session has the same key. It is made by the platform, not the caller's own."""
        self.deadline_ms: int = delivery["deadline_ms"]
        """Milliseconds that were left for the answer when the call arrived."""
        self.traceparent = traceparent
        """W3C trace context; empty when the call had none."""
        self._tools = tools
        self.sync = SyncToolCalls(self)
        """For tools without `async`: `call.sync.call_tool(…)`."""

    def _tool_caller(self) -> tuple[ToolCaller, CallContext]:
        return self._tools, CallContext(dispatch_id=self.call_id, traceparent=self.traceparent)


class ToolHandlers:
    """The functions that answer tool calls."""

    def __init__(self, log: logging.Logger = DEFAULT_LOG) -> None:
        self._log = log
        self.tools: list[dict[str, Any]] = []
        """As registrations and `hello` list them."""
        self._by_name: dict[str, tuple[Callable[..., Any], Parameters, str | None]] = {}

    def add(self, name: str, description: str | None, function: Callable[..., Any]) -> None:
        """A parameter that is annotated with `ToolCall` gets the call; the others are the arguments."""
        if name in self._by_name:
            if not is_interactive():
                raise ValueError(f"the tool {name} is already defined")
            self.tools[:] = [tool for tool in self.tools if tool["name"] != name]
        call_parameter = parameter_of_type(function, f"tool {name}", ToolCall)
        parameters = Parameters(function, f"tool {name}", {call_parameter} if call_parameter else set())
        described = description if description is not None else inspect.getdoc(function)
        tool = {"name": name, "input_schema": parameters.json_schema()}
        self.tools.append({**tool, "description": described} if described else tool)
        self._by_name[name] = (function, parameters, call_parameter)

    async def run(self, delivery: dict[str, Any], traceparent: str, tools: ToolCaller) -> dict[str, Any]:
        """Answers one call with the payload of a `tool_result`; raises nothing but CancelledError, where it is canceled."""
        name = delivery["tool"]
        if name not in self._by_name:
            return tool_failure(ToolError("this agent has no such tool", code="TOOL_NOT_FOUND"))
        function, parameters, call_parameter = self._by_name[name]
        tool_call = ToolCall(delivery, traceparent, tools)
        try:
            given = parameters.read(delivery["arguments"])
            if call_parameter:
                given[call_parameter] = tool_call
            ids = {"fleet.dispatch.id": delivery["dispatch_id"], "gen_ai.conversation.id": delivery.get("session_id")}
            with handler_span(f"tool {name}", traceparent, ids):
                return {"ok": True, "result": sendable(await call(function, **given), RESULT)}
        except InvalidInput as error:
            return tool_failure(ToolError(str(error), code="BAD_REQUEST"))
        except ToolError as error:
            if is_error_code(error.code):
                return tool_failure(error)
            return tool_failure(ValueError(f"tool {name}: the code of a ToolError has 1 to 64 characters: {error}"))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError):
                if is_canceled():
                    tool_call.sync.cancel()  # a thread is not interrupted
                    raise
                error = RuntimeError("the tool awaited something that was canceled (CancelledError)")
            self._log.error("handler failed (handler=tool %s, dispatch_id=%s)", name, delivery["dispatch_id"], exc_info=True)
            return tool_failure(f"tool {name}: {error}" if isinstance(error, UnsendableError) else error)
