import { createHash, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Task } from '../../contracts/a2a/a2a.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import { approvalsFixture } from '../messages/approvals/approvals-fixture.js';
import { ApiClient } from '../setup/platform/api-client.js';
import { answerMessage } from './moving.js';
import { serveApi } from './served-api.js';

const api = await serveApi({ trustProxyCidrs: ['127.0.0.0/8'] });
const { held, heldType, calling, tokenFor, outcome } = await approvalsFixture(api);

const address = (token: string) => `${api.baseUrl}/approve/${token}`;
/** @param from the address of the visitor, as the proxy in front says */
const get = (token: string, from = '192.0.2.1') => fetch(address(token), { headers: { 'x-forwarded-for': from } });
const post = (token: string, fields: Record<string, string>, from = '192.0.2.1') =>
  fetch(address(token), { method: 'POST', body: new URLSearchParams(fields), headers: { 'x-forwarded-for': from } });
/** The values that the agent gets. */
const filledIn = (id: string) =>
  api.database.value("SELECT resolution -> 'data' FROM running_messages WHERE message_id = $1", [id]);
const stateOf = async (id: string) => (await api.client.message(id)).state;

/** An administrator of the tenant, by that name. */
async function named(name: string): Promise<{ client: ApiClient; id: string }> {
  const credential = await api.credentialOf(api.tenantId, ['admin']);
  await api.database.query('UPDATE credentials SET name = $2 WHERE credential_id = $1', [credential.client_id, name]);
  const client = new ApiClient({ devJson: () => ({ base_url: api.baseUrl, ...credential }) }, credential);
  return { client, id: credential.client_id };
}

const ORDER = {
  n: { type: 'integer', minimum: 1, title: 'How many' },
  color: { enum: ['red', 'blue'] },
  urgent: { type: 'boolean' },
  names: { type: 'array', items: { type: 'string' } },
};

/** A message that asks for the values of a form. */
async function asking(properties: object = ORDER, required = ['n', 'color']): Promise<{ id: string; token: string }> {
  const task = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  const schema = { type: 'object', properties, required };
  await answerMessage(api, task.id, {
    state: 'input-required',
    artifacts: [],
    input_request: { kind: 'form', title: 'What shall I order?', schema },
  });
  return { id: task.id, token: await tokenFor(task.id) };
}

test('the page says what is asked, may not be framed, cached or passed on, and loads nothing', async () => {
  const { id } = await calling({ cents: 5, note: '<script>alert("&")</script>' });
  const answer = await get(await tokenFor(id));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(
    /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; script-src 'sha256-[A-Za-z0-9+/=]+';/,
  );
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("form-action 'self'");
  const page = await answer.text();
  for (const said of [
    'May pay be called?',
    'The policy “payments” asks',
    '<dt>cents</dt><dd>5</dd>',
    'Approve',
    'Reject',
  ])
    expect(page).toContain(said);
  expect(page).toContain('&lt;script&gt;');
  expect(page.match(/<script/g)).toHaveLength(1); // the page's own, which its policy names
  expect(page).not.toMatch(/src=|href=/);
});

test('the page shows all that is decided about: the whole message with data, files and metadata, and the target of a call', async () => {
  const { agentType } = await heldType();
  const bytes = Buffer.from('a contract').toString('base64');
  const order = { item: 'tea', grams: 50, note: '50', gift: null, tags: ['a', 'b'], more: {} };
  const parts = [
    { kind: 'text', text: `${'word '.repeat(40_000)}the last word` },
    { kind: 'data', data: { order } },
    { kind: 'file', file: { name: 'contract.pdf', mimeType: 'application/pdf', bytes }, metadata: { page: 3 } },
    { kind: 'file', file: { uri: 'https://example.com/x', name: 'x' } },
  ];
  const { result } = await api.client.call('message/send', {
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts },
    metadata: { agent_type: agentType, urgency: 'high' },
    configuration: { blocking: false },
  });
  const page = await (await get(await tokenFor(Task.parse(result).id))).text();
  const sha256 = createHash('sha256').update('a contract').digest('hex');
  for (const row of [
    ...['item</dt><dd>tea', 'grams</dt><dd>50', 'note</dt><dd>“50”', 'gift</dt><dd><i>nothing</i>'],
    ...['tags</dt><dd><ol><li>a</li><li>b</li></ol>', 'more</dt><dd><i>no members</i>', 'name</dt><dd>contract.pdf'],
    ...['mimeType</dt><dd>application/pdf', 'size</dt><dd>10 bytes', `sha256</dt><dd>${sha256}`, 'page</dt><dd>3'],
    ...['uri</dt><dd>https://example.com/x', 'urgency</dt><dd>high'],
  ])
    expect(page).toContain(`<dt>${row}</dd>`);
  expect(page).toContain('the last word</pre>');
  expect(page).toContain('<dt>order</dt><dd><dl><dt>');
  expect(page).toContain(`has sent a message to the agent “${agentType}”.`);
  expect(page).toContain(`The policy “ask about ${agentType}” asks for your decision.`);

  const { id, dispatch_id, request } = await calling({ cents: 5 });
  await api.database.query(
    `INSERT INTO tool_grants (tenant_id, request_id, message_id, dispatch_id, deadline_left_ms, asked_digest, target, node_id, call)
       VALUES ($1, $2, $3, $4, 1, $5, '{"agent_type": "bank"}', 'node', '{}')`,
    [api.tenantId, request.request_id, id, dispatch_id, request.digest],
  );
  const called = await (await get(await tokenFor(id))).text();
  expect(called).toContain('The agent “worker” wants to call the tool “pay”');
  expect(called).toContain('<dt>agent_type</dt><dd>bank</dd>');
  expect((await api.client.message(id)).input_request).toMatchObject({ tool: 'pay', target: { agent_type: 'bank' } });
});

