"""The errors of this package."""


class AgentError(Exception):
    """An error that keeps an agent from working. The message says what to do about it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """`UNREACHABLE`, `UNTRUSTED_CERTIFICATE`, …, or the platform's code, for example `RATE_LIMITED`."""
        self.message = message


class AgentStoppedError(AgentError):
    """The agent stopped for good: it was refused or deregistered, or another process with its `instance_id` replaced it.

    `code` is the platform's, for example `REPLACED`, `DEREGISTERED`, `forbidden` or `DEPLOYMENT_MODE_MISMATCH`.
    """


class ApiError(Exception):
    """An error answer of the platform: an HTTP error or a JSON-RPC error."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        request_id: str = "",
        rpc_code: int | None = None,
        retry_after_ms: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """HTTP status; of a JSON-RPC error the one that its meaning has over HTTP, for example 404 for an unknown task."""
        self.code = code
        """Machine-readable code, for example `NOT_FOUND`; of a JSON-RPC error the code in its `data`, or its number as text."""
        self.request_id = request_id
        """For a search in the platform's log; empty when the answer had none."""
        self.rpc_code = rpc_code
        """Number of a JSON-RPC error; None for HTTP errors."""
        self.retry_after_ms = retry_after_ms
        """The wait that the platform asks for before a retry (`Retry-After`)."""


class UnreachableError(Exception):
    """The platform did not answer, or the connection broke. Whether the request took effect is unknown."""

    def __init__(self, url: str, cause: BaseException | str) -> None:
        text = cause if isinstance(cause, str) else str(cause) or type(cause).__name__
        super().__init__(f"no answer from {url}: {text}")


class TaskFailedError(Exception):
    """A task has failed, or was canceled or rejected."""

    def __init__(self, message: str, *, code: str, task_id: str, state: str) -> None:
        super().__init__(message)
        self.code = code
        """Why, for example `HANDLER_ERROR` or `DEADLINE_EXCEEDED`; the state of the task where the platform names no code."""
        self.task_id = task_id
        self.state = state
        """`failed`, `canceled` or `rejected`."""


class TaskNotEndedError(Exception):
    """A task has no answer yet: it waits for a human, or still works."""

    def __init__(self, message: str, *, task_id: str, state: str, text: str = "") -> None:
        super().__init__(message)
        self.task_id = task_id
        self.state = state
        """`input-required`, `auth-required`, `working` or `submitted`."""
        self.text = text
        """The question, where it waits for a human."""


class ToolError(Exception):
    """A failed tool call. `call_tool` raises it; a tool raises it to choose the error that its caller receives."""

    def __init__(
        self, message: str, *, code: str = "HANDLER_ERROR", retryable: bool = False, policy_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        """The platform's code (`TOOL_NOT_FOUND`, `POLICY_DENIED`, …), or the tool's own."""
        self.message = message
        self.retryable = retryable
        """Whether the same call may succeed later."""
        self.policy_id = policy_id
        """The policy that denied the call, if one did."""


class UnsendableError(ValueError):
    """A handler returned or streamed a value that cannot be sent. The message names the field and the remedy."""

    def __init__(self, message: str, code: str = "BAD_REQUEST") -> None:
        super().__init__(message[:4_096])
        self.code = code


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed soon: no answer, or status 408, 429, 502, 503 or 504; not where a quota is used up."""
    if isinstance(error, UnreachableError):
        return True
    if not isinstance(error, ApiError) or error.code == "QUOTA_EXCEEDED":
        return False
    return error.status in (408, 429, 502, 503, 504)
