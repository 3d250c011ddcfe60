/** One tool call on the way from the first caller to here. */
export interface ChainLink {
  instance_id: string;
  tool: string;
}

/** The tool calls that wait for each other, the outermost first. The platform's own knowledge, never an agent's. */
export type Chain = readonly ChainLink[];

/** What an agent is doing when it calls a tool: a dispatch, or a tool call that it is answering. */
export interface Work {
  chain: Chain;
  /** When its time is over, on `performance.now()`. */
  endsAtMs: number;
  /** Aborted when it has ended, in whatever way: calls that are part of it end with it. */
  ended: AbortSignal;
  session_id?: string;
  traceparent?: string;
}

/** The agent that calls. */
export interface ToolCaller {
  tenant_id: string;
  agent_type: string;
  /** Absent where a token stands for a type only. */
  instance_id?: string;
  /** Bounds and idempotency keys are kept under this name. */
  key: string;
}
