import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';

/** The search attributes of every workflow (architecture.md, decision 8). */
const FLEET_TENANT = defineSearchAttributeKey('FleetTenant', SearchAttributeType.KEYWORD);
const FLEET_AGENT_TYPE = defineSearchAttributeKey('FleetAgentType', SearchAttributeType.KEYWORD);
const FLEET_STATE = defineSearchAttributeKey('FleetState', SearchAttributeType.KEYWORD);
const FLEET_ERROR = defineSearchAttributeKey('FleetError', SearchAttributeType.KEYWORD);

/**
 * Shows an operator the state, the agent's type, what is waited for and the code of a failure. Only what is new is written: each
 * write is work of its own for the cluster's visibility store. A cluster without the search attributes gets the details only: their presence at the start says
 * which it is.
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
  const news = wanted.filter(({ key, value }) => shown.get(key) !== value);
  if (news.length > 0) upsertSearchAttributes(news);
}
