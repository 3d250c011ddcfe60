import type { FleetClient } from '../../sdk/index.js';
import { createFleetReport } from './fleet-report.js';
import { placeOrder, planTrip } from './form-tools.js';
import { publishNotice } from './notice-tool.js';
import { createServiceTools } from './service-tools.js';
import { calculate, wait } from './simple-tools.js';
import type { ConciergeTool } from './tool.js';

/** All tools of the concierge. */
export function createTools(client: FleetClient): ConciergeTool[] {
  return [calculate, createFleetReport(client), ...createServiceTools(), planTrip, placeOrder, publishNotice, wait];
}
