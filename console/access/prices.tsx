import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { pricesQuery } from '../api/access.js';
import { type BodyOf, call } from '../api/call.js';
import { Confirm } from '../parts/confirm.js';
import { CopyCurl } from '../parts/copy.js';
import { Failed, Loading, Problem } from '../parts/states.js';

const EMPTY = { model: '', input: '', output: '' };

/** What models cost: set one, change one by its name, or remove one. */
export function Prices() {
  const client = useQueryClient();
  const { data: prices, error, refetch } = useQuery(pricesQuery);
  const [draft, setDraft] = useState(EMPTY);
  const set = useMutation({
    mutationFn: (body: BodyOf<'/tenants/set_prices'>) => call('/tenants/set_prices', body),
    onSuccess: (answer, { input_per_million }) => {
      client.setQueryData(pricesQuery.queryKey, answer.prices);
      if (input_per_million !== null) setDraft(EMPTY);
    },
  });
  if (error && !prices) return <Failed error={error} retry={() => void refetch()} />;
  if (!prices) return <Loading rows={1} />;
  const body = {
    model: draft.model.trim(),
    input_per_million: Number(draft.input),
    output_per_million: Number(draft.output),
  };
  const field = (name: keyof typeof EMPTY, label: string) => (
    <input
      required
      aria-label={label}
      placeholder={label}
      {...(name !== 'model' && { type: 'number', min: 0, step: 'any' })}
      value={draft[name]}
      onChange={({ target }) => setDraft({ ...draft, [name]: target.value })}
    />
  );
  return (
    <>
      {prices.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">Input</th>
              <th scope="col">Output</th>
              <th scope="col">
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {prices.map(({ model, input_per_million, output_per_million }) => {
              const none = { model, input_per_million: null, output_per_million: null };
              return (
                <tr key={model}>
                  <th scope="row">{model}</th>
                  <td data-name="Input">${input_per_million.toLocaleString('en')}</td>
                  <td data-name="Output">${output_per_million.toLocaleString('en')}</td>
                  <td>
                    <Confirm
                      label="Remove"
                      danger
                      question={`Remove the price of ${model}?`}
                      disabled={set.isPending}
                      curl={{ path: '/tenants/set_prices', body: none }}
                      onConfirm={() => set.mutate(none)}
                    >
                      <p>What it costs from now on is what agents report. What was added up keeps its cost.</p>
                    </Confirm>
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      <form
        className="price-form"
        onSubmit={(event) => {
          event.preventDefault();
          set.mutate(body);
        }}
      >
        {field('model', 'Model')}
        {field('input', 'Input, $')}
        {field('output', 'Output, $')}
        <button type="submit" disabled={set.isPending}>
          Set the price
        </button>
        <CopyCurl path="/tenants/set_prices" body={body} />
      </form>
      <Problem error={set.error} />
    </>
  );
}
