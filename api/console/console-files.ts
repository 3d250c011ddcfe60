import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ApiDeps } from '../deps.js';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** No inline code, nothing from or to another origin, in no frame, and no link to the window that opened it. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

interface File {
  type: string;
  plain: Buffer;
  gzipped: Buffer;
}

function load(folder: string, name: string): File {
  const plain = readFileSync(join(folder, name));
  return { type: TYPES[extname(name)] ?? 'application/octet-stream', plain, gzipped: gzipSync(plain) };
}

/**
 * The page at `/console` and its files, from memory: a few hundred kilobytes that the build wrote. Each path below `/console/` is a view of the
 * one page. (@fastify/static would need packages that want Node 22.)
 */
export function consoleFiles(app: FastifyInstance, { consoleFolder }: Pick<ApiDeps, 'consoleFolder'>): void {
  const folder = consoleFolder ?? fileURLToPath(new URL('../../console', import.meta.url));
  if (!existsSync(join(folder, 'index.html'))) return; // the sources run unbuilt, in a test
  const page = load(folder, 'index.html');

  const send = (request: FastifyRequest, reply: FastifyReply, { type, plain, gzipped }: File, cacheControl: string) => {
    const zip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    reply.headers({ ...HEADERS, 'cache-control': cacheControl, vary: 'Accept-Encoding' }).type(type);
    return zip ? reply.header('content-encoding', 'gzip').send(gzipped) : reply.send(plain);
  };

  for (const name of readdirSync(join(folder, 'assets'))) {
    const file = load(join(folder, 'assets'), name);
    // Their names change with their content.
    const cache = 'public, max-age=31536000, immutable';
    app.get(`/console/assets/${name}`, async (request, reply) => send(request, reply, file, cache));
  }
  // A view that is not there leads to the inbox.
  for (const path of ['/console', '/console/:view', '/console/messages/:id'])
    app.get(path, async (request, reply) => send(request, reply, page, 'no-cache'));
}
