export { type AgentLog, type AgentOptions, AgentStoppedError } from './agent-options.js';
export type {
  AgentTask,
  Completed,
  Failed,
  InputRequired,
  Question,
  TaskResolution,
  TaskResult,
} from './agent-task.js';
export { ConnectedAgent, connectAgent } from './connected-agent.js';