test('characters that nobody sees are shown as code points', async () => {
  const { id } = await calling({ 'to\u200b': 'anna\u202egnp.exe', ok: 'tea 👩‍💻 ❤️' });
  const page = await (await get(await tokenFor(id))).text();
  expect(page).toContain('<dt>to[U+200B]</dt><dd>anna[U+202E]gnp.exe</dd>');
  expect(page).toContain('tea 👩‍💻 ❤️');
});

test('a link whose request is over shows neither question nor content', async () => {
  const { id } = await calling({ secret: 'hunter2' });
  const token = await tokenFor(id);
  await api.database.query("UPDATE input_requests SET prompt = 'the whole text' WHERE message_id = $1", [id]);
  expect(await (await get(token)).text()).toMatch(/the whole text.*hunter2.*<pre>go/s);
  expect(await outcome(api.client, id, { resolution: 'rejected' })).toBe('200 failed');
  const page = await (await get(token)).text();
  expect(page).toContain('May pay be called?');
  for (const hidden of ['the whole text', 'hunter2', '<pre>']) expect(page).not.toContain(hidden);
});

test('what is too large for the page can be rejected there, and approved elsewhere', async () => {
  const { id } = await calling({});
  await api.database.query("UPDATE input_requests SET stage = 'output' WHERE message_id = $1", [id]);
  const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text', text: 'x'.repeat(3_000_000) }] }];
  await api.database.query('UPDATE running_messages SET held_output = $2 WHERE message_id = $1', [
    id,
    JSON.stringify({ state: 'completed', artifacts }),
  ]);
  const token = await tokenFor(id);
  const page = await (await get(token)).text();
  expect(page.length).toBeLessThan(20_000);
  expect(page).toContain('too large for this page');
  expect(page).not.toContain('value="approved"');
  expect((await post(token, { resolution: 'approved' })).status).toBe(413);
  expect((await post(token, { resolution: 'rejected' })).status).toBe(200);
});

test('a look at the page never decides; its form does, once, and the audit names the page', async () => {
  const id = await held();
  const token = await tokenFor(id, 'rule_7');
  for (let look = 0; look < 3; look += 1) await get(`${token}?resolution=approved`);
  expect(await stateOf(id)).toBe('input-required');
  const decided = await post(token, { resolution: 'approved', comment: 'fine with me' }, '198.51.100.4');
  expect([decided.status, await decided.text()]).toEqual([200, expect.stringContaining('approved')]);
  const { approvals } = await api.client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse);
  const principal = { type: 'page', id: 'rule_7' };
  expect(approvals).toMatchObject([{ principal, comment: 'fine with me', ip: '198.51.100.4', resolution: 'approved' }]);
  const again = await post(token, { resolution: 'rejected' });
  expect([again.status, await again.text()]).toEqual([409, expect.stringContaining('already decided')]);
  expect(await (await get(token)).text()).not.toContain('<form');
});

test('after a decision it says what becomes of the message', async () => {
  const afterwards = async (terms: object, resolution: string) =>
    (await post(await tokenFor(await held(terms)), { resolution })).text();
  expect(await afterwards({}, 'approved')).toContain('The message goes on from here.');
  expect(await afterwards({}, 'rejected')).toContain('The message ends here.');
  expect(await afterwards({ quorum: 2 }, 'approved')).toContain('1 of 2 approvals are given; 1 more needed');
});

