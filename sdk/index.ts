export { z } from 'zod';
export type { ArtifactUpdate, StatusUpdate, StreamEvent, Task } from '../contracts/a2a/a2a.js';
export type { Artifact, Part } from '../contracts/a2a/parts.js';
export type { AlertRule } from '../contracts/api/alerts.js';
export type { Delivery } from '../contracts/api/deliveries.js';
export type { JobResponse, KnowledgeBase, KnowledgeSource } from '../contracts/api/knowledge/knowledge.js';
export type { QueryResponse, SearchResult } from '../contracts/api/knowledge/knowledge-query.js';
export type { InputRequest, MessageRecord, ResolveRequest, Usage } from '../contracts/api/messages.js';
export type { ApprovalRecord, ExportedApproval } from '../contracts/api/policies/approvals.js';
export type { Guard } from '../contracts/api/policies/guards.js';
export type { Policy } from '../contracts/api/policies/policies.js';
export type { SessionDetails, SessionSummary } from '../contracts/api/sessions.js';
export type { Trace, TraceSpan, TraceSummary } from '../contracts/api/telemetry.js';
export type { ModelPrice, TenantLimitsResponse } from '../contracts/api/tenants.js';
export type { GetUsageResponse, UsageRow } from '../contracts/api/usage.js';
export type { AccessOptions, TokenProvider } from './access.js';
export { Agent, type ReportedStatus } from './agent/agent.js';
export { AgentError, AgentStoppedError } from './agent/agent-error.js';
export type { AgentOptions, ConnectionEvents, ConnectOptions } from './agent/agent-options.js';
export type { DecisionOptions } from './client/approvals.js';
export { ApiError, isTransient, UnreachableError } from './client/errors.js';
export { FleetClient, type FleetClientOptions } from './client/fleet-client.js';
export type { KnowledgeDocument } from './client/knowledge.js';
export type { WaitOptions } from './client/messages.js';
export type { AnswerSchema, CallOptions, PostOptions } from './client/platform-api.js';
export type { SendOptions } from './client/rpc.js';
export type { TraceFilters } from './client/telemetry.js';
export type {
  AgentTask,
  Answer,
  Ask,
  Completed,
  Failed,
  FormQuestion,
  FormResolution,
  InputRequired,
  Output,
  OutputSource,
  Question,
  TaskResolution,
  TaskResult,
} from './handlers/agent-task.js';
export type { MessageHandler, SkillHandler, SkillOptions } from './handlers/handlers.js';
export type { ServeOptions } from './hosted/hosted-agent.js';
export { type AgentLog, SILENT_LOG } from './log.js';
export type { Search, SearchOptions } from './tools/search.js';
export type { CallTool, CallToolOptions } from './tools/tool-caller.js';
export { ToolError } from './tools/tool-error.js';
export type { ToolCall, ToolHandler } from './tools/tool-handlers.js';
