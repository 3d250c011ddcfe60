import { Graph, layout } from '@dagrejs/dagre';
import type { PlanStep } from '../../contracts/api/plans.js';

/** The size of a step in the graph. */
export const [STEP_WIDTH, STEP_HEIGHT] = [136, 46];

/** Where the steps of a plan are drawn: each to the right of the steps that it depends on, or below them. Left and top corners. */
export function placesOf(
  steps: readonly Pick<PlanStep, 'step_id' | 'depends_on'>[],
  direction: 'LR' | 'TB',
): { places: Map<string, { x: number; y: number }>; width: number; height: number } {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, nodesep: 16, ranksep: 30 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { step_id } of steps) graph.setNode(step_id, { width: STEP_WIDTH, height: STEP_HEIGHT });
  for (const { step_id, depends_on } of steps) for (const id of depends_on) graph.setEdge(id, step_id);
  layout(graph);
  const places = new Map(
    steps.map(({ step_id }) => {
      const { x = 0, y = 0 } = graph.node(step_id);
      return [step_id, { x: x - STEP_WIDTH / 2, y: y - STEP_HEIGHT / 2 }];
    }),
  );
  const { width = 0, height = 0 } = graph.graph();
  return { places, width, height };
}
