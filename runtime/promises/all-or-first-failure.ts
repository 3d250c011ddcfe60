/** Waits for all of these, also where some fail. @throws the failure of the first of them that fails, in their order */
export async function allOrFirstFailure(works: Iterable<unknown>): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}
