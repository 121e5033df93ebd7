"""The OpenAPI schema: valid, without warnings, and with its problems declared."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("schema") / "schema.yml"
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(path))
    return yaml.safe_load(path.read_text())


def test_every_operation_declares_its_problems(schema: Any) -> None:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            declared = {
                status
                for status, response in operation["responses"].items()
                if "application/problem+json" in response.get("content", {})
            }
            assert {"401", "403", "429"} <= declared, f"{method} {path}"
            assert operation["summary"], f"{method} {path}"


def test_who_calls_too_often_is_told_when_to_come_back(schema: Any) -> None:
    """B9: on every route, with the rate's own header."""
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            assert "Retry-After" in operation["responses"]["429"]["headers"], f"{method} {path}"


def test_operations_are_named_by_what_they_do(schema: Any) -> None:
    named = {operation["operationId"] for operations in schema["paths"].values() for operation in operations.values()}
    assert {"recall", "list_beliefs", "read_belief", "store_episodes", "start_consolidation", "read_status"} <= named


def test_recall_says_that_it_answers_with_the_nearest_there_is(schema: Any) -> None:
    """B17: where a program's author reads it."""
    [recall] = [op for ops in schema["paths"].values() for op in ops.values() if op["operationId"] == "recall"]
    assert "however little they have to do with the query; `relevant` says" in recall["description"]
    assert schema["components"]["schemas"]["RecallRequest"]["properties"]["types"]["default"] == ["episode", "belief"]


def test_keys_are_bearer_tokens(schema: Any) -> None:
    assert schema["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/schema", "/api/docs"])
def test_schema_and_documents_are_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 200
