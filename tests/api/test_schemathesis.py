"""Requests made from the OpenAPI schema: none fails on our side, and every answer is as the schema says."""

from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from beliefsite.wsgi import application
from memory.models import Workspace
from tests import factories
from tests.recall.memories import believed, remembered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]


@schemathesis.serializer("application/x-ndjson")
def as_lines(context: Any, value: Any) -> bytes:
    """Send a file as it was made up."""
    return str(value).encode("utf-8", "replace")


schema = schemathesis.openapi.from_wsgi("/api/schema?format=json", application)


@pytest.fixture
def key(transactional_db: None) -> str:
    workspace: Workspace = factories.workspace()
    remembered("Mara drinks tea.", workspace=workspace, project=factories.project(workspace=workspace, slug="0"))
    believed("Mara prefers tea.", workspace=workspace)
    return factories.key(workspace=workspace)[1]


@schema.parametrize()
@hypothesis.settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_answers_are_as_the_schema_says(case: Any, key: str) -> None:
    response = case.call(headers={"Authorization": f"Bearer {key}"})
    case.validate_response(response, checks=CHECKS)
