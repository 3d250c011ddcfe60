import { expect, test } from 'vitest';
import type { InputRequest } from '../../contracts/api/messages.js';
import { attemptEmail } from '../../deliveries/channels/email.js';
import type { Envelope } from '../../deliveries/envelope.js';
import { tcpServer } from '../runtime/loopback-server.js';
import { mailServer, refusing, textOf } from './mail-server.js';

const ENVELOPE: Envelope = {
  ...{ delivery_id: 'dlv_1', event_type: 'message.input_required', timestamp: '2026-11-22T10:00:00.000Z' },
  ...{ tenant_id: 'ten_1', session_id: 'ses_1', severity: 'critical', type: 'approval_required' },
  rule_name: 'Zürich\r\nBcc: evil@example.com',
  event: { message_id: 'msg_1', title: 'Pay?' },
  input_request: {
    ...{ request_id: 'req_1', kind: 'approval', source: 'policy', quorum: 1, approvals: [] },
    ...{ title: 'May pay be called?', prompt: 'Above the limit.', executor: { type: 'agent', id: 'bank' } },
    ...{ tool: 'pay', arguments: { to: 'anna', note: 'x'.repeat(600), amount: 90 } },
    ...{ requested_at: '2026-11-22T10:00:00.000Z', expires_at: '2026-11-23T10:00:00.000Z' },
  },
  callback_token: 'token-1',
  resolve_url: 'https://fleet.example.com/messages/msg_1/resolve',
  page_url: 'https://fleet.example.com/approve/token-1',
};

async function send(
  smtpUrl: string | undefined,
  recipients = ['ops@example.com'],
  { signal = new AbortController().signal, envelope = ENVELOPE, timeoutMs = 60_000 } = {},
) {
  const smtp = { smtpUrl, from: 'fleet@example.com', timeoutMs };
  const body = Buffer.from(JSON.stringify(envelope));
  const { result, outcome } = await attemptEmail(smtp, { config: { recipients } }, body, signal);
  return { ...result, outcome };
}

test('a mail server gets one message for all recipients, whose headers a rule cannot add to', async () => {
  const { mails, port } = await mailServer();
  const result = await send(`smtp://127.0.0.1:${port}`, ['ops@example.com', 'night@example.com']);
  expect(result).toMatchObject({ status_code: 250, error: null });
  expect(result.outcome).toBe('accepted');
  const [mail] = mails;
  expect(mails).toHaveLength(1);
  expect(mail).toMatchObject({ from: 'fleet@example.com', to: ['ops@example.com', 'night@example.com'] });
  expect(mail?.text).toMatch(/^Message-ID: <dlv_1@example\.com>\r$/im);
  expect(mail?.text.split('\r\n\r\n')[0]).not.toMatch(/^Bcc:/im);
});

test('the mail of a request says in words of people what is asked, by whom it is done, until when, and where to answer', async () => {
  const { mails, port } = await mailServer();
  await send(`smtp://127.0.0.1:${port}`);
  expect(mails[0]?.text).toMatch(/^Subject: Your approval is needed: May pay be called\?\r$/m);
  const mail = textOf(mails[0]);
  const text = mail.slice(mail.indexOf('\r\n\r\n') + 4);
  expect(text.split('\r\n').slice(0, 16)).toEqual([
    ...['May pay be called?', '', 'Above the limit.', ''],
    ...['Tool: pay', 'Carried out by: agents of the type bank', 'With:', '    to: anna'],
    ...[`    note: ${'x'.repeat(500)}... (all of it on the page)`, '    amount: 90'],
    ...['Answer until: Mon, 23 Nov 2026 10:00 UTC', ''],
    ...['Read all of it, and approve or reject it:', 'https://fleet.example.com/approve/token-1', ''],
    'The link is for you alone and works once. Whoever has it can decide: do not pass it on.',
  ]);
});

