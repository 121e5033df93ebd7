import re
from dataclasses import replace

import pytest

from memory.domain.policy import FORMER_NAMES, Policy, PolicyError, iter_settings, policy_from_environment
from memory.domain.policy_beliefs import ContradictionPolicy


def test_an_empty_environment_gives_the_defaults() -> None:
    """B24: without variables the defaults hold."""
    assert policy_from_environment({}) == Policy()


def test_every_setting_is_read_from_its_variable() -> None:
    """B24: each constant has a variable of its own, and its default written out gives the default policy."""
    environ = {setting.name: str(setting.default) for setting in iter_settings()}

    assert policy_from_environment(environ) == Policy()


def test_every_variable_has_a_name_of_its_own() -> None:
    """B24: names are written out in the annotations, and grep finds each of them."""
    names = [setting.name for setting in iter_settings()]

    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"ENGRAM_[A-Z0-9_]+", name)] == []


def test_a_variable_replaces_one_constant_only() -> None:
    policy = policy_from_environment({"ENGRAM_CONSOLIDATION_TRIGGER_EPISODES": "7"})

    assert policy.consolidation.trigger_episodes == 7
    assert policy.consolidation.every_hours == Policy().consolidation.every_hours


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_variable_is_unset(text: str) -> None:
    """B24: as all other variables are; under a former name, too."""
    assert policy_from_environment({"ENGRAM_BUDGET_CALL_SECONDS": text, "ENGRAM_RIVALS_BATCH": text}) == Policy()
    assert policy_from_environment({"ENGRAM_RIVALS_BATCH": "7", "ENGRAM_CONTRADICTION_BATCH": text}) == replace(
        Policy(), contradiction=ContradictionPolicy(batch=7)
    )


@pytest.mark.parametrize(("text", "expected"), [("off", False), ("0", False), ("TRUE", True), (" yes ", True)])
def test_a_switch_reads_common_spellings(text: str, expected: bool) -> None:
    policy = policy_from_environment({"ENGRAM_CONFIDENCE_INDEPENDENCE": text})

    assert policy.confidence.independence is expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ENGRAM_CONSOLIDATION_CLUSTER_SIMILARITY", "1.2"),
        ("ENGRAM_CONSOLIDATION_CLUSTER_SIMILARITY", "often"),
        ("ENGRAM_CONSOLIDATION_CLUSTERS", "0"),
        ("ENGRAM_CONSOLIDATION_CLUSTERS", "3.5"),
        ("ENGRAM_BUDGET_CALL_SECONDS", "inf"),
        ("ENGRAM_BUDGET_CALL_SECONDS", "nan"),
        ("ENGRAM_CONFIDENCE_INDEPENDENCE", "perhaps"),
    ],
)
def test_a_senseless_value_is_refused_with_its_name(name: str, text: str) -> None:
    """B24: a value that does not parse or is out of range stops the start with its name."""
    with pytest.raises(PolicyError, match=rf"^{name}: "):
        policy_from_environment({name: text})


def test_constants_that_contradict_each_other_are_refused_with_both_names() -> None:
    """B24: a lease that ends before it is renewed would let two workers do one step."""
    with pytest.raises(PolicyError, match=r"^ENGRAM_BUDGET_RENEW_SECONDS: .*ENGRAM_BUDGET_LEASE_SECONDS"):
        policy_from_environment({"ENGRAM_BUDGET_LEASE_SECONDS": "2"})


@pytest.mark.parametrize(("former", "name"), FORMER_NAMES.items())
def test_a_former_name_is_still_read(former: str, name: str) -> None:
    """B24: and beside its present name, where both say the same."""
    [setting] = [setting for setting in iter_settings() if setting.name == name]
    half = str(setting.kind(setting.default / 2))
    policy = policy_from_environment({former: half})

    assert getattr(getattr(policy, setting.stage), setting.constant) == setting.default / 2
    assert policy_from_environment({former: half, name: half}) == policy_from_environment({name: half}) == policy


def test_a_former_name_that_contradicts_the_present_one_is_refused_with_both() -> None:
    """B24: neither is taken for what was meant."""
    told = r"^ENGRAM_CONTRADICTION_BATCH: 20 contradicts ENGRAM_RIVALS_BATCH, .* which is 10"
    with pytest.raises(PolicyError, match=told):
        policy_from_environment({"ENGRAM_RIVALS_BATCH": "10", "ENGRAM_CONTRADICTION_BATCH": "20"})


def test_a_senseless_value_is_refused_with_the_name_that_it_was_set_by() -> None:
    with pytest.raises(PolicyError, match=r"^ENGRAM_RIVALS_BATCH: 'many' is not a whole number"):
        policy_from_environment({"ENGRAM_RIVALS_BATCH": "many"})


def test_every_setting_is_described_with_its_row() -> None:
    descriptions = [setting.description for setting in iter_settings()]

    assert all(description[0] in "BCDEFLPR" and ": " in description for description in descriptions)
    assert len(set(descriptions)) == len(descriptions)


def test_every_default_lies_in_its_own_range() -> None:
    outside = [s.name for s in iter_settings() if s.range and not s.range.low <= s.default <= s.range.high]

    assert outside == []
