"""What goes with a message."""

from typing import Any

import pytest

from agent_fleet.client.send_options import SendOptions, message_params


def test_options_of_routing_go_into_the_metadata_of_the_wire_beside_the_callers_own() -> None:
    options: SendOptions = {
        "message_id": "m1",
        "agent_type": "shop",
        "skill_id": "sell",
        "args": {"item": 1},
        "deadline_ms": 5_000,
        "accepted_output_modes": ["text/plain"],
        "metadata": {"order": 7, "nested": {"agent_type": "kept"}},
    }
    assert message_params("hi", options, None) == {
        "message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
        "metadata": {
            "agent_type": "shop",
            "skill_id": "sell",
            "args": {"item": 1},
            "deadline_ms": 5_000,
            "accepted_output_modes": ["text/plain"],
            "order": 7,
            "nested": {"agent_type": "kept"},
        },
    }
    assert "metadata" not in message_params("hi", {}, None)


@pytest.mark.parametrize("name", ["agent_type", "skill_id", "context_id", "message_id", "hops", "blocking"])
def test_an_option_in_metadata_is_refused(name: str) -> None:
    misplaced: Any = {"metadata": {name: "shop"}}
    with pytest.raises(TypeError, match=rf"metadata\['{name}'\] is an option"):
        message_params("hi", misplaced, None)
