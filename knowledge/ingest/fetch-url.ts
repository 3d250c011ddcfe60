import type { SourceErrorCode } from '../../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../../contracts/limits.js';
import { type Outbound, OutboundError, type OutboundResponse } from '../../http/outbound.js';
import { ParseError } from '../parse/parse-error.js';

/** For all hops together, from the first byte sent to the last received. */
const TIMEOUT_MS = 30_000;
const REDIRECTS_MAX = 5;
/** Of what a server says about its content; longer headers are cut, and longer ETags are none. */
const HEADER_CHARS_MAX = 256;

/** The content of a URL. */
export interface Fetched {
  content: Buffer;
  etag: string | undefined;
  contentType: string | undefined;
  filename: string | undefined;
}

const REASONS: Partial<Record<OutboundError['code'], [SourceErrorCode, string]>> = {
  FORBIDDEN_ADDRESS: [
    'FORBIDDEN_ADDRESS',
    'The URL, or one that it redirects to, leads to an address that may not be reached.',
  ],
  BAD_URL: ['FETCH_FAILED', 'The URL redirects to something else than http or https.'],
  TIMEOUT: ['FETCH_FAILED', `The URL was not read within ${TIMEOUT_MS / 1_000} s.`],
  CONNECT_FAILED: ['FETCH_FAILED', 'The server of the URL could not be reached.'],
  BROKEN: ['FETCH_FAILED', 'The connection broke while the URL was read.'],
};

function explained(error: unknown): unknown {
  if (!(error instanceof OutboundError)) return error;
  const reason = REASONS[error.code];
  return reason ? new ParseError(...reason) : error;
}

const failed = (message: string) => new ParseError('FETCH_FAILED', message);

/** Where a redirect leads. @throws ParseError FETCH_FAILED */
function nextUrl(from: string, { status, headers }: OutboundResponse): string {
  const { location } = headers;
  if (!location || !URL.canParse(location, from)) throw failed(`The URL answered ${status} without a place to go.`);
  const next = new URL(location, from);
  if (from.startsWith('https:') && next.protocol !== 'https:')
    throw failed('The URL redirects from https to another protocol.');
  next.hash = '';
  return next.href;
}

function contentOf(url: string, { status, headers, body, truncated }: OutboundResponse): Fetched {
  if (status !== 200) throw failed(`The URL answered ${status}.`);
  if (truncated) throw new ParseError('TOO_LARGE', `The URL has more than ${LIMITS.knowledgeDocumentBytes} bytes.`);
  const encoding = headers['content-encoding'];
  if (encoding && encoding !== 'identity') throw failed('The URL answered in an encoding that was not asked for.');
  const name = new URL(url).pathname.split('/').at(-1);
  const { etag = '' } = headers;
  return {
    content: body,
    etag: etag !== '' && etag.length <= HEADER_CHARS_MAX ? etag : undefined,
    contentType: headers['content-type']?.slice(0, HEADER_CHARS_MAX),
    filename: name?.slice(0, HEADER_CHARS_MAX) || undefined,
  };
}

/**
 * Reads a URL, through the guard at every hop, within bounds of size and time.
 * @param etag of what is there already
 * @returns null when that has not changed
 * @throws ParseError FETCH_FAILED, FORBIDDEN_ADDRESS, TOO_LARGE
 */
export async function fetchUrl(
  outbound: Pick<Outbound, 'request'>,
  from: string,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<Fetched | null> {
  const endsAt = performance.now() + TIMEOUT_MS;
  let url = from;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const answer = await outbound
      .request(url, {
        headers: {
          accept: 'text/html, text/markdown, text/plain, application/pdf, */*;q=0.5',
          'accept-encoding': 'identity',
          'user-agent': 'agent-fleet-platform',
          ...(etag !== undefined && { 'if-none-match': etag }),
        },
        timeoutMs: Math.max(1, endsAt - performance.now()),
        maxResponseBytes: LIMITS.knowledgeDocumentBytes,
        returnRedirects: true,
        signal,
      })
      .catch((error: unknown) => {
        throw explained(error);
      });
    if (answer.status === 304 && etag !== undefined) return null;
    if (answer.status < 300 || answer.status >= 400) return contentOf(url, answer);
    url = nextUrl(url, answer);
  }
  throw failed(`The URL redirects more than ${REDIRECTS_MAX} times.`);
}
