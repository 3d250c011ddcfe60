"""Agents and callers of the Agent Fleet Platform."""

from .access import TokenProvider
from .agent.agent import Agent
from .agent.options import Connected, Disconnected, ReportedStatus
from .client.fleet_client import FleetClient
from .client.generated.models import MessageRecord
from .client.not_given import NOT_GIVEN, NotGiven
from .client.rpc import ArtifactUpdate, StatusUpdate, StreamEvent
from .client.send_options import Content, MessageOptions, SendOptions
from .client.sent_task import EndedTask, Task, WaitingTask, WorkingTask, has_ended, is_waiting
from .client.sync.sync_client import SyncFleetClient
from .client.text import data_of, text_of, text_stream
from .errors import AgentError, AgentStoppedError, ApiError, TaskFailedError, TaskNotEndedError, ToolError, UnreachableError
from .handlers.agent_task import AgentTask
from .handlers.conversation import TaskClient, Turn
from .handlers.output_source import Output, OutputSource
from .handlers.questions import Ask
from .handlers.results import Completed, Failed, InputRequired, TaskResolution
from .handlers.task_files import TaskFile
from .log import SILENT_LOG
from .parts import Artifact, DataPart, FileContent, FilePart, InputField, NewArtifact, Part, Question, TextPart, Usage
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
    "Content",
    "DataPart",
    "Disconnected",
    "EndedTask",
    "Failed",
    "FileContent",
    "FilePart",
    "FleetClient",
    "InputField",
    "InputRequired",
    "MessageOptions",
    "MessageRecord",
    "NewArtifact",
    "NotGiven",
    "Output",
    "OutputSource",
    "Part",
    "Question",
    "ReportedStatus",
    "SendOptions",
    "StatusUpdate",
    "StreamEvent",
    "SyncFleetClient",
    "Target",
    "Task",
    "TaskClient",
    "TaskFailedError",
    "TaskFile",
    "TaskNotEndedError",
    "TaskResolution",
    "TextPart",
    "TokenProvider",
    "ToolCall",
    "ToolError",
    "Turn",
    "UnreachableError",
    "Usage",
    "WaitingTask",
    "WorkingTask",
    "__version__",
    "data_of",
    "has_ended",
    "is_waiting",
    "text_of",
    "text_stream",
]
