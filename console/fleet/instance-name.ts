/** The name of an instance. One that the platform made up is shortened: `inst_…7d8f08`. */
export const instanceName = (instanceId: string): string =>
  instanceId.replace(/^(inst_)[0-9a-f-]{30}([0-9a-f]{6})$/, '$1…$2');
