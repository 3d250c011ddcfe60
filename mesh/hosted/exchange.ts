import { setTimeout as sleep } from 'node:timers/promises';
import { RPC_ERRORS } from '../../contracts/errors.js';
import { OutboundError, type OutboundStream } from '../../http/outbound.js';
import { PlatformError } from '../../runtime/errors.js';
import { outcomeOf } from './answer.js';
import { isEventStream, readEvents, readWhole } from './answer-stream.js';
import { type HostedCall, HttpRefusal } from './call.js';
import { type Conclusion, fromThrown, lost, refused, unfit } from './conclusion.js';
import type { Heard, HostedProgress } from './progress.js';

/** Times between two looks at an unfinished task, in milliseconds. */
export interface PollPace {
  firstMs: number;
  maxMs: number;
}

export const POLL_PACE: PollPace = { firstMs: 500, maxMs: 5_000 };

/** Polls in a row that may fail before the agent counts as gone. */
const POLL_FAILURES_MAX = 5;
const GROWTH = 1.5;

const MORE: Heard = { kind: 'more' };

/** What one exchange works with. */
export interface Exchange {
  call: HostedCall;
  progress: HostedProgress;
  signal: AbortSignal;
  pace: PollPace;
}

/**
 * Sends a dispatch to a hosted agent and follows it to its end: a JSON answer, a stream, and polling where neither was final.
 * @param token from `call.token()`
 * @throws the signal's reason, or an OutboundError ABORTED, once the signal is aborted
 */
export async function exchange(token: string, with_: Exchange): Promise<Conclusion> {
  try {
    const heard = await listen(await with_.call.send(token, with_.signal), with_);
    return heard.kind === 'more' ? await poll(with_) : concluded(heard, with_);
  } catch (error) {
    const conclusion = with_.signal.aborted ? undefined : fromThrown(error);
    if (!conclusion) throw error;
    return conclusion;
  }
}

async function listen(answer: OutboundStream, { progress, signal }: Exchange): Promise<Heard> {
  if (!isEventStream(answer)) return progress.take(await readWhole(answer), 'answer');
  try {
    for await (const event of readEvents(answer)) {
      const heard = progress.take(event, 'stream');
      if (heard.kind !== 'more') return heard;
    }
    return progress.streamEnded();
  } catch (error) {
    // A broken stream is no loss while the agent can be asked for its task.
    if (signal.aborted || progress.taskId === undefined) throw error;
    return MORE;
  }
}

async function poll(with_: Exchange): Promise<Conclusion> {
  const { progress, signal, pace } = with_;
  if (progress.taskId === undefined) return lost('The agent ended its answer before it was complete.');
  let failures = 0;
  for (let pauseMs = pace.firstMs; failures < POLL_FAILURES_MAX; pauseMs = Math.min(pauseMs * GROWTH, pace.maxMs)) {
    await sleep(pauseMs, undefined, { signal });
    const heard = await look(progress.taskId, with_);
    failures = heard === undefined ? failures + 1 : 0;
    if (heard?.kind === 'refused' && CANNOT_TELL.has(heard.code)) {
      return lost(`The agent left its task unfinished and does not tell what became of it (JSON-RPC ${heard.code}).`);
    }
    if (heard && heard.kind !== 'more') return concluded(heard, with_);
  }
  return lost('The agent left its task unfinished and cannot be reached any more.');
}

/** The agent does not know `tasks/get`, or not this task any more. */
const CANNOT_TELL: ReadonlySet<number> = new Set([RPC_ERRORS.METHOD_NOT_FOUND, RPC_ERRORS.TASK_NOT_FOUND]);

/** One look at the agent's task; undefined when it failed in a way that may pass. */
async function look(taskId: string, { call, progress, signal }: Exchange): Promise<Heard | undefined> {
  try {
    return progress.take(await call.ask('get', taskId, signal), 'poll');
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof OutboundError) return undefined;
    if (error instanceof HttpRefusal && (error.status >= 500 || error.status === 429)) return undefined;
    // Our own signing keys cannot be read for the moment: no fault of the agent.
    if (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE') return MORE;
    throw error;
  }
}

function concluded(heard: Exclude<Heard, { kind: 'more' }>, { call, progress }: Exchange): Conclusion {
  if (heard.kind === 'refused') return refused(heard.code, heard.message);
  if (heard.kind === 'unfit') return unfit(heard.problem);
  return { kind: 'answered', outcome: outcomeOf(heard.payload, progress.artifacts(), call.open.dispatch_id) };
}