test('a form is read as its schema wants it; what does not fit is shown again and leaves the link unspent', async () => {
  const { id, token } = await asking();
  const filled = { resolution: 'submitted', 'field.n': '0', 'field.color': '"blue"', 'field.names': 'anna\r\nbert' };
  const wrong = await post(token, filled);
  const shown = await wrong.text();
  expect(wrong.status).toBe(400);
  expect(shown).toContain('<small class="wrong" id="field.n-problem">At least 1 is needed.</small>');
  expect(shown).toContain('value="0" required aria-invalid="true" aria-describedby="field.n-problem">');
  expect(shown).toContain('bert</textarea>');
  expect((await post(token, { ...filled, 'field.n': 'many' })).status).toBe(400);
  expect(await stateOf(id)).toBe('input-required');
  expect((await post(token, { ...filled, 'field.n': '3', 'field.urgent': 'true' })).status).toBe(200);
  expect(await filledIn(id)).toEqual({ n: 3, color: 'blue', urgent: true, names: ['anna', 'bert'] });
});

test('values that may be left open, choices with titles, and defaults are shown and read as such', async () => {
  const { id, token } = await asking(
    {
      age: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], title: 'Age' },
      size: {
        oneOf: [
          { const: 's', title: 'Small' },
          { const: 'l', title: 'Large' },
        ],
      },
      color: { anyOf: [{ enum: ['red', 'blue'] }, { type: 'null' }] },
      sure: { anyOf: [{ type: 'boolean' }, { type: 'null' }] },
      copies: { type: 'integer', default: 2 },
      urgent: { type: 'boolean', default: true },
    },
    ['age', 'size'],
  );
  const page = await (await get(token)).text();
  for (const shown of [
    ...[
      'Age<input type="number" min="1" step="1" name="field.age" value="">',
      '<option value="&quot;s&quot;">Small</option>',
    ],
    ...['<option value="&quot;red&quot;">red</option>', '<option value="true">true</option>'],
    ...['name="field.copies" value="2">', 'name="field.urgent" value="true" checked>'],
  ])
    expect(page).toContain(shown);
  const filled = { resolution: 'submitted', 'field.size': '"l"', 'field.copies': '3' };
  expect((await post(token, { ...filled, 'field.age': 'many' })).status).toBe(400);
  expect((await post(token, { ...filled, 'field.size': '"xl"' })).status).toBe(400);
  expect((await post(token, filled)).status).toBe(200);
  expect(await filledIn(id)).toEqual({ age: null, size: 'l', copies: 3, urgent: false });
});

