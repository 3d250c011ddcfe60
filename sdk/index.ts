export { z } from 'zod';
export type { AccessOptions } from './access.js';
export { Agent, type ReportedStatus } from './agent/agent.js';
export { AgentError, AgentStoppedError } from './agent/agent-error.js';
export type { AgentOptions, ConnectionEvents, ConnectOptions } from './agent/agent-options.js';
export { ApiError, ClientClosedError, isTransient, UnreachableError } from './client/api/errors.js';
export type * from './client/exported-types.js';
export { FleetClient, type FleetClientOptions, type UserTokenOptions } from './client/fleet-client.js';
export { hasEnded, isWaiting } from './client/send/sent-task.js';
export { TaskFailedError, TaskNotEndedError } from './client/send/task-error.js';
export { dataOf, textOf, textStream } from './client/send/text.js';
export type {
  AgentTask,
  Answer,
  Ask,
  Completed,
  Failed,
  FormQuestion,
  FormResolution,
  HistoryOptions,
  InputRequired,
  ModelResult,
  ModelUsage,
  NewArtifact,
  Output,
  OutputSource,
  Question,
  ReportedUsage,
  StreamedModelResult,
  TaskClient,
  TaskResolution,
  TaskResult,
  TaskSendOptions,
  Turn,
} from './handlers/agent-task.js';
export type { MessageHandler, SkillHandler, SkillOptions } from './handlers/handlers.js';
export { InvalidInputError } from './handlers/input.js';
export type { TaskFile } from './handlers/task-files.js';
export type { ServeOptions } from './hosted/hosted-agent.js';
export { type AgentLog, SILENT_LOG } from './log.js';
export type { InputSchema, JsonSchema, SchemaOutput } from './schema/schema.js';
export type { StandardSchema } from './schema/standard-schema.js';
export type { Search, SearchOptions } from './tools/search.js';
export type { CallTool, CallToolOptions } from './tools/tool-caller.js';
export { ToolError, type ToolErrorOptions } from './tools/tool-error.js';
export type { ToolCall, ToolHandler } from './tools/tool-handlers.js';
