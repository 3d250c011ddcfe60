import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { RuleCache } from '../../alerts/rule-cache.js';
import { createAlertRules } from '../../alerts/rules.js';
import { NewAlertRequest } from '../../contracts/api/alerts.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';

const database = await freshDatabase();
const db = database.db();
const secrets = createSecrets(randomBytes(32).toString('base64'));

test('a channel that cannot be decrypted gets nothing, and all others go on', async () => {
  const [damaged, whole] = [await insertTenant(database), await insertTenant(database)];
  const rules = createAlertRules({ db, secrets, outbound: { checkUrl: () => undefined }, slackApiUrl: '' });
  const webhook = (name: string) => ({
    type: 'webhook',
    config: { url: `https://${name}.example.com/`, secret: 'a-secret-of-32-characters-or-more' },
  });
  for (const tenant of [damaged, whole]) {
    const condition = { event: 'message.completed' };
    const request = { name: 'done', condition, notifications: [webhook('first'), webhook('second')] };
    await rules.create(
      { tenant_id: tenant, principal: { type: 'credential', id: 'cred_test' } },
      NewAlertRequest.parse(request),
    );
  }
  await database.query("UPDATE alert_channels SET secrets = '\\x00' WHERE tenant_id = $1 AND place = 0", [damaged]);
  const cache = new RuleCache(secrets, '', createLogger({ level: 'silent' }));
  const { rules: found } = await db.system((tx) => cache.rulesOf(tx, [damaged, whole]));
  const urlsOf = (tenant: string) =>
    found
      .get(tenant)
      ?.get('message.completed')
      ?.flatMap(({ channels }) => channels.map(({ url }) => url));
  expect(urlsOf(damaged)).toEqual(['https://second.example.com/']);
  expect(urlsOf(whole)).toEqual(['https://first.example.com/', 'https://second.example.com/']);
});
