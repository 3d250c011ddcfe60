import type { Caller } from '../contracts/api/auth.js';
import type { ResolveRequest } from '../contracts/api/messages.js';
import { isLimited } from '../contracts/permissions.js';
import { describeRequest, type LinkedRequest } from '../messages/input/by-link.js';
import { findCallbackToken, type RequestSubject } from '../messages/input/callback-tokens.js';
import { byLink, type Identify, type SeenPage } from '../messages/input/identify.js';
import { type DecisionRequest, type Resolved, resolveAs, resolveMessage } from '../messages/input/resolve.js';
import { PlatformError } from '../runtime/errors.js';
import type { ApiDeps } from './deps.js';

const PLAN_ID = /^plan_/;

/** Decisions of humans about whatever waits for them: a message, or a plan as a whole. */
export function createDecisions({
  messages: { core },
  plans,
}: Pick<ApiDeps, 'plans'> & { messages: Pick<ApiDeps['messages'], 'core'> }) {
  /** @throws PlatformError as `resolveAs` or `decidePlanAs` */
  const decideAs = (subject: RequestSubject, body: DecisionRequest, identify: Identify): Promise<Resolved> =>
    subject.plan_id === null ? resolveAs(core, subject, body, identify) : plans.decideAs(subject, body, identify);
  return {
    decideAs,
    /**
     * `/messages/{id}/resolve`. It is the one path with an id, and that of every `resolve_url`: so it takes the id of a
     * plan too.
     * @throws PlatformError as `resolveMessage`
     */
    resolve: async (caller: Caller | null, id: string, body: ResolveRequest, ip?: string): Promise<Resolved> => {
      if (!PLAN_ID.test(id)) return resolveMessage(core, caller, id, body, ip);
      // Plans are not within the limits of any token.
      if (caller && isLimited(caller)) throw new PlatformError('NOT_FOUND', 'There is no plan of that plan_id.');
      return plans.resolve(caller, id, body, ip);
    },
    /**
     * What a callback token asks. Changes nothing: whoever opens a link has decided nothing.
     * @throws PlatformError unauthorized for a token that nobody issued, or whose message or plan is gone
     */
    describe: async (token: string): Promise<LinkedRequest> => {
      const found = await findCallbackToken(core.db, token);
      return found.plan_id === null ? describeRequest(core, found) : plans.describe(found);
    },
    /** Decides by a callback token on the page behind its link. The token is spent with the decision. @throws PlatformError as `decideAs` */
    decideByLink: async (
      token: string,
      answer: Pick<DecisionRequest, 'resolution' | 'comment' | 'data'>,
      page: SeenPage,
    ): Promise<Resolved> => {
      const found = await findCallbackToken(core.db, token);
      return decideAs(found, answer, byLink(found.tenant_id, token, page));
    },
  };
}
