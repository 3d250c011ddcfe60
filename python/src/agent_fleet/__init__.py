"""Agents and callers of the Agent Fleet Platform."""

from .access import TokenProvider
from .agent.agent import Agent
from .agent.options import Connected, Disconnected, ReportedStatus
from .errors import AgentError, AgentStoppedError, ApiError, ToolError, UnreachableError
from .handlers.agent_task import AgentTask
from .handlers.output_source import Output, OutputSource
from .handlers.questions import Ask
from .handlers.results import Completed, Failed, InputRequired, TaskResolution
from .handlers.tool_caller import Target
from .handlers.tool_handlers import ToolCall
from .parts import Artifact, DataPart, FileContent, FilePart, InputField, Part, Question, TextPart, Usage, text_of
from .version import __version__

__all__ = [
    "Agent",
    "AgentError",
    "AgentStoppedError",
    "AgentTask",
    "ApiError",
    "Artifact",
    "Ask",
    "Completed",
    "Connected",
    "DataPart",
    "Disconnected",
    "Failed",
    "FileContent",
    "FilePart",
    "InputField",
    "InputRequired",
    "Output",
    "OutputSource",
    "Part",
    "Question",
    "ReportedStatus",
    "Target",
    "TaskResolution",
    "TextPart",
    "TokenProvider",
    "ToolCall",
    "ToolError",
    "UnreachableError",
    "Usage",
    "__version__",
    "text_of",
]
