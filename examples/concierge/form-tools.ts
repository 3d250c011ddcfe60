import { type Arguments, type ConciergeTool, textArgument } from './tool.js';

const NO_ARGUMENTS = { type: 'object', properties: {} };

/** Asks with a form and plans a trip with its values. */
export const planTrip: ConciergeTool = {
  name: 'plan_trip',
  description: 'Plans a trip. A human fills in a form with the destination, the nights and the budget first.',
  parameters: NO_ARGUMENTS,
  question: () => ({
    kind: 'form',
    title: 'Where to?',
    prompt: 'Tell me about the trip and I will draw up a plan.',
    schema: {
      type: 'object',
      properties: {
        destination: { type: 'string', title: 'Destination', minLength: 1, maxLength: 100 },
        nights: { type: 'integer', title: 'Nights', minimum: 1, maximum: 14 },
        budget: { type: 'number', title: 'Budget per night', minimum: 0 },
      },
      required: ['destination', 'nights'],
    },
    tool: 'plan_trip',
  }),
  run: async (_args, _task, data) => itinerary(data),
};

/** Asks with a form and confirms a simulated order. */
export const placeOrder: ConciergeTool = {
  name: 'place_order',
  description:
    'Places a (simulated) order. A human fills in a form with the item, the quantity and the delivery first.',
  parameters: NO_ARGUMENTS,
  question: () => ({
    kind: 'form',
    title: 'Your order',
    prompt: 'What shall I order?',
    schema: {
      type: 'object',
      properties: {
        item: { type: 'string', title: 'Item', minLength: 1, maxLength: 100 },
        quantity: { type: 'integer', title: 'Quantity', minimum: 1, maximum: 100 },
        delivery: { type: 'string', title: 'Delivery', enum: ['standard', 'express'] },
      },
      required: ['item', 'quantity'],
    },
    tool: 'place_order',
  }),
  run: async (_args, _task, data) => {
    const delivery = textArgument(data, 'delivery') || 'standard';
    return `Ordered (simulated): ${textArgument(data, 'quantity')} × ${textArgument(data, 'item')}, ${delivery} delivery.`;
  },
};

const DAYS = [
  'arrive, and walk through the old town',
  'the museums',
  'a day in the country',
  'the market, and cook what you found',
];

function itinerary(data: Arguments): string {
  const nights = Math.min(14, Math.max(1, Math.trunc(Number(data.nights)) || 1));
  const budget = Number(data.budget);
  const days = Array.from({ length: nights }, (_, day) => `Day ${day + 1}: ${DAYS[day % DAYS.length]}`);
  const cost = budget > 0 ? [`Budget: ${nights} × ${budget} = ${nights * budget}`] : [];
  return [`${textArgument(data, 'destination')}, ${nights} night${nights > 1 ? 's' : ''}`, ...days, ...cost].join('\n');
}
