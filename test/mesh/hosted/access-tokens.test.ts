import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../../embedded/free-port.js';
import { createOutbound } from '../../../http/outbound.js';
import { AccessTokens } from '../../../mesh/hosted/access-tokens.js';
import { gate } from '../../setup/until.js';
import { granted, tokenServer } from './token-server.js';

const SECRET = 'top secret & more';

function clientAt(token_url: string) {
  return { type: 'oauth2_client_credentials' as const, token_url, client_id: 'fleet:1', client_secret: SECRET };
}

function tokens(allowCidrs = ['127.0.0.0/8']): AccessTokens {
  const outbound = createOutbound({ allowCidrs });
  onTestFinished(() => outbound.close());
  return new AccessTokens({ outbound, pausesMs: [1, 1] });
}

describe('an access token', () => {
  it('is fetched once with the client in a header, for all that need it at once and later', async () => {
    const { promise: asked, open } = gate();
    const server = await tokenServer(async () => {
      await asked;
      return granted('t1');
    });
    const client = { ...clientAt(server.url), scope: 'a2a:send' };
    const cache = tokens();
    const first = [cache.get('ten_1', client), cache.get('ten_1', client)];
    open();
    expect(await Promise.all(first)).toEqual(['t1', 't1']);
    expect(await cache.get('ten_1', client)).toBe('t1');
    expect(server.received).toEqual([
      {
        authorization: `Basic ${Buffer.from('fleet%3A1:top+secret+%26+more').toString('base64')}`,
        form: { grant_type: 'client_credentials', scope: 'a2a:send' },
      },
    ]);
  });

  it('is not shared between tenants, nor between clients', async () => {
    const server = await tokenServer((n) => granted(`t${n}`));
    const cache = tokens();
    const client = clientAt(server.url);
    expect(await cache.get('ten_1', client)).toBe('t0');
    expect(await cache.get('ten_2', client)).toBe('t1');
    expect(await cache.get('ten_1', { ...client, client_secret: 'another' })).toBe('t2');
  });

  it.each([
    ['the last minute of an hour', 3_600, 3_539, 3_541],
    ['the last tenth of a minute', 60, 53, 55],
    ['five minutes where nobody says how long', null, 269, 271],
  ])('is fetched anew in %s', async (_, expiresIn, before, after) => {
    const server = await tokenServer((n) => granted(`t${n}`, expiresIn));
    const cache = tokens();
    const client = clientAt(server.url);
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    expect(await cache.get('ten_1', client)).toBe('t0');
    vi.advanceTimersByTime(before * 1_000);
    expect(await cache.get('ten_1', client)).toBe('t0');
    vi.advanceTimersByTime((after - before) * 1_000);
    expect(await cache.get('ten_1', client)).toBe('t1');
  });

  it('that an agent refused is replaced, once for all that had it', async () => {
    const server = await tokenServer((n) => granted(`t${n}`));
    const cache = tokens();
    const client = clientAt(server.url);
    expect(await cache.get('ten_1', client)).toBe('t0');
    expect(await cache.get('ten_1', client, 't0')).toBe('t1');
    expect(await cache.get('ten_1', client, 't0')).toBe('t1');
    expect(server.received).toHaveLength(2);
  });

  it('is asked for again while its server fails', async () => {
    const server = await tokenServer((n) => (n < 2 ? { status: 503, body: '' } : granted('t')));
    expect(await tokens().get('ten_1', clientAt(server.url))).toBe('t');
  });

  it.each([
    [
      'a refused client',
      { status: 401, body: { error: 'invalid_client', error_description: `no client with ${SECRET}` } },
      'HANDLER_ERROR',
      /^The agent's token server refused the platform's client \(HTTP 401\): invalid_client: no client with …$/,
      1,
    ],
    ['a page', { status: 404, body: '<html>' }, 'HANDLER_ERROR', /client \(HTTP 404\)\.$/, 1],
    ['a server that fails', { status: 500, body: '' }, 'TARGET_UNAVAILABLE', /answered HTTP 500/, 3],
    ['too many requests', { status: 429, body: '' }, 'TARGET_UNAVAILABLE', /answered HTTP 429/, 3],
    ['no token', { body: { token_type: 'Bearer' } }, 'HANDLER_ERROR', /without a bearer token/, 1],
    [
      'a token that no header can carry',
      { body: { access_token: 'a\nb', token_type: 'Bearer' } },
      'HANDLER_ERROR',
      /without a bearer token/,
      1,
    ],
    ['another kind of token', { body: { access_token: 't', token_type: 'mac' } }, 'HANDLER_ERROR', /bearer/, 1],
  ])('cannot be had: %s', async (_, reply, code, message, attempts) => {
    const server = await tokenServer(() => reply);
    const asking = tokens().get('ten_1', clientAt(server.url));
    await expect(asking).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(server.received).toHaveLength(attempts);
  });

  it('cannot be had from a server that is away, or that may not be reached', async () => {
    const away = clientAt(`http://127.0.0.1:${await freePort()}/`);
    await expect(tokens().get('ten_1', away)).rejects.toMatchObject({ code: 'TARGET_UNAVAILABLE' });
    const server = await tokenServer(() => granted('t'));
    const forbidden = tokens([]).get('ten_1', clientAt(server.url));
    await expect(forbidden).rejects.toMatchObject({
      code: 'HANDLER_ERROR',
      message: expect.stringMatching(/not allowed/),
    });
    expect(server.received).toEqual([]);
  });

  it('that could not be had is asked for by the next caller', async () => {
    const server = await tokenServer((n) => (n === 0 ? { status: 401, body: '' } : granted('t')));
    const cache = tokens();
    await expect(cache.get('ten_1', clientAt(server.url))).rejects.toThrow('HTTP 401');
    expect(await cache.get('ten_1', clientAt(server.url))).toBe('t');
  });
});
