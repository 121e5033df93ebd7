"""Only what can hold nothing but one of a few words is not searched for secrets."""

from rest_framework import serializers

from memory.api.requests import StrictSerializer, _choice_field_names


class _Said(StrictSerializer):
    mode = serializers.ChoiceField(["fast", "slow"])
    kinds = serializers.ListField(child=serializers.ChoiceField(["fact", "rule"]))
    reason = serializers.CharField()
    reasons = serializers.ListField(child=serializers.CharField())
    named = serializers.DictField(child=serializers.ChoiceField(["fact", "rule"]))  # whose names are anybody's


def test_choices_and_lists_of_them_are_closed() -> None:
    assert _choice_field_names(_Said) == {"mode", "kinds"}
