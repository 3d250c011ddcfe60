import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { userCacheDir } from '../../../runtime/cache-dir.js';
import { A2A_VERSIONS, environmentOf } from '../../../scripts/test/a2a-servers.mjs';
import { startProgram } from '../../sdk/python/programs.js';
import { fleetClient } from '../../setup/fleet-client.js';
import { sharedPlatform } from '../../setup/platform/shared-platform.js';
import { until } from '../../setup/until.js';
import { describeServer, type OfficialServer } from './official-server.js';

const PROGRAM = join(import.meta.dirname, 'python', 'server.py');
const client = fleetClient((await sharedPlatform()).platform);

/** A server on the SDK of a version, for one test. */
async function start(version: string, streaming: boolean): Promise<OfficialServer> {
  const python = join(environmentOf(version, userCacheDir()), 'bin', 'python');
  const program = startProgram(python, [PROGRAM, streaming ? 'streaming' : 'plain'], {});
  onTestFinished(async () => {
    program.child.kill('SIGKILL');
    await program.ended;
  });
  const address = () => /^listening (\S+)$/m.exec(program.output)?.[1];
  const url = await until(address, { what: 'the server' }).catch((error) => {
    throw new Error(`${(error as Error).message}\n${program.output}`);
  });
  return { url, canceled: () => program.output.match(/^canceled /gm)?.length ?? 0 };
}

for (const version of A2A_VERSIONS)
  describeServer(`a2a-sdk ${version} for Python`, client, (streaming) => start(version, streaming));
