import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { mount } from '../../api/mount.js';
import { useApiVersions } from '../../api/plugins/api-versions.js';
import { useErrorContract } from '../../api/plugins/error-contract.js';
import type { Operation } from '../../contracts/api/operation.js';
import { get, PUBLIC } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { ErrorBody } from '../../contracts/primitives.js';
import { cleanUp } from '../setup/clean-up.js';

const FUTURE = '2999-12-31T23:59:59.000Z';
const PAST = '2020-02-29T12:00:00.000Z';
const response = z.object({ ok: z.literal(true) });
const operations = {
  current: get('/current', PUBLIC, 'Stays', { response }),
  deprecated: get('/deprecated', PUBLIC, 'Works until then', { response, sunset: FUTURE }),
  ended: get('/ended', PUBLIC, 'Has ended', { response, sunset: PAST }),
};

const app = fastify();
cleanUp(() => app.close());
useErrorContract(app);
useApiVersions(app);
for (const operation of Object.values(operations)) mount(app, operation).answer(async () => ({ ok: true as const }));

test('a deprecated operation answers, and says when it ends', async () => {
  const answer = await app.inject('/deprecated');
  expect(answer.json()).toEqual({ ok: true });
  expect(answer.headers).toMatchObject({
    deprecation: `@${Date.parse(FUTURE) / 1_000}`,
    sunset: 'Tue, 31 Dec 2999 23:59:59 GMT',
  });
});

test('from that time on it answers 410 ENDPOINT_SUNSET', async () => {
  const answer = await app.inject('/ended');
  expect(answer.statusCode).toBe(410);
  expect(ErrorBody.strict().parse(answer.json())).toMatchObject({ code: 'ENDPOINT_SUNSET' });
  expect(answer.headers).toMatchObject({ deprecation: '@1582977600', sunset: 'Sat, 29 Feb 2020 12:00:00 GMT' });
});

test('other operations say nothing of it', async () => {
  const answer = await app.inject('/current');
  expect(answer.statusCode).toBe(200);
  expect(answer.headers).not.toHaveProperty('deprecation');
  expect(answer.headers).not.toHaveProperty('sunset');
});

test('the dates of the operations are times in UTC', () => {
  const sunsets = Object.values<Operation>(OPERATIONS).flatMap(({ sunset }) => sunset ?? []);
  for (const sunset of [...sunsets, FUTURE, PAST]) expect(new Date(sunset).toISOString()).toBe(sunset);
});
