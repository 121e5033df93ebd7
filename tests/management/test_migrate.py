"""`manage.py migrate` makes fewer models again between migrations, and goes by what Django would go by."""

from django.core.management import get_commands
from django.db import models
from django.db.migrations.operations import AddField, AddIndex, AlterModelTable
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from memory.management.commands.migrate import lean_reloads


def after(change: Operation) -> tuple[ProjectState, dict[str, type[models.Model]]]:
    """Return a state with an author and a book after a change, and the models that were there before it."""
    author = ModelState("shop", "Author", [("id", models.AutoField(primary_key=True)), ("name", models.TextField())])
    writer = models.ForeignKey("shop.Author", on_delete=models.CASCADE)
    book = ModelState("shop", "Book", [("id", models.AutoField(primary_key=True)), ("writer", writer)])
    state = ProjectState()
    for one in (author, book):
        state.add_model(one)
    before = {name: state.apps.get_model("shop", name) for name in ("author", "book")}
    with lean_reloads():
        change.state_forwards("shop", state)
    return state, before


def test_the_project_s_own_command_is_the_one_that_runs() -> None:
    assert get_commands()["migrate"] == "memory"


def test_an_index_leaves_the_neighbours_alone() -> None:
    state, before = after(AddIndex("author", models.Index(fields=["name"], name="by_name")))
    assert [index.name for index in state.apps.get_model("shop", "author")._meta.indexes] == ["by_name"]
    assert state.apps.get_model("shop", "book") is before["book"]
    assert state.is_delayed  # what runs code has all of them made again


def test_a_plain_column_leaves_the_neighbours_alone() -> None:
    state, before = after(AddField("author", "born", models.IntegerField(default=0)))
    assert state.apps.get_model("shop", "author")._meta.get_field("born")
    assert state.apps.get_model("shop", "book") is before["book"]


def test_a_relation_is_seen_by_the_neighbours() -> None:
    state, before = after(AddField("book", "editor", models.ForeignKey("shop.Author", models.CASCADE, "edited")))
    assert state.apps.get_model("shop", "author") is not before["author"]


def test_a_table_s_new_name_is_seen_by_the_neighbours() -> None:
    state, _ = after(AlterModelTable("author", "writers"))
    assert state.apps.get_model("shop", "book")._meta.get_field("writer").related_model._meta.db_table == "writers"
