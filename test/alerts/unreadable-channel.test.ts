import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { RuleCache } from '../../alerts/rule-cache.js';
import { createAlertRules } from '../../alerts/rules.js';
import { NewAlertRequest } from '../../contracts/api/alerts.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import { testAuthor } from '../setup/author.js';
import { insertTenant } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { webhook } from './alert-fixture.js';

const database = await freshDatabase();
const db = database.db();
const secrets = createSecrets(randomBytes(32).toString('base64'));

test('a channel that cannot be decrypted gets nothing, and all others go on', async () => {
  const [damaged, whole] = [await insertTenant(database), await insertTenant(database)];
  const rules = createAlertRules({ db, secrets, outbound: { checkUrl: () => undefined }, slackApiUrl: '' });
  const notifications = ['first', 'second'].map((name) =>
    webhook(`https://${name}.example.com/`, { secret: 'sesame' }),
  );
  const request = { name: 'done', condition: { event: 'message.completed' }, notifications };
  for (const tenant of [damaged, whole]) await rules.create(testAuthor(tenant), NewAlertRequest.parse(request));
  await database.query("UPDATE alert_channels SET secrets = '\\x00' WHERE tenant_id = $1 AND place = 0", [damaged]);
  const cache = new RuleCache(secrets, '', createLogger({ level: 'silent' }));
  const { rules: found } = await db.system((tx) => cache.rulesOf(tx, [damaged, whole]));
  const rulesOf = (tenant: string) => found.get(tenant)?.get('message.completed') ?? [];
  const urlsOf = (tenant: string) => rulesOf(tenant).flatMap(({ channels }) => channels.map(({ url }) => url));
  expect(urlsOf(damaged)).toEqual(['https://second.example.com/']);
  expect(urlsOf(whole)).toEqual(['https://first.example.com/', 'https://second.example.com/']);
});
