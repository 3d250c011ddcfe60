import { AGENT_NOT_READY } from '../../contracts/errors.js';
import { type OutboundStream, readCapped } from '../../http/outbound.js';
import { jsonOf, type RpcFailure, readFailure } from './answer.js';

/** Limit of a refusal's body; no more of it is read. */
const REFUSAL_BYTES_MAX = 16_384;
/** Time to read the body of a refusal, in milliseconds. Its status already says the main thing. */
const REFUSAL_MS = 5_000;
/** Characters of an agent's text that an error shows. */
const DETAIL_CHARS = 2_000;

/** Text of an agent as it is shown, cut to a number of characters. */
export function clipped(text: string, chars = DETAIL_CHARS): string {
  const whole = text.trim();
  return (whole.length > chars ? `${whole.slice(0, chars)}…` : whole).toWellFormed();
}

/** A JSON-RPC error in one line: its message, its code and its data. */
export function describeFailure({ code, message, data }: RpcFailure): string {
  const isEmpty = data == null || (typeof data === 'object' && Object.keys(data).length === 0);
  const given = typeof data === 'string' ? clipped(data) : isEmpty ? '' : clipped(JSON.stringify(data));
  const what = `${clipped(message) || 'The agent reported an error.'} (JSON-RPC ${code})`;
  return given === '' ? what : `${what}: ${given}`;
}

/** The agent answered HTTP 4xx or 5xx instead of an A2A answer. */
export class HttpRefusal extends Error {
  /**
   * @param detail what the agent says of it; empty for none
   * @param notReady the agent says that it has begun nothing of the dispatch
   */
  constructor(
    readonly status: number,
    readonly detail = '',
    readonly notReady = false,
  ) {
    super(`The agent answered HTTP ${status}${detail === '' ? '.' : `: ${detail}`}`);
    this.name = 'HttpRefusal';
  }
}

/**
 * A refusal from its status and its body. Only a body with the code AGENT_NOT_READY says that nothing was begun: a proxy may answer 503
 * although the agent has the dispatch. HTML pages are not shown.
 */
export function refusalFrom(status: number, headers: Record<string, string>, body: Buffer): HttpRefusal {
  const text = body.toString();
  const json = jsonOf(text);
  const failure = readFailure(json);
  const isText = /^(text\/plain|application\/([\w.-]+\+)?json)\b/i.test(headers['content-type'] ?? '');
  const detail = failure ? describeFailure(failure) : isText ? clipped(text) : '';
  const notReady = status === 503 && (json as { code?: unknown } | null | undefined)?.code === AGENT_NOT_READY;
  return new HttpRefusal(status, detail, notReady);
}

/** Reads a refusal as far as it comes, and drops the connection. Never rejects. */
export async function readRefusal(answer: OutboundStream): Promise<HttpRefusal> {
  const timer = setTimeout(() => answer.cancel(), REFUSAL_MS);
  try {
    const { body } = await readCapped(answer.body, REFUSAL_BYTES_MAX);
    return refusalFrom(answer.status, answer.headers, body);
  } catch {
    return new HttpRefusal(answer.status);
  } finally {
    clearTimeout(timer);
    answer.cancel();
  }
}
