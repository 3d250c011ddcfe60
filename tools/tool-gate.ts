import { LIMITS } from '../contracts/limits.js';
import type { Chain, ToolCaller } from './tool-work.js';

/** A call whose target is chosen, right before it goes there. */
export interface ProposedCall {
  caller: ToolCaller;
  tool: string;
  arguments: Record<string, unknown>;
  /** Null for a tool of the platform's own. */
  target: { instance_id: string; agent_type: string } | null;
  chain: Chain;
}

/** Whether a call may go on; the code is that of its result. */
export type Verdict = { allowed: true } | { allowed: false; code: 'POLICY_DENIED'; message: string };

/** The one place that every tool call passes, wherever it comes from and goes to: here is decided whether it may. */
export function authorize({ tool, target, chain }: ProposedCall): Verdict {
  if (chain.length >= LIMITS.toolCallDepthMax) {
    return denied(`Tool calls wait for each other ${LIMITS.toolCallDepthMax} deep at most.`);
  }
  if (target && isLoop(chain, tool, target.instance_id)) {
    return denied(`${target.instance_id} is answering a call of ${tool} already, on whose behalf this one is made.`);
  }
  return { allowed: true };
}

/** Whether an instance's tool would wait for itself. */
export function isLoop(chain: Chain, tool: string, instanceId: string): boolean {
  return chain.some((link) => link.tool === tool && link.instance_id === instanceId);
}

function denied(message: string): Verdict {
  return { allowed: false, code: 'POLICY_DENIED', message };
}
