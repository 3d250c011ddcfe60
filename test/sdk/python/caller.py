"""A caller on the Python SDK for tests on a platform: ends with an error when something is not as it should be."""

import asyncio

from agent_fleet import ApiError, FleetClient, SyncFleetClient, text_of, text_stream


async def confirm_all(client: FleetClient) -> None:
    """A human who agrees to everything."""
    while True:
        for message in (await client.messages.pending())["messages"]:
            await client.messages.resolve(message["message_id"], "confirmed")
        await asyncio.sleep(0.1)


def call_without_asyncio() -> None:
    with SyncFleetClient() as client:
        assert text_of(client.send("hello", agent_type="python")) == "You said: hello"
        assert list(client.stream_text("2", agent_type="python", skill_id="count")) == ["1 ", "2 "]
        assert client.sessions.get(page_size=1)["ok"] is True


async def main() -> None:
    async with FleetClient() as client:
        session = await client.sessions.init(agent_type="python")
        task = await client.send("hello", context_id=session["session_id"], message_id="m-1")
        assert [text_of(artifact["parts"]) for artifact in task["artifacts"]] == ["You said: hello"], task
        again = await client.send("hello", context_id=session["session_id"], message_id="m-1")
        assert again["id"] == task["id"], again

        pieces = []
        async for event in client.stream("3", agent_type="python", skill_id="count"):
            if event["kind"] == "artifact-update":
                pieces.append(text_of(event["artifact"]["parts"]))
        assert pieces == ["1 ", "2 ", "3 "], pieces
        followed = [event async for event in client.tasks.resubscribe(task["id"])]
        assert followed[-1]["kind"] in ("task", "status-update"), followed

        waiting = await client.send("tea", agent_type="python", skill_id="order")
        assert (await client.messages.wait_for(waiting["id"]))["state"] == "input-required"
        assert [message["message_id"] for message in (await client.messages.pending())["messages"]] == [waiting["id"]]
        await client.messages.resolve(waiting["id"], "declined")
        ended = await client.messages.wait_for(waiting["id"], until="terminal")
        assert ended["assistant_output"] == "Nothing was ordered.", ended
        decided = await client.messages.get_approvals(message_id=waiting["id"])
        assert decided["approvals"][0]["resolution"] == "declined", decided
        exported = [approval async for approval in client.messages.export_approvals()]
        assert waiting["id"] in [approval["message_id"] for approval in exported], exported

        human = asyncio.create_task(confirm_all(client))
        answer = await client.send("tea", agent_type="python", skill_id="order", through_questions=True)
        assert text_of(answer) == "Ordered tea, wrapped.", answer
        events = client.stream("tea", agent_type="python", skill_id="order", through_questions=True)
        assert [piece async for piece in text_stream(events)] == ["Ordered tea, wrapped."]
        human.cancel()
        await asyncio.to_thread(call_without_asyncio)

        plan = await client.plans.create(
            session["session_id"],
            description="a plan",
            steps=[{"description": "say it", "agent_type": "python", "message": [{"kind": "text", "text": "hello"}]}],
            auto_approve=True,
        )
        assert (await client.plans.wait_for(plan["plan"]["plan_id"]))["state"] == "completed"

        await client.knowledge.new("handbook", display_name="Handbook")
        await client.knowledge.ingest(
            "handbook", documents=[{"content": "Tea is served at four.", "title": "Tea"}], wait=True
        )
        found = await client.knowledge.query("When is tea served?", namespace="handbook")
        assert "four" in found["results"][0]["text"], found

        records = (await client.telemetry.get_events(session_id=session["session_id"]))["events"]
        oldest = records[-1]["event_id"]
        async for record in client.telemetry.stream_events(session_id=session["session_id"], last_event_id=oldest):
            assert record["session_id"] == session["session_id"], record
            break
        while (await client.platform.health())["status"] != "ok":  # noqa: ASYNC110 - it waits for nothing of this process
            await asyncio.sleep(0.1)  # the check of a server took too long
        assert (await client.post("/sessions/get_by_id", {"session_id": session["session_id"]}))["ok"] is True
        try:
            await client.sessions.get_by_id("ses_unknown")
        except ApiError as error:
            assert (error.status, error.code) == (404, "NOT_FOUND"), error
            assert error.request_id, error
    print("all is well")


asyncio.run(main())
