import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { EVENT_CATEGORIES, EVENT_PAYLOADS, EVENT_TYPES } from '../../contracts/events.js';

const document = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'events.md'), 'utf8');

test('every type belongs to a category of the specification', () => {
  const categories = new Set(EVENT_TYPES.map((type) => type.split('.')[0]));
  expect([...categories].sort()).toEqual([...EVENT_CATEGORIES].sort());
});

/** The types whose payloads the specification shows (section 6). */
const SPECIFIED =
  `agent.registered agent.deregistered agent.health_changed agent.capacity_changed session.created session.closed dispatch.sent
  dispatch.success dispatch.failed message.received message.completed message.error policy.denied policy.approval_required guard.denied
  guard.approval_required plan.created plan.approved plan.completed plan.failed system.alert_triggered tenant.created`.split(
    /\s+/,
  );

test('docs/events.md names each addition to the specification with its reason', () => {
  const section = /^### Beyond the specification$([\s\S]*?)^## /m.exec(document)?.[1] ?? '';
  const added = [...section.matchAll(/^\| (.*?) \| .+ \|$/gm)].flatMap(
    ([, names]) => names?.match(/[a-z_]+\.[a-z_]+/g) ?? [],
  );
  const missing = EVENT_TYPES.filter((type) => !SPECIFIED.includes(type) && !added.includes(type));
  expect(missing).toEqual([]);
  const loose = EVENT_TYPES.filter((type) => SPECIFIED.includes(type)).flatMap((type) => {
    const { properties = {}, required = [] } = z.toJSONSchema(EVENT_PAYLOADS[type]);
    return Object.entries(properties)
      .filter(([field, schema]) => !required.includes(field) || JSON.stringify(schema).includes('"null"'))
      .map(([field]) => field);
  });
  for (const field of new Set(loose)) expect(section).toContain(`\`${field}\``);
});
