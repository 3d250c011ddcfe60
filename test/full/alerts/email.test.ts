import { expect, test } from 'vitest';
import { AlertRule } from '../../../contracts/api/alerts.js';
import { untilDelivered } from '../../alerts/alert-fixture.js';
import { mailServer, refusing, textOf } from '../../deliveries/mail-server.js';
import { joinAgent } from '../../setup/platform/fleet.js';
import { startPlatform } from '../../setup/platform/platform.js';

test('an email of SMTP_URL and SMTP_FROM asks, is tried again, and its token answers', async () => {
  let mailsBegun = 0;
  const server = await mailServer({
    onMailFrom: (_address, _session, callback) => {
      mailsBegun += 1;
      callback(mailsBegun === 1 ? refusing(451) : undefined);
    },
  });
  const { platform } = await startPlatform({
    SMTP_URL: `smtp://127.0.0.1:${server.port}`,
    SMTP_FROM: 'Fleet <fleet@example.com>',
  });
  const { client } = platform;
  const email = { type: 'email', config: { recipients: ['ops@example.com', 'night@example.com'] } };
  const body = { name: 'Questions', condition: { event: 'message.input_required' }, notifications: [email] };
  const { rule_id } = await client.ok('/policies/new_alert', body, AlertRule);
  await joinAgent(platform, { instanceId: 'asks-1', agentType: 'asks' }, (dispatch) => {
    const { resolution } = (dispatch.payload.params.metadata ?? {}) as { resolution?: { resolution: string } };
    if (resolution) dispatch.result(resolution.resolution);
    else dispatch.ask({ kind: 'approval', title: 'Pay the invoice?' });
  });
  const { id } = await client.send('go', { metadata: { agent_type: 'asks' } });

  const deliveries = await untilDelivered(client, rule_id, 2);
  const delivery = deliveries.find(({ attempts }) => attempts.length > 1);
  expect(delivery).toMatchObject({
    status: 'delivered',
    attempts: [
      { status_code: 451, success: false, error: 'SMTP_ERROR' },
      { status_code: 250, success: true },
    ],
  });
  expect(deliveries.map(({ url }) => url).sort()).toEqual(['mailto:night@example.com', 'mailto:ops@example.com']);
  expect(server.mails.map(({ to }) => to).sort()).toEqual([['night@example.com'], ['ops@example.com']]);
  const mail = server.mails.find(({ to: [recipient] }) => delivery?.url === `mailto:${recipient}`);
  expect(mail).toMatchObject({ from: 'fleet@example.com' });
  const text = textOf(mail);
  expect(text).toMatch(new RegExp(`^Message-ID: <${delivery?.delivery_id}@example\\.com>\r$`, 'm'));

  const page = text.match(/http:\/\/\S+\/approve\/\S+/)?.[0] ?? '';
  expect((await fetch(page)).status).toBe(200);
  const answer = await fetch(page, { method: 'POST', body: new URLSearchParams({ resolution: 'approved' }) });
  expect(answer.status).toBe(200);
  await client.untilState(id, 'completed');
});
