/** Whom the messages of a queue wait for, as `queue_target` in db/functions/routing/queues.sql says it; '' where any will do. */
export function queueTarget(queue: string): { instance_id: string; agent_type: string; skill_id: string } {
  const [instance_id = '', agent_type = '', ...skill] = queue.split('/');
  return { instance_id, agent_type, skill_id: skill.join('/') };
}
