import { expect, onTestFinished } from 'vitest';
import type { ToolDelivery, ToolResult } from '../../../contracts/api/tools.js';
import { RedisChannel } from '../../../mesh/nodes/redis-channel.js';
import { RedisLink } from '../../../mesh/nodes/tool-link-redis.js';
import { uuidv7 } from '../../../runtime/ids.js';
import { createLogger } from '../../../runtime/logger.js';
import type { Frame, RawAgent } from '../../setup/agent.js';
import { TEST_SECRETS } from '../../setup/core.js';

/** Sends a call; gives its frame's id. */
export function callTool(agent: RawAgent, payload: object, envelope: object = {}): string {
  const id = uuidv7();
  agent.sendRaw(JSON.stringify({ v: 1, type: 'tool_call', id, ts: new Date().toISOString(), ...envelope, payload }));
  return id;
}

/** The result of a call, when it comes. */
export async function resultOf(agent: RawAgent, id: string): Promise<ToolResult> {
  const frame = await agent.next(({ type, in_reply_to }) => type === 'tool_result' && in_reply_to === id);
  return frame.payload as ToolResult;
}

/** A call and its result. */
export function ask(agent: RawAgent, payload: object): Promise<ToolResult> {
  return resultOf(agent, callTool(agent, payload));
}

/** A call that the agent `by` answers with this; gives what the caller gets. */
export async function answeredCall(
  agent: RawAgent,
  payload: { tool: string; [member: string]: unknown },
  by: RawAgent,
  result: object,
): Promise<ToolResult> {
  const id = callTool(agent, payload);
  (await take(by, payload.tool)).result(result);
  return resultOf(agent, id);
}

/** A call as the agent that is to answer it sees it. */
export interface TakenCall {
  frame: Frame;
  payload: ToolDelivery;
  result(result: object): void;
  error(code: string, message?: string): void;
  /** Resolves when the answer is not wanted any more. */
  canceled(): Promise<Frame>;
}

/** The next call of that tool. */
export async function take(agent: RawAgent, tool: string): Promise<TakenCall> {
  const frame = await agent.next(({ type, payload }) => type === 'tool_call' && payload.tool === tool);
  return {
    frame,
    payload: frame.payload as unknown as ToolDelivery,
    result: (result) => void agent.send('tool_result', result, frame.id),
    error: (code, message = code) => void agent.send('error', { code, message, retryable: false }, frame.id),
    canceled: () =>
      agent.next((one) => one.type === 'error' && one.payload.code === 'CANCELED' && one.in_reply_to === frame.id),
  };
}

export function failing(code: string, message: string): ToolResult {
  return { ok: false, error: { code, message, retryable: false } };
}

export function refusedWith(code: string): object {
  return expect.objectContaining({ ok: false, error: expect.objectContaining({ code }) });
}

/** The node's end of the way over Redis that calls take from node to node; closed with the test. */
export function redisLink(url: string, meshId: string) {
  const log = createLogger({ level: 'silent' });
  const dropped = { forged: 0, late: 0 };
  const channel = new RedisChannel({ url, meshId, log, secrets: TEST_SECRETS, dropped });
  const link = new RedisLink({ channel, meshId, log });
  const close = async () => {
    await link.close();
    await channel.close();
  };
  onTestFinished(close);
  return { link, close, dropped };
}

export const ok = (result: unknown) => ({ ok: true as const, result });
