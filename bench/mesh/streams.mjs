/** Callers that read streams and measure which of an agent's chunks reach them, and when. */
import { Pool } from 'undici';

const now = () => performance.timeOrigin + performance.now();

/** Opens a stream and yields the text of each artifact update until the stream ends. */
async function* texts(pool, token, agentType, text) {
  const message = { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text }] };
  const params = { message, metadata: { agent_type: agentType } };
  const { statusCode, body } = await pool.request({
    path: '/send',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params }),
  });
  if (statusCode !== 200) throw new Error(`/send answered ${statusCode}: ${await body.text()}`);
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const { result, error } = JSON.parse(line.slice(5));
      if (error) throw new Error(`the stream failed: ${JSON.stringify(error)}`);
      if (result.kind === 'artifact-update') yield result.artifact.parts.map((part) => part.text).join('');
      if (result.kind === 'status-update' && result.final && result.status.state !== 'completed') {
        throw new Error(`the message ended ${JSON.stringify(result.status)}`);
      }
    }
  }
}

/** Streams from agents of one type on one platform. */
export class Streams {
  #pool;
  #token;
  #agentType;

  constructor(url, token, agentType) {
    this.#pool = new Pool(url, { connections: 256 });
    this.#token = token;
    this.#agentType = agentType;
  }

  /** Milliseconds from the agent's first chunk to its first byte here; both ends read the clock of this machine. */
  async first() {
    let ms;
    for await (const text of this.#texts('first')) ms ??= now() - Number(text);
    return ms;
  }

  /**
   * `width` concurrent streams of `count` chunks each.
   * @returns chunks per second from the first to the last, and how many were missing or out of order
   */
  async many(width, count) {
    let [from, to] = [Number.POSITIVE_INFINITY, 0];
    const one = async () => {
      let all = '';
      for await (const text of this.#texts(`chunks ${count}`)) {
        from = Math.min(from, now());
        to = now();
        all += text;
      }
      const received = all.trim().split(' ').map(Number);
      return count - received.filter((seq, index) => seq === index).length;
    };
    const missing = await Promise.all(Array.from({ length: width }, one));
    return { perSecond: (width * count * 1_000) / (to - from), lost: missing.reduce((sum, count) => sum + count, 0) };
  }

  close() {
    return this.#pool.close();
  }

  #texts(text) {
    return texts(this.#pool, this.#token, this.#agentType, text);
  }
}
