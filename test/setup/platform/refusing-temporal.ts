import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { cleanUp } from '../clean-up.js';

const { NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants;

/**
 * A way to a Temporal server, by HTTP/2 without TLS, that refuses calls. Closed after the test or the file.
 * @param refusalOf the gRPC status with which a call of a method is refused; null passes it on
 * @returns its `127.0.0.1:port`
 */
export async function refusingTemporal(address: string, refusalOf: (method: string) => number | null): Promise<string> {
  const sessions = new Set<ClientHttp2Session | ServerHttp2Session>();
  const keep = <Session extends ClientHttp2Session | ServerHttp2Session>(session: Session): Session => {
    sessions.add(session);
    session.on('error', () => undefined); // 'close' follows
    session.once('close', () => sessions.delete(session));
    return session;
  };
  const server = createServer();
  server.on('session', (near) => {
    keep(near);
    const far = keep(connect(`http://${address}`));
    far.once('close', () => near.destroy());
    near.once('close', () => far.destroy());
    near.on('stream', (stream, headers) => {
      const status = refusalOf(methodOf(headers));
      if (status === null) passOn(stream, headers, far);
      else refuse(stream, status);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanUp(async () => {
    for (const session of sessions) session.destroy();
    await once(server.close(), 'close');
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function methodOf(headers: IncomingHttpHeaders): string {
  return headers[':path']?.split('/').at(-1) ?? '';
}

function refuse(stream: ServerHttp2Stream, status: number): void {
  stream.on('error', () => undefined); // 'close' follows
  const refusal = { 'grpc-status': status, 'grpc-message': 'refused by the test' };
  stream.resume().respond({ ':status': 200, 'content-type': 'application/grpc', ...refusal }, { endStream: true });
}

/** One call: what is asked goes there, what is answered comes back, trailers and all. */
function passOn(near: ServerHttp2Stream, headers: IncomingHttpHeaders, session: ClientHttp2Session): void {
  const far = session.request(headers as OutgoingHttpHeaders);
  near.pipe(far);
  // An error is followed by 'close'; what ends as it should has nothing to pass on.
  for (const [one, other] of [[near, far] as const, [far, near] as const]) {
    one.on('error', () => undefined);
    one.once('close', () => {
      if (one.rstCode !== NGHTTP2_NO_ERROR) other.close(one.rstCode);
    });
  }
  let trailers: OutgoingHttpHeaders = {};
  far.once('trailers', (received) => {
    trailers = received as OutgoingHttpHeaders;
  });
  far.once('response', (received, flags) => {
    const endStream = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    near.respond(received as OutgoingHttpHeaders, { endStream, waitForTrailers: !endStream });
    near.once('wantTrailers', () => near.sendTrailers(trailers));
    if (!endStream) far.pipe(near);
  });
}
