"""Numbers in answers, as people read them."""

from typing import Any

from rest_framework import serializers

_DIGITS = 4


class RoundedField(serializers.FloatField):
    """A number as people read it: further digits say nothing."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), _DIGITS)
