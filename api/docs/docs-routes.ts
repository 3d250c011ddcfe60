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

/** `/docs`: Swagger UI with the OpenAPI document of the platform. */
export function docsRoutes(app: FastifyInstance, { docsFolder }: Pick<ApiDeps, 'docsFolder'>): void {
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
