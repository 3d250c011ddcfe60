import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { userCacheDir } from '../../../runtime/cache-dir.js';
import { A2A_VERSIONS, environmentOf } from '../../../scripts/test/a2a-servers.mjs';
import { FleetClient } from '../../../sdk/index.js';
import { startProgram } from '../../sdk/python/programs.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { until } from '../../setup/until.js';
import { describeServer, type OfficialServer } from './official-server.js';

const PROGRAM = join(import.meta.dirname, 'python', 'server.py');
let client: FleetClient;

beforeAll(async () => {
  const { platform } = await sharedPlatform();
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = platform.devJson();
  client = new FleetClient({ url, clientId, clientSecret });
});
afterAll(() => client?.destroy());

/** A server on the SDK of a version, for one test. */
async function start(version: string, streaming: boolean): Promise<OfficialServer> {
  const python = join(environmentOf(version, userCacheDir()), 'bin', 'python');
  const program = startProgram(python, [PROGRAM, streaming ? 'streaming' : 'plain'], {});
  onTestFinished(async () => {
    program.child.kill('SIGKILL');
    await program.ended;
  });
  const address = () => /^listening (\S+)$/m.exec(program.output)?.[1];
  await until(() => address() !== undefined, { what: 'the server' }).catch((error) => {
    throw new Error(`${(error as Error).message}\n${program.output}`);
  });
  return { url: address() ?? '', canceled: () => program.output.match(/^canceled /gm)?.length ?? 0 };
}

for (const version of A2A_VERSIONS)
  describeServer(
    `a2a-sdk ${version} for Python`,
    () => client,
    (streaming) => start(version, streaming),
  );
