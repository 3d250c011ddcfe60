import { createServer } from 'node:net';

/** Whether this process could listen on the TCP port of 127.0.0.1 at this moment. */
export function isPortFree(port: number): Promise<boolean> {
  return listenOnce(port).then(
    () => true,
    () => false,
  );
}

/**
 * A TCP port of 127.0.0.1 that is free at this moment: the remembered one when it still is, else one that the system picks.
 * Another program can take it before the caller binds it, so a caller retries with a new one.
 */
export async function freePort(remembered?: number): Promise<number> {
  if (remembered !== undefined && (await isPortFree(remembered))) return remembered;
  return listenOnce(0);
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      const bound = typeof address === 'object' && address ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}
