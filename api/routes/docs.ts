import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ApiDeps } from '../deps.js';

/** The page loads nothing from another origin, runs no inline code and asks this address only. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css' } as const;
const MAX_AGE_SECONDS = 3_600;
/** Beside the page and its script; the build copies both from swagger-ui-dist. */
const LIBRARY = ['swagger-ui-bundle.js', 'swagger-ui.css'] as const;

/** `/docs`: the interface by its OpenAPI document, in Swagger UI. */
export function docsRoutes(app: FastifyInstance, { docsFolder }: Pick<ApiDeps, 'docsFolder'>): void {
  const folder = docsFolder ?? fileURLToPath(new URL('../docs', import.meta.url));

  const send = (reply: FastifyReply, file: string, type: keyof typeof TYPES, cacheControl: string) =>
    reply
      .headers({
        'cache-control': cacheControl,
        'content-security-policy': POLICY,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      .type(`${TYPES[type]}; charset=utf-8`)
      .send(createReadStream(join(folder, file)));

  app.get('/docs', async (request, reply) => {
    // The page names its files relative to `/docs`, so that it works behind a path prefix too.
    if (/^[^?]*\/(\?|$)/.test(request.url)) return reply.redirect('../docs');
    return send(reply, 'index.html', 'html', 'no-cache');
  });
  app.get('/docs/init.js', async (_request, reply) => send(reply, 'init.js', 'js', 'no-cache'));
  for (const file of LIBRARY) {
    const type = file.endsWith('.js') ? 'js' : 'css';
    app.get(`/docs/${file}`, async (_request, reply) => send(reply, file, type, `public, max-age=${MAX_AGE_SECONDS}`));
  }
}
