/** The oldest server in a Temporal CLI that the platform is tested with: minor version of 1.x. */
const SERVER_MINOR_MIN = 29;
const WANTED = `a Temporal server of 1.${SERVER_MINOR_MIN} or a later 1.x`;

/**
 * What `temporal --version` says of the program. The version of the CLI itself is unknown where Go has built it, so the server's counts.
 * @returns null: it is supported. `foreign`: it is another program
 */
export function versionProblem(output: string): { foreign: boolean; text: string } | null {
  if (!output.startsWith('temporal version')) return { foreign: true, text: 'is not the Temporal CLI' };
  const [, version = 'unknown', major, minor] = /\(Server ((\d+)\.(\d+)[\w.-]*)/.exec(output) ?? [];
  if (major === '1' && Number(minor) >= SERVER_MINOR_MIN) return null;
  return { foreign: false, text: `has the server ${version}, and the platform needs ${WANTED}` };
}
