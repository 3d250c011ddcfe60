"""The programs of the README that need no platform."""

from readme_programs import programs

from agent_fleet.hosted.hosted_app import HostedAgentApp


def test_the_test_of_the_readme_passes() -> None:
    [code] = [code for code in programs().values() if "agent_fleet.testing" in code]
    members: dict[str, object] = {"__name__": "readme"}
    exec(code, members)
    tests = [member for name, member in members.items() if name.startswith("test_") and callable(member)]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_hosted_agent_of_the_readme_is_an_app() -> None:
    members: dict[str, object] = {"__name__": "hosted_shop"}
    exec(programs()["hosted_shop"], members)
    assert isinstance(members["app"], HostedAgentApp)
