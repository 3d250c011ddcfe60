"""Agents and callers of the Agent Fleet Platform."""

from .access import TokenProvider
from .agent.agent import Agent
from .agent.options import Connected, Disconnected, ReportedStatus
from .client.fleet_client import FleetClient
from .client.generated.models import MessageRecord, Task
from .client.not_given import NOT_GIVEN, NotGiven
from .client.rpc import ArtifactUpdate, StatusUpdate, StreamEvent
from .client.send_options import MessageOptions, SendOptions
from .client.text import text_of, text_stream
from .errors import AgentError, AgentStoppedError, ApiError, TaskFailedError, ToolError, UnreachableError
from .handlers.agent_task import AgentTask
from .handlers.output_source import Output, OutputSource
from .handlers.questions import Ask
from .handlers.results import Completed, Failed, InputRequired, TaskResolution
from .log import SILENT_LOG
from .parts import Artifact, DataPart, FileContent, FilePart, InputField, Part, Question, TextPart, Usage
from .tools.tool_caller import Target
from .tools.tool_handlers import ToolCall
from .version import __version__

__all__ = [
    "NOT_GIVEN",
    "SILENT_LOG",
    "Agent",
    "AgentError",
    "AgentStoppedError",
    "AgentTask",
    "ApiError",
    "Artifact",
    "ArtifactUpdate",
    "Ask",
    "Completed",
    "Connected",
    "DataPart",
    "Disconnected",
    "Failed",
    "FileContent",
    "FilePart",
    "FleetClient",
    "InputField",
    "InputRequired",
    "MessageOptions",
    "MessageRecord",
    "NotGiven",
    "Output",
    "OutputSource",
    "Part",
    "Question",
    "ReportedStatus",
    "SendOptions",
    "StatusUpdate",
    "StreamEvent",
    "Target",
    "Task",
    "TaskFailedError",
    "TaskResolution",
    "TextPart",
    "TokenProvider",
    "ToolCall",
    "ToolError",
    "UnreachableError",
    "Usage",
    "__version__",
    "text_of",
    "text_stream",
]
