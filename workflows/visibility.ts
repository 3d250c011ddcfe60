import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';

/** The search attributes of the workflows (architecture.md, decision 10). */
const FLEET_TENANT = defineSearchAttributeKey('FleetTenant', SearchAttributeType.KEYWORD);
const FLEET_AGENT_TYPE = defineSearchAttributeKey('FleetAgentType', SearchAttributeType.KEYWORD);
const FLEET_STATE = defineSearchAttributeKey('FleetState', SearchAttributeType.KEYWORD);
const FLEET_ERROR = defineSearchAttributeKey('FleetError', SearchAttributeType.KEYWORD);

/**
 * Shows the state, the agent type, what the workflow waits for and the code of a failure in the Temporal UI. Search attributes are written
 * only when they change, because each write costs the cluster's visibility store. On a cluster without these attributes, which the starter
 * then did not set, only the details are written.
 */
export function show(state: string, agentType: string | null, details: string, errorCode?: string): void {
  setCurrentDetails(details);
  const shown = workflowInfo().typedSearchAttributes;
  if (shown.get(FLEET_TENANT) === undefined) return;
  const wanted = [
    { key: FLEET_STATE, value: state },
    ...(agentType === null ? [] : [{ key: FLEET_AGENT_TYPE, value: agentType }]),
    ...(errorCode === undefined ? [] : [{ key: FLEET_ERROR, value: errorCode }]),
  ];
  const changed = wanted.filter(({ key, value }) => shown.get(key) !== value);
  if (changed.length > 0) upsertSearchAttributes(changed);
}
