/** The hosted echo agent: an A2A 0.3 server that answers each message with a message. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { serve } from './child-process.mjs';
import { echoOf } from './frames.mjs';

const JSON_HEADERS = { 'content-type': 'application/json' };

function card(url) {
  const skill = { id: 'echo', name: 'Echo', description: 'Repeats the message.', tags: [] };
  return {
    protocolVersion: '0.3.0',
    name: 'echo',
    description: 'Repeats the message.',
    url,
    version: '1.0.0',
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [skill],
  };
}

function answer(text) {
  const { id, params } = JSON.parse(text);
  return JSON.stringify({ jsonrpc: '2.0', id, result: echoOf(params.message.parts) });
}

serve(async () => {
  const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    response.writeHead(200, JSON_HEADERS);
    if (request.method === 'GET') {
      response.end(JSON.stringify(card(`http://${request.headers.host}/`)));
      return;
    }
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => response.end(answer(Buffer.concat(chunks).toString())));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { ready: { url: `http://127.0.0.1:${server.address().port}` } };
});
