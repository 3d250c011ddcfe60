import type { FastifyInstance, FastifyRequest } from 'fastify';
import { answerFromSlack, type SlackInteractionDeps } from '../../alerts/slack-interactions.js';
import { TestAlerts } from '../../alerts/test-alert.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { listDeliveries } from '../../deliveries/delivery-list.js';
import { redeliver } from '../../deliveries/redeliver.js';
import { PlatformError } from '../../runtime/errors.js';
import { createDecisions } from '../decisions.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';
import { RateLimit } from '../rate-limit.js';
import type { WrongTokens } from '../wrong-tokens.js';

/** Test notifications of one tenant: each makes a request to every channel of a rule, past the delivery slots. */
const TEST_CALLS = { limit: 30, windowSeconds: 60 };
/** The largest form that Slack sends is far smaller. */
const FORM_BYTES = 256 * 1024;

/** A header that occurs at most once. */
function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

type AlertRouteDeps = Pick<
  ApiDeps,
  'db' | 'alertRules' | 'channelClients' | 'deliveriesExpected' | 'messages' | 'plans' | 'redis' | 'secrets'
> & { wrongTokens: WrongTokens };

/** What Slack posts when somebody presses a button. The signature covers the bytes, so the form is parsed here. */
function slackRoutes(app: FastifyInstance, deps: AlertRouteDeps): void {
  const { decideAs } = createDecisions(deps);
  app.register((scope, _options, done) => {
    const bytes = new WeakMap<FastifyRequest, Buffer>();
    scope.addContentTypeParser<Buffer>(
      'application/x-www-form-urlencoded',
      { parseAs: 'buffer', bodyLimit: FORM_BYTES },
      (request: FastifyRequest, body: Buffer, parsed: (error: Error | null, body?: unknown) => void) => {
        bytes.set(request, body);
        parsed(null, Object.fromEntries(new URLSearchParams(body.toString())));
      },
    );
    mount(scope, OPERATIONS.slackInteraction).answer(async (_body, { request }) => {
      const body = bytes.get(request);
      if (!body) throw new PlatformError('unauthorized', 'The request is not signed by Slack.');
      const interaction = {
        body,
        signature: header(request, 'x-slack-signature'),
        timestamp: header(request, 'x-slack-request-timestamp'),
      };
      const { core } = deps.messages;
      const { outbound } = deps.channelClients;
      const slack: SlackInteractionDeps = {
        ...{ core, secrets: deps.secrets, outbound, decideAs },
        // All tenants' buttons come from the addresses of Slack.
        guard: (tenantId, work) => deps.wrongTokens.guard(request.ip, work, tenantId),
      };
      await answerFromSlack(slack, interaction, Date.now());
      return { ok: true };
    });
    done();
  });
}

/** Alert rules and their deliveries, scope `admin`. */
export function alertRoutes(app: FastifyInstance, deps: AlertRouteDeps): void {
  const { alertRules: rules } = deps;
  const testAlerts = new TestAlerts(deps.channelClients);
  const testCalls = new RateLimit({ ...TEST_CALLS, name: 'test-alerts', redis: deps.redis });

  mount(app, OPERATIONS.newAlert).answer((body, { author }) => rules.create(author, body));

  mount(app, OPERATIONS.getAlerts).answer(async (body, { caller }) => {
    const found = await rules.list(caller.tenant_id, body);
    return { ...pageFields(body, found), rules: found.rows };
  });

  mount(app, OPERATIONS.getAlert).answer(({ rule_id }, { caller }) => rules.get(caller.tenant_id, rule_id));

  mount(app, OPERATIONS.updateAlert).answer((body, { author }) => rules.update(author, body));

  mount(app, OPERATIONS.deleteAlert).answer(async ({ rule_id }, { author }) => {
    await rules.delete(author, rule_id);
    return { ok: true };
  });

  mount(app, OPERATIONS.testAlert).answer(async ({ rule_id }, { caller: { tenant_id } }) => {
    testCalls.check(tenant_id, 'Too many test notifications of this tenant.');
    testCalls.add(tenant_id);
    return { results: await testAlerts.send(await rules.getStored(tenant_id, rule_id)) };
  });

  mount(app, OPERATIONS.getDeliveries).answer(async (body, { caller }) => {
    const found = await listDeliveries(deps.db, caller.tenant_id, body);
    return { ...pageFields(body, found), deliveries: found.rows };
  });

  mount(app, OPERATIONS.redeliver).answer(async ({ delivery_id }, { caller }) => {
    const status = await redeliver({ ...deps, clients: deps.channelClients }, caller.tenant_id, delivery_id);
    deps.deliveriesExpected();
    return { ok: true, delivery_id, status };
  });

  slackRoutes(app, deps);
}
