import { createHmac } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { verifyReceipt } from '../../auth/receipts.js';
import { loadSigningKeys, rotateSigningKeys } from '../../auth/signing-keys.js';
import { RECEIPT_COMMANDS } from '../../cli/receipt-commands.js';
import { GetReceiptResponse } from '../../contracts/api/policies/requests.js';
import { digestOf } from '../../messages/digest.js';
import { serveApi } from '../api/served-api.js';
import { approvalsFixture, EXECUTOR } from '../messages/approvals/approvals-fixture.js';

const api = await serveApi();
const { calling, outcome, person } = await approvalsFixture(api);

const jwks = async (): Promise<unknown> => (await fetch(`${api.baseUrl}/.well-known/jwks.json`)).json();
const receiptOf = (request_id: string) => api.client.ok('/requests/get_receipt', { request_id }, GetReceiptResponse);

/** A tool call that was approved, and by whom. */
async function approved(args: Record<string, unknown> = { amount: 3 }) {
  const { id, request } = await calling(args);
  const approver = await person('admin');
  await outcome(approver.client, id, { resolution: 'approved', comment: 'not in the receipt' });
  return { id, request_id: request.request_id, approver: approver.id, args };
}

test('a receipt says who decided what, and is verified by the published keys alone', async () => {
  const { id, request_id, approver, args } = await approved();
  const { receipt, salt } = await receiptOf(request_id);
  const keyed = (digest: string) => createHmac('sha256', Buffer.from(salt, 'base64url')).update(digest).digest('hex');
  const { receipt: said } = await verifyReceipt(receipt, await jwks());
  expect(said).toEqual({
    ...{ request_id, message_id: id, tenant_id: api.tenantId, resolution: 'approved' },
    request_digest: keyed(digestOf({ tool: 'pay', arguments: args, executor: EXECUTOR })),
    arguments_digest: keyed(digestOf(args)),
    principals: [{ type: 'credential', id: approver, method: 'access_token' }],
    decided_at: expect.any(String),
  });
  expect(await receiptOf(request_id)).toEqual({ ok: true, receipt, salt });
});

test('what was changed, or signed by a key of tokens, is no receipt, and a receipt is no token', async () => {
  const { receipt } = await receiptOf((await approved()).request_id);
  const [head = '', payload = '', signature = ''] = receipt.split('.');
  const said = Buffer.from(payload, 'base64url').toString();
  const forged = Buffer.from(said.replace('approved', 'rejected')).toString('base64url');
  await expect(verifyReceipt([head, forged, signature].join('.'), await jwks())).rejects.toThrow('was changed');
  await expect(verifyReceipt(receipt, { keys: [] })).rejects.toThrow('no key for receipts');
  const token = (await loadSigningKeys(api.db, api.secrets)).find(({ kind, retired }) => kind === 'token' && !retired);
  const header = { alg: 'EdDSA', typ: 'fleet-receipt+jwt', kid: token?.kid ?? '' };
  const byToken = await new SignJWT(JSON.parse(said)).setProtectedHeader(header).sign(token?.privateJwk() ?? {});
  await expect(verifyReceipt(byToken, await jwks())).rejects.toThrow('no key for receipts');
  expect(await api.clientWith(receipt).failure('/sessions/get', {})).toBe('401 unauthorized');
});

test('nobody gets one before the decision, or after the message is erased', async () => {
  const { request } = await calling({ amount: 4 });
  const { request_id } = request;
  expect(await api.client.failure('/requests/get_receipt', { request_id })).toBe('409 CONFLICT');
  const gone = (await approved()).request_id;
  await api.database.query('DELETE FROM input_requests WHERE request_id = $1', [gone]);
  expect(await api.client.failure('/requests/get_receipt', { request_id: gone })).toBe('404 NOT_FOUND');
});

test('the command verifies files, and needs nothing else', async () => {
  const { request_id } = await approved();
  const folder = await mkdtemp(join(tmpdir(), 'receipt-'));
  const [file, keys] = [join(folder, 'receipt.txt'), join(folder, 'jwks.json')];
  await writeFile(file, `${(await receiptOf(request_id)).receipt}\n`);
  await writeFile(keys, JSON.stringify(await jwks()));
  const command = RECEIPT_COMMANDS['receipts verify'];
  if (!command || !('runAlone' in command)) throw new Error('there is no such command');
  const verify = async () => command.runAlone({ argument: file, second: '', options: { jwks: keys } });
  expect(await verify()).toMatchObject({ valid: true, request_id });
  await writeFile(file, 'no receipt');
  await expect(verify()).rejects.toThrow('The receipt is not valid');
});

const LONG_RETIRED = "UPDATE signing_keys SET retired_at = now() - interval '1 year' WHERE retired_at IS NOT NULL";
// The last test: it ends the tokens of the others.
test('it holds when the keys are rotated, again and again', async () => {
  const { receipt } = await receiptOf((await approved()).request_id);
  for (let round = 0; round < 2; round += 1) {
    await rotateSigningKeys(api.db, api.secrets);
    await api.database.query(LONG_RETIRED);
  }
  await rotateSigningKeys(api.db, api.secrets);
  const stored = await loadSigningKeys(api.db, api.secrets);
  const keys = stored.map(({ kid, kind, public_jwk }) => ({ ...public_jwk, kid, kind }));
  expect(await verifyReceipt(receipt, { keys })).toMatchObject({ receipt: { resolution: 'approved' } });
  expect(keys.filter(({ kind }) => kind === 'token')).toHaveLength(2); // the active one, and that which was retired a moment ago
});
