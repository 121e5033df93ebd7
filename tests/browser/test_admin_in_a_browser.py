"""A curator reads the admin in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from memory.models import Role
from tests.admin.scene import Scene, add_episodes, person, set_scene

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PASSWORD = "a long pass phrase"


@pytest.fixture
def ours() -> Scene:
    """A workspace with a curator who can sign in, and a belief with evidence of its own."""
    scene = set_scene("ours")
    user = person("curator", workspace=scene.workspace, role=Role.CURATOR)
    user.set_password(PASSWORD)
    user.save()
    add_episodes(scene.belief, 3)
    return scene


@pytest.fixture
def theirs() -> Scene:
    """A workspace that the curator does not belong to."""
    return set_scene("theirs")


@pytest.fixture
def page(ours: Scene, theirs: Scene, live_server: Any, browser: Browser) -> Iterator[Page]:
    """Sign the curator in by the form."""
    page = browser.new_page(base_url=live_server.url, viewport={"width": 1440, "height": 1000})
    page.goto(reverse("admin:index"))
    page.get_by_label("Username").fill("curator")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_title("Your workspaces | Engram")
    yield page
    page.close()


def test_a_curator_reads_why_a_belief_is_held(page: Page, ours: Scene) -> None:
    """From the list to the belief: statement, confidence with its interval, evidence; B4."""
    page.get_by_role("link", name="Beliefs").first.click()
    expect(page.locator("#result_list")).not_to_contain_text("theirs")
    page.get_by_role("link", name=ours.belief.statement).click()
    main = page.locator("#content")
    expect(main).to_contain_text(ours.belief.statement)
    expect(main).to_contain_text("90% between 0.34 and 0.92")
    expect(main.locator("#evidence-group")).to_contain_text("An episode of ours.")
    expect(main.locator("#evidence-group")).to_contain_text("A reason of ours.")


def test_a_curator_pins_a_belief(page: Page, ours: Scene) -> None:
    page.goto(reverse("admin:memory_belief_change", args=[quote(ours.belief.pk)]))
    page.get_by_label("Is pinned").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    ours.belief.refresh_from_db()
    assert ours.belief.is_pinned


def test_a_foreign_belief_does_not_open_by_its_address(page: Page, theirs: Scene) -> None:
    page.goto(reverse("admin:memory_belief_change", args=[quote(theirs.belief.pk)]))
    expect(page.locator("body")).not_to_contain_text("of theirs")
    expect(page).to_have_url(page.url.split("/admin/")[0] + reverse("admin:index"))


def test_signing_in_needs_the_password(live_server: Any, browser: Browser, ours: Scene) -> None:
    page = browser.new_page(base_url=live_server.url)
    page.goto(reverse("admin:index"))
    page.get_by_label("Username").fill("curator")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{live_server.url}{reverse('admin:login')}?next={reverse('admin:index')}")
    assert User.objects.get(username="curator").last_login is None
