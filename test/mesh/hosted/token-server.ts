import { httpServer, type LoopbackServer } from '../../runtime/loopback-server.js';

/** One request for a token. */
interface TokenRequest {
  authorization: string | undefined;
  form: Record<string, string>;
}

export interface TokenServer extends LoopbackServer {
  received: TokenRequest[];
}

interface TokenReply {
  status?: number;
  body: object | string;
}

/**
 * A token server of OAuth on loopback.
 * @param reply what it answers to its nth request, from 0
 */
export async function tokenServer(reply: (n: number) => TokenReply | Promise<TokenReply>): Promise<TokenServer> {
  const received: TokenRequest[] = [];
  const server = await httpServer(async (request, response) => {
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(await request.toArray()).toString()));
    received.push({ authorization: request.headers.authorization, form });
    const { status = 200, body } = await reply(received.length - 1);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return Object.assign(server, { received });
}

/** An answer with a token. @param expires_in null: it does not say how long the token is good */
export function granted(token: string, expires_in: number | null = 3_600): TokenReply {
  return { body: { access_token: token, token_type: 'Bearer', ...(expires_in !== null && { expires_in }) } };
}
