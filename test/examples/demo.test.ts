import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { curlCommand, postJson } from '../../examples/demo/curl.js';
import { httpServer } from '../runtime/loopback-server.js';

/** A server that answers with what it got. */
async function echo() {
  const { url } = await httpServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { 'content-type': type, 'user-agent': agent } = request.headers;
    response.end(JSON.stringify({ method: request.method, type, agent, body: Buffer.concat(chunks).toString() }));
  });
  return url;
}

test.each([
  ['curl where it is installed', process.env, /^curl/],
  ['fetch where it is not', { PATH: mkdtempSync(join(inject('runDir'), 'no-curl-')) }, /^(?!curl)/],
])('the demo answers with %s', async (_what, env, agent) => {
  const body = '{"callback_token":"it\'s"}';
  expect(await postJson(await echo(), body, env)).toEqual({
    method: 'POST',
    type: 'application/json',
    agent: expect.stringMatching(agent),
    body,
  });
});

test('the command that it shows is one for a shell', () => {
  expect(curlCommand('http://a.example/', `{"a":"it's"}`)).toBe(
    String.raw`curl -s 'http://a.example/' -H 'content-type: application/json' -d '{"a":"it'\''s"}'`,
  );
});