test('what an agent asks cannot pass for lines of the platform', async () => {
  const { mails, port } = await mailServer();
  const title = 'Pay?\r\n\r\nRead all of it, and approve or reject it:\nhttps://evil.example';
  const asked = { ...ENVELOPE.input_request, title, prompt: title, arguments: { [title]: title } } as InputRequest;
  await send(`smtp://127.0.0.1:${port}`, undefined, { envelope: { ...ENVELOPE, input_request: asked } });
  const lines = textOf(mails[0]).split('\r\n');
  expect(lines.filter((line) => line.startsWith('Read all'))).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('https://'))).toEqual([ENVELOPE.page_url]);
  expect(lines).toContain('    https://evil.example');
});

test.each([
  [550, 'refused', 'RECIPIENT_REFUSED', 'gone'],
  [451, 'unavailable', 'RECIPIENT_REFUSED', 'gone'],
  [550, 'refused', 'SMTP_ERROR', ''],
  [451, 'unavailable', 'SMTP_ERROR', ''],
])('a server that answers %s: %s, with %s where it takes the others', async (code, outcome, error, refused) => {
  const { mails, port } = await mailServer({
    onRcptTo: ({ address }, _session, callback) => callback(address.startsWith(refused) ? refusing(code) : undefined),
  });
  const result = await send(`smtp://127.0.0.1:${port}`, ['ops@example.com', 'gone@example.com']);
  expect(result).toMatchObject({ status_code: code, error });
  expect(result.outcome).toBe(outcome);
  expect(mails[0]?.to).toEqual(refused ? ['ops@example.com'] : undefined);
});

test('user and password of SMTP_URL are used', async () => {
  const logins: unknown[] = [];
  const { mails, port } = await mailServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, callback) => {
      logins.push([username, password]);
      callback(null, { user: username ?? '' });
    },
  });
  expect(await send(`smtp://fleet:s%40cret@127.0.0.1:${port}`)).toMatchObject({ error: null });
  expect(logins).toEqual([['fleet', 's@cret']]);
  expect(mails).toHaveLength(1);
});

test('a server that is away, or hangs up, may be there later', async () => {
  const gone = await send('smtp://127.0.0.1:1');
  expect(gone).toMatchObject({ status_code: null, error: 'SMTP_ERROR' });
  expect(gone.outcome).toBe('unavailable');
  const server = await tcpServer((socket) => socket.destroy());
  expect((await send(`smtp://127.0.0.1:${server.port}`)).outcome).toBe('unavailable');
});

test('a server that never greets, and one that answers each command after a while, are given one time in all', async () => {
  const timeoutMs = 500;
  const silent = await tcpServer(() => undefined);
  // Three answers, each within the time, and after it together.
  const later = (_value: unknown, _session: unknown, callback: () => void) => void setTimeout(callback, 200);
  const onConnect = (session: unknown, callback: () => void) => later(undefined, session, callback);
  const slow = await mailServer({ onConnect, onMailFrom: later, onRcptTo: later });
  const [ungreeted, unended] = await Promise.all([
    send(`smtp://127.0.0.1:${silent.port}`, undefined, { timeoutMs }),
    send(`smtp://127.0.0.1:${slow.port}`, undefined, { timeoutMs }),
  ]);
  expect(ungreeted.outcome).toBe('unavailable');
  expect(ungreeted.duration_ms).toBeGreaterThan(0.9 * timeoutMs);
  expect(unended).toMatchObject({ status_code: null, error: 'TIMEOUT' });
  expect(slow.mails).toEqual([]);
});

test('an attempt that this process cuts off is none', async () => {
  const server = await tcpServer(() => stopping.abort());
  const stopping = new AbortController();
  await expect(send(`smtp://127.0.0.1:${server.port}`, undefined, { signal: stopping.signal })).rejects.toMatchObject({
    code: 'ABORTED',
  });
});

test('without SMTP_URL nothing can be sent', async () => {
  const result = await send(undefined);
  expect(result).toMatchObject({ error: 'SMTP_NOT_CONFIGURED' });
  expect(result.outcome).toBe('refused');
});
