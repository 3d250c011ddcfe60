import { once } from 'node:events';
import { WebSocket } from 'ws';
import { within } from '../until.js';

const ANSWER_TIMEOUT_MS = 20_000;

/** The part of `Profiler.takePreciseCoverage` that is read here. */
interface ScriptCoverage {
  url: string;
  functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
}

/** A function and how often it was called. */
export interface CalledFunction {
  /** Of its script. */
  url: string;
  name: string;
  /** Where it begins in its script. */
  place: number;
  count: number;
}

/** Counts the function calls of a Node process that was started with `--inspect=127.0.0.1:0`, by V8's precise coverage. */
export class CallCounts {
  readonly #socket: WebSocket;
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** @param log the output of the process, which names the inspector's address */
  static async of(log: string): Promise<CallCounts> {
    const [url] = /ws:\/\/127\.0\.0\.1:\d+\/\S+/.exec(log) ?? [];
    if (!url) throw new Error('the process has no inspector');
    const counts = new CallCounts(new WebSocket(url));
    await once(counts.#socket, 'open');
    await counts.#call('Profiler.enable');
    await counts.#call('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return counts;
  }

  /** How often each function was called since the last look; functions that were not called are left out. */
  async take(): Promise<CalledFunction[]> {
    const { result } = (await this.#call('Profiler.takePreciseCoverage')) as { result: ScriptCoverage[] };
    return result.flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName: name, ranges: [range] }) =>
        range && range.count > 0
          ? [{ url, name: name || '(anonymous)', place: range.startOffset, count: range.count }]
          : [],
      ),
    );
  }

  close(): void {
    this.#socket.terminate();
  }

  #call(method: string, params: object = {}): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise((resolve, reject) => {
      const listener = (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id?: number; result?: unknown; error?: { message: string } };
        if (message.id !== id) return;
        this.#socket.off('message', listener);
        if (message.error) reject(new Error(`${method}: ${message.error.message}`));
        else resolve(message.result);
      };
      this.#socket.on('message', listener);
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    return within(answer, ANSWER_TIMEOUT_MS, method);
  }
}
