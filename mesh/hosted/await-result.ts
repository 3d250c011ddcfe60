import { setTimeout as sleep } from 'node:timers/promises';
import { RPC_ERRORS } from '../../contracts/errors.js';
import { EventReader } from '../../http/event-reader.js';
import { OutboundError, type OutboundStream, readCapped } from '../../http/outbound.js';
import type { AgentResult } from '../../messages/dispatch/dispatches.js';
import { PlatformError } from '../../runtime/errors.js';
import { CredentialError } from './access-tokens.js';
import { type HostedAnswer, readAnswer, resultOf } from './answer.js';
import { ANSWER_BYTES_MAX, type HostedCall, readWhole } from './call.js';
import { invalidAnswer, resultOfError, rpcError, unknownOutcome } from './failures.js';
import { type HostedProgress, MORE, type TaskUpdate } from './progress.js';
import { HttpRefusal } from './refusal.js';

/** Pauses between two requests for an unfinished task, in milliseconds. */
export interface PollPace {
  firstMs: number;
  maxMs: number;
}

const POLL_PACE: PollPace = { firstMs: 500, maxMs: 5_000 };

/** Polls in a row that may fail before the agent counts as gone. */
const POLL_FAILURES_MAX = 5;
const GROWTH = 1.5;
/** The agent does not know `tasks/get`, or no longer knows this task. */
const CANNOT_TELL: ReadonlySet<number> = new Set([RPC_ERRORS.METHOD_NOT_FOUND, RPC_ERRORS.TASK_NOT_FOUND]);

export interface HostedWork {
  call: HostedCall;
  progress: HostedProgress;
  signal: AbortSignal;
  pace?: PollPace;
}

/**
 * Sends a dispatch to a hosted agent and waits for its result: a JSON answer or a stream, then polling while the task is not final.
 * @param token from `call.token()`
 * @throws the signal's reason, or an OutboundError ABORTED, once the signal is aborted
 */
export async function awaitResult(token: string, work: HostedWork): Promise<AgentResult> {
  const result = await resultOrFailure(token, work);
  if (result.state !== 'failed' || !result.error) return result;
  return { ...result, error: { ...result.error, message: work.call.withoutProof(result.error.message) } };
}

async function resultOrFailure(token: string, work: HostedWork): Promise<AgentResult> {
  try {
    const update = await readFirst(await work.call.send(token, work.signal), work);
    return update.kind === 'more' ? await poll(work) : resultFrom(update, work);
  } catch (error) {
    const result = work.signal.aborted ? undefined : resultOfError(error);
    if (!result) throw error;
    return result;
  }
}

async function readFirst(answer: OutboundStream, { progress, signal }: HostedWork): Promise<TaskUpdate> {
  if (!/^text\/event-stream\b/i.test(answer.headers['content-type'] ?? ''))
    return progress.take(readWhole(await readCapped(answer.body, ANSWER_BYTES_MAX)), 'answer');
  try {
    for await (const event of readEvents(answer)) {
      const update = progress.take(event, 'stream');
      if (update.kind !== 'more') return update;
    }
    return progress.streamEnded();
  } catch (error) {
    // A broken stream is no loss while the agent can be asked for its task.
    if (signal.aborted || progress.taskId === undefined) throw error;
    return MORE;
  }
}

/** The answers in a stream as they come. Leaving the loop drops the connection. */
async function* readEvents(answer: OutboundStream): AsyncGenerator<HostedAnswer> {
  const reader = new EventReader();
  for await (const chunk of answer.body) {
    for (const data of reader.read(chunk)) yield readAnswer(data);
    if (reader.problem !== undefined) return yield { kind: 'invalid', problem: reader.problem };
  }
}

async function poll(work: HostedWork): Promise<AgentResult> {
  const { progress, signal, pace = POLL_PACE } = work;
  if (progress.taskId === undefined) return unknownOutcome('The agent ended its answer before it was complete.');
  let failures = 0;
  for (let pauseMs = pace.firstMs; failures < POLL_FAILURES_MAX; pauseMs = Math.min(pauseMs * GROWTH, pace.maxMs)) {
    await sleep(pauseMs, undefined, { signal });
    const update = await getTask(progress.taskId, work);
    failures = update === undefined ? failures + 1 : 0;
    if (update?.kind === 'error' && CANNOT_TELL.has(update.code)) {
      const what = 'The agent left its task unfinished and does not tell what became of it';
      return unknownOutcome(`${what} (JSON-RPC ${update.code}).`);
    }
    if (update && update.kind !== 'more') return resultFrom(update, work);
  }
  return unknownOutcome('The agent left its task unfinished and cannot be reached any more.');
}

/** Asks once for the agent's task; undefined for a failure that may pass. */
async function getTask(taskId: string, { call, progress, signal }: HostedWork): Promise<TaskUpdate | undefined> {
  try {
    return progress.take(await call.ask('get', taskId, signal), 'poll');
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof OutboundError) return undefined;
    if (error instanceof HttpRefusal && (error.status >= 500 || error.status === 429)) return undefined;
    // The platform's signing keys cannot be read now, or the token server is away, which is not the agent's failure.
    if (error instanceof CredentialError && error.code === 'TARGET_UNAVAILABLE') return MORE;
    if (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE') return MORE;
    throw error;
  }
}

function resultFrom(update: Exclude<TaskUpdate, { kind: 'more' }>, { call, progress }: HostedWork): AgentResult {
  if (update.kind === 'error') return rpcError(update);
  if (update.kind === 'invalid') return invalidAnswer(update.problem);
  return { ...resultOf(update.payload, progress.artifacts(), call.open.dispatch_id), health: 'well' };
}
