import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Delivery } from '../../contracts/api/deliveries.js';
import { deliveryQuery } from '../api/alerts.js';
import { call } from '../api/call.js';
import { Confirm } from '../parts/confirm.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Badge, Failed, Loading, Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago, Until } from '../parts/time.js';
import { answerText } from './search.js';

/** Sends a delivery again, once somebody has confirmed it. */
function Resend({ delivery: { delivery_id, event_type, url } }: { delivery: Delivery }) {
  const client = useQueryClient();
  const again = useMutation({
    mutationFn: () => call('/webhooks/redeliver', { delivery_id }),
    onSettled: () => client.invalidateQueries({ queryKey: ['deliveries'] }),
  });
  const body = { delivery_id };
  return (
    <div className="actions">
      <Confirm
        label="Send again"
        question={`Send ${event_type} again?`}
        disabled={again.isPending}
        curl={{ path: '/webhooks/redeliver', body }}
        onConfirm={() => again.mutate()}
      >
        <p>
          {url} gets the same body under the same delivery id, or the address that the channel has now. A receiver that
          has seen it should drop it.
        </p>
      </Confirm>
      <CopyCurl path="/webhooks/redeliver" body={body} />
      <Problem error={again.error} />
    </div>
  );
}

function Attempts({ attempts }: Pick<Delivery, 'attempts'>) {
  if (attempts.length === 0) return <p className="notice">No attempt has been made yet.</p>;
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">When</th>
          <th scope="col">Answer</th>
          <th scope="col">Took</th>
          <th scope="col">Error</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map((attempt, at) => (
          <tr key={attempt.at}>
            <th scope="row">{at + 1}</th>
            <td data-name="When">
              <Ago at={attempt.at} />
            </td>
            <td data-name="Answer">
              <Badge
                state={attempt.success ? 'succeeded' : 'failed'}
                label={String(attempt.status_code ?? (attempt.success ? 'accepted' : 'no answer'))}
              />
            </td>
            <td data-name="Took">{numberText(attempt.response_time_ms)} ms</td>
            <td data-name="Error">{attempt.error ? <code>{attempt.error}</code> : '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What happens to a delivery next, or has happened last. */
function Standing({ delivery: { status, attempts, receiver, next_attempt_at } }: { delivery: Delivery }) {
  const last = attempts.at(-1);
  if (receiver)
    return (
      <p className="notice wait">
        The receiver has not answered for <Ago at={receiver.since} short />. It gets probes only; the next one comes{' '}
        <Until at={receiver.next_probe_at} />.
      </p>
    );
  switch (status) {
    case 'pending':
      return (
        <p className="notice busy">
          {next_attempt_at ? (
            <>
              The next attempt comes <Until at={next_attempt_at} />.
            </>
          ) : (
            'It is about to be sent.'
          )}
        </p>
      );
    case 'failed':
      return (
        <p className="notice bad">
          Given up after {attempts.length} {attempts.length === 1 ? 'attempt' : 'attempts'}: {answerText(last)}. Mend
          the receiver, then send it again.
        </p>
      );
    case 'dropped':
      return (
        <p className="notice">
          Its rule, channel or push configuration was removed or switched off, or somebody canceled it.
        </p>
      );
    case 'delivered':
      return null;
    default:
      return status satisfies never;
  }
}

/** One delivery: where it went, what came back each time, and when it is tried next. */
export function DeliveryDetail(props: { deliveryId: string; nameOf: (ruleId: string | null) => string | undefined }) {
  const { deliveryId, nameOf } = props;
  const { data: delivery, error, refetch } = useQuery(deliveryQuery(deliveryId));
  if (error && delivery === undefined) return <Failed error={error} retry={() => void refetch()} />;
  if (delivery === undefined) return <Loading />;
  if (delivery === null)
    return (
      <div className="empty">
        <h2>This delivery is not here</h2>
        <p className="quiet">Deliveries are kept for seven days.</p>
      </div>
    );
  const { delivery_id, event_type, url, status, rule_id, task_id, config_id, attempts, created_at } = delivery;
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{event_type}</h2>
          <Badge state={status} label={status === 'pending' ? 'waiting' : status} />
        </div>
      </header>
      <Standing delivery={delivery} />
      {status !== 'pending' && <Resend delivery={delivery} />}
      <dl className="facts">
        <Fact name="To">{url}</Fact>
        {rule_id !== null && (
          <Fact name="Rule">
            <Link to="/alerts" search={{ tab: 'rules', rule: rule_id }}>
              {nameOf(rule_id) ?? rule_id}
            </Link>
          </Fact>
        )}
        {task_id !== undefined && (
          <Fact name="Push notification of">
            <Link to="/messages/$messageId" params={{ messageId: task_id }} search={{}}>
              {task_id}
            </Link>
          </Fact>
        )}
        {config_id !== undefined && <Fact name="Push configuration">{config_id}</Fact>}
        <Fact name="Made">
          <Ago at={created_at} />
        </Fact>
        <Fact name="Delivery">
          <Id id={delivery_id} />
        </Fact>
      </dl>
      <section>
        <h3>Attempts</h3>
        <Attempts attempts={attempts} />
        <p className="quiet small foot-note">
          The body is not shown: it may hold a token that answers a request. Of an answer only the status is kept.
        </p>
      </section>
      <footer className="quiet">
        <CopyCurl path="/webhooks/get_deliveries" body={{ delivery_id }} />
      </footer>
    </article>
  );
}
