import { createHash } from 'node:crypto';
import { createOutbound } from '../../http/outbound.js';
import { HttpEmbedder } from '../../knowledge/embedding/http-embedder.js';
import { unitVector } from '../../knowledge/embedding/vectors.js';
import { httpServer } from '../runtime/loopback-server.js';
import { cleanUp } from './clean-up.js';
import { gate } from './until.js';

export const WORD_MODEL = 'words-32';

/** A vector whose directions are words: texts with common words are near to each other. */
export function wordVector(text: string, dimensions = 32): Float32Array {
  const values = new Float32Array(dimensions).fill(0.001);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const digest = createHash('sha256').update(word).digest();
    const at = digest.readUInt32LE(0) % dimensions;
    values[at] = (values[at] as number) + 1;
  }
  return unitVector(values) as Float32Array;
}

export type TestProvider = Awaited<ReturnType<typeof testProvider>>;

/** A provider of embeddings, as any server with `/v1/embeddings` is one, whose vectors are `wordVector`. It lives for one test, or for the file. */
export async function testProvider(model = WORD_MODEL, dimensions = 32) {
  /** Every text so far. */
  const texts: string[] = [];
  const holdings: { text: string; arrived: () => void; opened: Promise<void> }[] = [];
  let failing: string | null = null;
  const { url } = await httpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks).toString();
      if (body === '') {
        response.writeHead(400).end(); // for whoever had this port before
        return;
      }
      const { input } = JSON.parse(body) as { input: string | string[] };
      const asked = [input].flat();
      texts.push(...asked);
      const names = (text: string) => asked.some((one) => one.includes(text));
      if (failing !== null && names(failing)) {
        response.writeHead(500, { 'retry-after': '0' }); // without it the embedder would wait for 3.5 s in all
        response.end('{"error": {"message": "no"}}');
        return;
      }
      for (const holding of holdings.filter(({ text }) => names(text))) {
        holding.arrived();
        await holding.opened;
      }
      const data = asked.map((text, index) => ({ index, embedding: [...wordVector(text, dimensions)] }));
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
    });
  });
  const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
  cleanUp(() => outbound.close());
  return {
    /** Settings of a platform that uses it. */
    env: { EMBEDDINGS_URL: `${url}/v1/embeddings`, EMBEDDINGS_MODEL: model },
    /** For what runs in this process. */
    embedder: new HttpEmbedder({ url: `${url}/v1`, model }, outbound, 1),
    texts,
    /** Answers calls with this text in them only when `open` is called. */
    hold: (text: string): { held: Promise<void>; open: () => void } => {
      const arrived = gate();
      const opened = gate();
      holdings.push({ text, arrived: () => arrived.open(), opened: opened.promise });
      return { held: arrived.promise, open: () => opened.open() };
    },
    /** Answers 500 to calls with this text in them, to be repeated at once. */
    fail: (text: string | null): void => {
      failing = text;
    },
  };
}
