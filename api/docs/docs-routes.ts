import { createReadStream } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ApiDeps } from '../deps.js';

/** No inline code, and nothing from another origin. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const MAX_AGE_SECONDS = 3_600;
/** The build copies these from swagger-ui-dist beside the page and its script. */
const LIBRARY = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** Where to go from `/`, relative to it, so that it works behind a path prefix. */
const LINKS = {
  docs: 'docs',
  openapi: 'openapi.json',
  agent_card: '.well-known/agent-card.json',
  jwks: '.well-known/jwks.json',
  health: 'health',
};

/** `/docs`: Swagger UI with the OpenAPI document of the platform. `/` leads a browser there, and anybody else to what needs no token. */
export function docsRoutes(app: FastifyInstance, deps: Pick<ApiDeps, 'docsFolder' | 'version'>): void {
  const { docsFolder, version } = deps;
  const folder = docsFolder ?? fileURLToPath(new URL('.', import.meta.url));

  const send = (reply: FastifyReply, file: string, cacheControl: string) =>
    reply
      .headers({
        'cache-control': cacheControl,
        'content-security-policy': POLICY,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      .type(`${TYPES[extname(file)]}; charset=utf-8`)
      .send(createReadStream(join(folder, file)));

  app.get('/', async ({ headers }, reply) => {
    reply.header('vary', 'accept');
    if (headers.accept?.includes('text/html')) return reply.redirect(LINKS.docs);
    return { ok: true, name: 'Agent Fleet Platform', version, links: LINKS };
  });
  app.get('/docs', async (request, reply) => {
    // Links in the page are relative to `/docs`, so that it works behind a path prefix.
    if (/^[^?]*\/(\?|$)/.test(request.url)) return reply.redirect('../docs');
    return send(reply, 'index.html', 'no-cache');
  });
  app.get('/docs/init.js', async (_request, reply) => send(reply, 'init.js', 'no-cache'));
  for (const file of LIBRARY) {
    app.get(`/docs/${file}`, async (_request, reply) => send(reply, file, `public, max-age=${MAX_AGE_SECONDS}`));
  }
}
