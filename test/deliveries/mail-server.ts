import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { cleanUp } from '../setup/clean-up.js';

/** A mail as a server got it. */
export interface Mail {
  from: string;
  to: string[];
  /** Its headers and body. */
  text: string;
}

/** A mail server on 127.0.0.1 that keeps what it gets. */
export async function mailServer(options: SMTPServerOptions = {}) {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, session, callback) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom ? mailFrom.address : '';
        mails.push({ from, to: rcptTo.map(({ address }) => address), text: Buffer.concat(chunks).toString() });
        callback();
      });
    },
    ...options,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.server.address() as AddressInfo;
  return { mails, port };
}

/** The text of a mail without its quoted-printable breaks. */
export const textOf = (mail: Mail | undefined) => mail?.text.replaceAll('=\r\n', '').replaceAll('=3D', '=') ?? '';

/** A reply of an SMTP server that refuses a command. */
export const refusing = (code: number) => Object.assign(new Error('no'), { responseCode: code });
