import { Handle, MarkerType, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react';
import { useMemo } from 'react';
import type { Plan, PlanStep } from '../../contracts/api/plans.js';
import { instanceName } from '../fleet/instance-name.js';
import { useMedia, WIDE } from '../parts/media.js';
import { placesOf, STEP_HEIGHT, STEP_WIDTH } from './graph-layout.js';
import { signOf, toneOf } from './step-state.js';

type StepNode = Node<{ step: PlanStep; isDown: boolean }, 'step'>;

function StepBox({ data: { step, isDown }, selected }: NodeProps<StepNode>) {
  const { step_id, state, agent_type, worker } = step;
  return (
    <div className={`step-box ${toneOf(state)}${selected ? ' selected' : ''}`}>
      <Handle type="target" position={isDown ? Position.Top : Position.Left} isConnectable={false} />
      <strong className="cut">
        {signOf(state)} {step_id}
      </strong>
      <span className="cut small quiet">
        {worker ? instanceName(worker.instance_id) : (agent_type ?? 'agent of the session')}
      </span>
      <Handle type="source" position={isDown ? Position.Bottom : Position.Right} isConnectable={false} />
    </div>
  );
}

const NODE_TYPES = { step: StepBox };
const HEIGHT_MAX_PX = 420;
/** Around the whole graph. */
const MARGIN_PX = 16;

/** The steps of a plan as a graph. For eyes and pointers alone: the list of steps says the same. */
export default function PlanGraph({
  plan,
  current,
  select,
}: {
  plan: Plan;
  current: string | undefined;
  select: (stepId: string) => void;
}) {
  const isDown = !useMedia(WIDE);
  const { steps } = plan;
  const shape = JSON.stringify(steps.map(({ step_id, depends_on }) => ({ step_id, depends_on })));
  const { places, width, height } = useMemo(() => placesOf(JSON.parse(shape), isDown ? 'TB' : 'LR'), [shape, isDown]);
  const nodes = steps.map(
    (step): StepNode => ({
      id: step.step_id,
      type: 'step',
      position: places.get(step.step_id) ?? { x: 0, y: 0 },
      data: { step, isDown },
      width: STEP_WIDTH,
      height: STEP_HEIGHT,
      selected: step.step_id === current,
    }),
  );
  const edges = steps.flatMap(({ step_id, depends_on, state }) =>
    depends_on.map((id) => ({
      id: `${id} ${step_id}`,
      source: id,
      target: step_id,
      animated: state === 'running',
      markerEnd: { type: MarkerType.ArrowClosed, color: 'var(--quiet)' },
    })),
  );
  // As high as the graph is once it fits into the width.
  const [wide, high] = [width + 2 * MARGIN_PX, height + 2 * MARGIN_PX];
  const style = { aspectRatio: `${wide} / ${high}`, maxHeight: Math.min(HEIGHT_MAX_PX, high) };
  return (
    <div className="plan-graph" role="img" aria-label={`The graph of ${steps.length} steps`} style={style}>
      <ReactFlow
        key={`${plan.plan_id} ${isDown}`}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onNodeClick={(_event, { id }) => select(id)}
        fitView
        fitViewOptions={{ padding: `${MARGIN_PX}px`, maxZoom: 1 }}
        minZoom={0.1}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        disableKeyboardA11y
        zoomOnScroll={false}
        preventScrolling={false}
        proOptions={{ hideAttribution: true }}
      />
    </div>
  );
}
