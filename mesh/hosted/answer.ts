import { z } from 'zod';
import { A2aMessage, ArtifactUpdate, StatusUpdate, Task } from '../../contracts/a2a/a2a.js';
import type { Artifact } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import { Usage } from '../../contracts/api/messages.js';
import { DispatchResultPayload } from '../../contracts/frames.js';
import { jsonProblem, makeWellFormed } from '../../contracts/json-guard.js';
import type { AnswerOrFailure } from '../../messages/dispatch/dispatches.js';
import { toAgentResult } from '../connected/agent-result.js';
import { fromEitherVersion } from './version-1.js';

/** One JSON-RPC answer of a hosted agent, or one event of its stream, in 0.3 spelling. */
export type HostedAnswer =
  | { kind: 'task'; task: Task; usage?: Usage }
  | { kind: 'update'; update: StatusUpdate | ArtifactUpdate; usage?: Usage }
  /** A message, a text or any other object: the complete answer. */
  | { kind: 'result'; payload: DispatchResultPayload }
  /** An event of an unknown kind. */
  | { kind: 'other' }
  | ({ kind: 'error' } & RpcFailure)
  | { kind: 'invalid'; problem: string };

const RpcFailure = z.object({ code: z.number(), message: z.string().default(''), data: z.unknown().optional() });
/** The error of a JSON-RPC response. */
export type RpcFailure = z.infer<typeof RpcFailure>;

/** The error in a JSON-RPC response; undefined where it has none. */
export function readFailure(body: unknown): RpcFailure | undefined {
  const error = (body as { error?: unknown } | null | undefined)?.error;
  // Absent members are not parsed: a schema that refuses takes 8 µs to create its error.
  return error == null ? undefined : RpcFailure.safeParse(error).data;
}

/** A text parsed as JSON; undefined if it is not JSON, or was cut off. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads the text of one answer. Never throws. */
export function readAnswer(text: string): HostedAnswer {
  const json = jsonOf(text);
  if (json === undefined) return { kind: 'invalid', problem: 'is not JSON' };
  const unfit = jsonProblem(json);
  if (unfit) return { kind: 'invalid', problem: unfit };
  const body = json as { result?: unknown; status?: unknown; usage?: unknown } | null;
  const failure = readFailure(body);
  if (failure) return { kind: 'error', ...failure };
  if (body?.result == null) return { kind: 'invalid', problem: 'has neither result nor error' };
  return readResult(fromEitherVersion(body.result), body);
}

function readResult(result: unknown, body: { status?: unknown; usage?: unknown }): HostedAnswer {
  const { kind, metadata } = result as { kind?: unknown; metadata?: { usage?: unknown } };
  const own = body.usage == null ? undefined : Usage.safeParse(body.usage);
  if (own?.error) return { kind: 'invalid', problem: problemOf(own.error, 'usage') };
  // An A2A server's metadata is its own: a `usage` in it that does not fit the platform's schema is ignored.
  const usage = own?.data ?? (metadata?.usage == null ? undefined : Usage.safeParse(metadata.usage).data);
  if (kind === 'task') return checked(Task, result, (task) => ({ kind: 'task', task, usage }));
  if (kind === 'status-update') return checked(StatusUpdate, result, (update) => ({ kind: 'update', update, usage }));
  if (kind === 'artifact-update') return checked(ArtifactUpdate, result, (update) => ({ kind: 'update', update }));
  if (kind === 'message') return checked(A2aMessage, result, (message) => finalResult(message, body.status, usage));
  return typeof kind === 'string' ? { kind: 'other' } : finalResult(result, body.status, usage);
}

/** A `status` beside the result counts if it has a `state`; otherwise it is the agent's own, and ignored. */
function finalResult(result: unknown, status: unknown, usage: Usage | undefined): HostedAnswer {
  const given = typeof status === 'object' && status !== null && 'state' in status ? status : undefined;
  return checked(DispatchResultPayload, { result, status: given, usage }, (payload) => ({ kind: 'result', payload }));
}

function checked<T>(schema: z.ZodType<T>, value: unknown, found: (value: T) => HostedAnswer): HostedAnswer {
  const parsed = schema.safeParse(value);
  if (parsed.success) return found(parsed.data);
  return { kind: 'invalid', problem: problemOf(parsed.error) };
}

function problemOf({ issues: [issue] }: z.ZodError, ...within: string[]): string {
  const path = [...within, ...(issue?.path ?? [])];
  return `does not fit A2A at ${path.join('.') || 'result'}`.slice(0, 300);
}

/** Whether an agent's task in this state has ended or waits for input. */
export function isSettled(state: Task['status']['state']): boolean {
  return state !== 'submitted' && state !== 'working' && state !== 'unknown';
}

/** Whether an agent's task in this state waits for input. */
export function isWaiting(state: Task['status']['state']): boolean {
  return state === 'input-required' || state === 'auth-required';
}

/**
 * The result of a final answer. A task that waits for input without an `input_request` asks for free text.
 * @param streamed artifacts that came before it
 */
export function resultOf(payload: DispatchResultPayload, streamed: Artifact[], dispatchId: string): AnswerOrFailure {
  makeWellFormed(payload);
  const result = toAgentResult(payload, streamed, dispatchId);
  if (result.state !== 'input-required') return result;
  const prompt = result.status_message ? textOf(result.status_message.parts) : '';
  const freeText = { kind: 'form' as const, ...(prompt !== '' && { prompt: prompt.slice(0, 16_384) }) };
  return { ...result, input_request: result.input_request ?? freeText };
}
