import { expect, test } from 'vitest';
import { countText, parseMessagesSearch, queryOf } from '../../console/messages/filters.js';
import { MessagesGetRequest } from '../../contracts/api/messages.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');

test.each([
  [{}, {}],
  [
    { state: 'failed', error_code: 'HANDLER_ERROR' },
    { state: 'failed', error_code: 'HANDLER_ERROR' },
  ],
  [
    { text: 'invoice', user_id: 'ada' },
    { text: 'invoice', user_id: 'ada' },
  ],
  [{ text: 1188 }, { text: '1188' }],
  [{ time: '1h' }, { since: '2026-11-28T11:00:00.000Z' }],
  [
    { time: '1h', since: '2026-11-01T00:00:00Z', until: '2026-11-02T00:00:00+01:00' },
    { since: '2026-11-01T00:00:00.000Z', until: '2026-11-01T23:00:00.000Z' },
  ],
  [{ view: 'stuck' }, { waited_ms: 300_000 }],
  [
    { view: 'stuck', longer: '1h', waits: 'room' },
    { waited_ms: 3_600_000, waits_for: 'room' },
  ],
  [{ message: 'msg_1', agent_type: 'support' }, { agent_type: 'support' }],
  [{ waits: 'room' }, {}],
  [{ state: 'sleeping', view: 'all', longer: '2h', since: 'yesterday', text: '', session_id: 'x'.repeat(257) }, {}],
  [{ other: 'x', instance_id: ['a'], user_id: { a: 1 } }, {}],
])('the address %j asks for %j', (search, query) => {
  const asked = queryOf(parseMessagesSearch(search), NOW);
  expect(asked).toEqual(query);
  expect(MessagesGetRequest.safeParse(asked).success).toBe(true);
});

test.each([
  [{ count: 0 }, '0'],
  [{ count: 1_204 }, '1,204'],
  [{ count: 12, count_estimated: true as const }, '12'],
  [{ count: 48_211, count_estimated: true as const }, '10,000+'],
  [{ count: 1_000, count_estimated: true as const }, '1,000+'],
])('%j reads %j', (counted, text) => {
  expect(countText(counted)).toBe(text);
});
