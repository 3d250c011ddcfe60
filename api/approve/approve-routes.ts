import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { formFields, postedValues } from '../../contracts/forms/form-fields.js';
import { LIMITS } from '../../contracts/limits.js';
import type { LinkedRequest } from '../../messages/input/by-link.js';
import { type FormProblem, formProblems } from '../../messages/input/form.js';
import { PlatformError } from '../../runtime/errors.js';
import { createDecisions } from '../decisions.js';
import type { ApiDeps } from '../deps.js';
import { logFailure, toPlatformError } from '../plugins/error-contract.js';
import type { WrongTokens } from '../wrong-tokens.js';
import { decidedPage, problemPage, type Refused, refusalOf, requestPage } from './page.js';
import { isTooLarge, mayDecide } from './question.js';
import { PAGE_HEADERS } from './style.js';

const COMMENT_MAX = 4_096;

interface Linked {
  Params: { token: string };
}

/** What the page says where there is no request to show. */
function problemOf({ code, message }: PlatformError): [title: string, text: string] {
  if (code === 'unauthorized')
    return ['This link is not valid', 'Check that it was copied whole. A link belongs to one question.'];
  if (code === 'RATE_LIMITED') return ['Too many wrong links', 'Try again in a minute.'];
  if (code === 'SERVICE_UNAVAILABLE') return ['Not available right now', 'Nothing was decided. Try again in a moment.'];
  return ['This did not work', message];
}

/** What does not fit a form, as its page says it. */
function refusedWith(problems: FormProblem[]): Pick<Refused, 'problem' | 'problems'> {
  const general = problems.filter(({ field }) => field === undefined).map(({ text }) => text);
  return { problem: ['Something does not fit. Nothing was sent.', ...general].join(' '), problems };
}

function sendPage(reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply.code(status).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
}

/**
 * `GET /approve/{token}`: the page for somebody who has only the link of an approval, and the `POST` of its form. It works without a script,
 * never decides on a GET, and says every refusal as a page.
 */
export function approveRoutes(
  app: FastifyInstance,
  { wrongTokens, ...deps }: Pick<ApiDeps, 'messages' | 'plans'> & { wrongTokens: WrongTokens },
): void {
  const decisions = createDecisions(deps);

  /** @throws PlatformError unauthorized, and RATE_LIMITED for an address that has tried too many wrong tokens */
  const find = (request: FastifyRequest<Linked>): Promise<LinkedRequest> =>
    wrongTokens.guard(request.ip, () => decisions.describe(request.params.token));

  const answered =
    (work: (request: FastifyRequest<Linked>, reply: FastifyReply) => Promise<FastifyReply>) =>
    async (request: FastifyRequest<Linked>, reply: FastifyReply): Promise<FastifyReply> => {
      try {
        return await work(request, reply);
      } catch (error) {
        const shown = toPlatformError(error);
        logFailure(request, shown);
        return sendPage(reply.headers(shown.headers), shown.statusCode, problemPage(...problemOf(shown)));
      }
    };

  app.get<Linked>(
    '/approve/:token',
    answered(async (request, reply) => sendPage(reply, 200, requestPage(await find(request)))),
  );

  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser<string>(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: LIMITS.bodyBytes },
      (_request: FastifyRequest, body: string, parsed: (error: Error | null, body?: unknown) => void) =>
        parsed(null, new URLSearchParams(body)),
    );
    scope.post<Linked>(
      '/approve/:token',
      {
        errorHandler: (error, _request, reply) => {
          const shown = toPlatformError(error);
          void sendPage(reply, shown.statusCode, problemPage(...problemOf(shown)));
        },
      },
      answered(async (request, reply) => {
        const posted = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
        const linked = await find(request);
        const comment = posted.get('comment')?.slice(0, COMMENT_MAX).toWellFormed();
        const resolution = posted.get('resolution') ?? '';
        const version = posted.get('version') ?? undefined;
        const isSubmitted = linked.request.kind === 'form' && resolution === 'submitted';
        try {
          if ([...posted.values()].some((value) => value.includes('\0')))
            throw new PlatformError('BAD_REQUEST', 'The answer holds a NUL character.');
          if (isTooLarge(linked) && resolution !== refusalOf(linked.request.kind))
            throw new PlatformError('PAYLOAD_TOO_LARGE', 'The page cannot show all that would be approved.');
          const data = isSubmitted ? postedValues(formFields(linked.request), posted) : undefined;
          const problems = data ? formProblems(linked.request, data) : [];
          if (problems.length > 0 && mayDecide(linked))
            return sendPage(reply, 400, requestPage(linked, { posted, ...refusedWith(problems) }));
          const answer = { resolution, ...(comment && { comment }), ...(data && { data }) };
          const { new_state } = await decisions.decideByLink(request.params.token, answer, {
            ip: request.ip,
            ...(version !== undefined && { version }),
          });
          return sendPage(reply, 200, decidedPage(linked, resolution, new_state));
        } catch (error) {
          const shown = toPlatformError(error);
          if (shown.statusCode >= 500 || shown.code === 'unauthorized') throw error;
          const now = shown.code === 'BAD_REQUEST' ? linked : await decisions.describe(request.params.token);
          return sendPage(reply, shown.statusCode, requestPage(now, { posted, problem: shown.message }));
        }
      }),
    );
    done();
  });
}