test('fields stand in the order in which they came, as native inputs with their bounds, and * is explained', async () => {
  const { id, token } = await asking(
    {
      to: { type: 'string', maxLength: 80 },
      amount: { type: 'number', exclusiveMinimum: 0, maximum: 99.5 },
      on: { type: 'string', format: 'date' },
      at: { type: 'string', format: 'date-time', default: '2026-12-24T18:30:00+01:00' },
      mail: { type: 'string', format: 'email' },
    },
    ['to'],
  );
  const page = await (await get(token)).text();
  expect([...page.matchAll(/<input[^>]* name="field\.[^>]*>/g)].map(([markup]) => markup)).toEqual([
    '<input type="text" maxlength="80" name="field.to" value="" required>',
    '<input type="number" min="0" max="99.5" step="any" name="field.amount" value="">',
    '<input type="date" name="field.on" value="">',
    '<input type="datetime-local" name="field.at" value="2026-12-24T17:30">',
    '<input type="email" name="field.mail" value="">',
  ]);
  expect(page).toContain('Fields with * must be filled in.');
  const filled = {
    resolution: 'submitted',
    'field.to': 'anna',
    'field.on': '2026-12-25',
    'field.at': '2026-12-24T18:00',
  };
  const wrong = await (await post(token, { ...filled, 'field.to': '', 'field.amount': '0' })).text();
  for (const problem of [
    'to-problem">This is needed.',
    'amount-problem">More than 0 is needed.',
    'value="2026-12-24T18:00"',
  ])
    expect(wrong).toContain(problem);
  expect((await post(token, filled)).status).toBe(200);
  expect(await filledIn(id)).toEqual({ to: 'anna', on: '2026-12-25', at: '2026-12-24T18:00:00.000Z' });
});

test('arguments stand in the order in which the agent gave them, also after somebody has edited them', async () => {
  const order = async (token: string) =>
    [...(await (await get(token)).text()).matchAll(/<dt>(zeta|amount|to)<\/dt>/g)].map(([, name]) => name);
  const { id } = await calling({ zeta: 1, amount: 5, to: 'anna' }, { quorum: 2 });
  expect(await order(await tokenFor(id))).toEqual(['zeta', 'amount', 'to']);
  const edited = { resolution: 'approved', arguments: { to: 'bert', zeta: 1, amount: 5 } };
  expect(await outcome(api.client, id, edited)).toBe('200 input-required');
  expect(await order(await tokenFor(id))).toEqual(['to', 'zeta', 'amount']);
});

test('the page says what is still needed, who has decided and when, and has no button that would be refused', async () => {
  const [anna, bert] = [await named('Anna'), await named('Bert')];
  const id = await held({ quorum: 2, approvers: [anna.id, bert.id] });
  const fresh = await (await get(await tokenFor(id))).text();
  expect(fresh).toContain(`0 of 2 approvals are given; 2 more needed from: “Anna” (${anna.id}), “Bert” (${bert.id}).`);
  const byAnna = await tokenFor(id, 'rule_a', [anna.id]);
  expect(await outcome(anna.client, id, { resolution: 'approved' })).toBe('200 input-required');
  const second = await (await get(byAnna)).text();
  expect(second).toContain('whoever wrote its rule has approved already');
  expect([second.includes('value="approved"'), second.includes('value="rejected"')]).toEqual([false, true]);
  const byBert = await tokenFor(id, 'rule_b', [bert.id]);
  expect(await (await get(byBert)).text()).toContain(
    `1 of 2 approvals are given; 1 more needed from: “Bert” (${bert.id}).`,
  );
  expect((await post(byBert, { resolution: 'approved' })).status).toBe(200);
  const decided = await (await get(byAnna)).text();
  expect(decided).toMatch(new RegExp(`approved by “Anna” \\(${anna.id}\\), <time datetime="20`));
  expect(decided).toContain('approved by whoever had the link of the rule “rule_b”, <time');
  expect(decided).not.toContain('<button');

  const own = await (
    await get(await tokenFor(await held({ allow_self: false }, anna.client), 'rule_a', [anna.id]))
  ).text();
  expect(own).toContain('it may not answer this request');
  expect(own).not.toContain('<button');
  const used = await tokenFor(await held({ quorum: 2 }));
  await post(used, { resolution: 'approved' });
  const waiting = await (await get(used)).text();
  expect(waiting).toContain('Your decision by this link is recorded.');
  expect(waiting).toContain('1 of 2 approvals are given; 1 more needed from somebody else.');
  expect(waiting).not.toContain('<button');
});

test('a form can be declined without its values', async () => {
  const { id, token } = await asking();
  expect((await post(token, { resolution: 'declined' })).status).toBe(200);
  expect(await stateOf(id)).toBe('working');
});

test('an answer that is none, another content type, and what is over are said on a page', async () => {
  const [open, resolved, late] = [await held(), await held(), await held()];
  const [token, used, expired] = [await tokenFor(open), await tokenFor(resolved), await tokenFor(late)];
  expect((await post(token, { resolution: 'perhaps' })).status).toBe(400);
  expect((await post(token, {})).status).toBe(400);
  const json = { method: 'POST', body: '{"resolution": "approved"}', headers: { 'content-type': 'application/json' } };
  const other = await fetch(address(token), json);
  expect([other.status, other.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
  expect(await stateOf(open)).toBe('input-required');
  expect(await outcome(api.client, resolved, { resolution: 'approved' })).toBe('200 working');
  expect((await post(used, { resolution: 'approved' })).status).toBe(409);
  await api.database.query("UPDATE input_requests SET expires_at = now() - interval '1 s' WHERE message_id = $1", [
    late,
  ]);
  const over = await post(expired, { resolution: 'approved' });
  expect([over.status, await over.text()]).toEqual([410, expect.stringContaining('ran out')]);
});

test('ten wrong links a minute from an address, then 429; others are not kept out', async () => {
  const wrong = (n: number) => get(`${'x'.repeat(42)}${n}`, '203.0.113.9');
  for (let tried = 0; tried < 10; tried += 1) {
    const answer = await wrong(tried);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8']);
  }
  const token = await tokenFor(await held());
  const refused = await get(token, '203.0.113.9');
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  expect((await post(token, { resolution: 'approved' }, '203.0.113.9')).status).toBe(429);
  expect((await get(token, '203.0.113.10')).status).toBe(200);
});
