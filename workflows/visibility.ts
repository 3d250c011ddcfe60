import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { SEARCH_ATTRIBUTES } from '../contracts/workflows.js';

/**
 * Shows the state, the agent type, what the workflow waits for and the code of a failure in the Temporal UI. Search attributes are written only
 * when they change, because each write costs the cluster's visibility store. On a cluster without these attributes the starter has set none,
 * and only the details are written.
 */
export function show(state: string, agentType: string | null, details: string, errorCode?: string): void {
  setCurrentDetails(details);
  const shown = workflowInfo().typedSearchAttributes;
  if (shown.get(SEARCH_ATTRIBUTES.tenant) === undefined) return;
  const wanted = [
    { key: SEARCH_ATTRIBUTES.state, value: state },
    ...(agentType === null ? [] : [{ key: SEARCH_ATTRIBUTES.agentType, value: agentType }]),
    ...(errorCode === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.error, value: errorCode }]),
  ];
  const changed = wanted.filter(({ key, value }) => shown.get(key) !== value);
  if (changed.length > 0) upsertSearchAttributes(changed);
}
