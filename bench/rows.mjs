import { parseArgs } from 'node:util';
import { Harness, joinAgents } from './harness/harness.mjs';
import { measureSize } from './rows/size.mjs';

const { values: given } = parseArgs({ options: { size: { type: 'string' } } });
process.exitCode = await Harness.run(async (harness) => {
  const platform = await harness.platform('rows', { TENANT_MAX_IN_FLIGHT: '10000' });
  await joinAgents(platform, await harness.agents(platform));
  const { table } = await measureSize(platform, Number(given.size));
  process.stdout.write(`${table}\n`);
  return 0;
});
