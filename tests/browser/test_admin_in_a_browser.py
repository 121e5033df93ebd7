"""A curator reads the admin in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Locator, Page, expect

from memory.models import Membership, MemoryFile, Role
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


def contrast(box: Locator) -> float:
    """Return the contrast of a box's letters to what lies behind them, as WCAG 2 has it: 4.5 can be read."""
    return float(
        box.evaluate(
            """box => {
                const pixels = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
                const parts = colour => {
                    pixels.clearRect(0, 0, 1, 1);
                    pixels.fillStyle = colour;
                    pixels.fillRect(0, 0, 1, 1);
                    return pixels.getImageData(0, 0, 1, 1).data;
                };
                let behind = box;
                while (parts(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
                const light = colour => {
                    const [red, green, blue] = [...parts(colour)].slice(0, 3).map(part => {
                        const share = part / 255;
                        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
                };
                const both = [light(getComputedStyle(box).color), light(getComputedStyle(behind).backgroundColor)];
                return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
            }"""
        )
    )


def has_a_border(box: Locator) -> bool:
    return bool(box.evaluate("box => parseFloat(getComputedStyle(box).borderTopWidth) > 0"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_reason_of_an_act_can_be_read(page: Page, ours: Scene, theme: str) -> None:
    """In the bar of acts and on the belief's page, in either theme: it has a box, and its letters stand out."""
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.goto(reverse("admin:memory_belief_changelist"))
    expect(page.locator("html.dark")).to_have_count(int(theme == "dark"))
    page.locator("#result_list input.action-select").first.check()
    in_the_bar = page.get_by_label("Why", exact=True)
    in_the_bar.fill("the mill is ours")
    assert (contrast(in_the_bar) >= 4.5, has_a_border(in_the_bar)) == (True, True)
    page.goto(reverse("admin:memory_belief_change", args=[quote(ours.belief.pk)]))
    on_the_page = page.locator("#id_reason")
    on_the_page.fill("the mill is ours")
    assert (contrast(on_the_page) >= 4.5, has_a_border(on_the_page)) == (True, True)


def test_forgetting_is_asked_about_first(page: Page, ours: Scene) -> None:
    """B19: with what would be gone, and not without a reason."""
    page.goto(reverse("admin:memory_belief_changelist"))
    page.get_by_role("row").filter(has_text=ours.belief.statement).locator("input.action-select").check()
    page.locator("select[name=action]").select_option("forget")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#content")).to_contain_text(ours.belief.statement)
    page.get_by_role("button", name="Forget for good").click()
    assert page.get_by_label("Why?").evaluate("box => box.validity.valueMissing")
    page.get_by_label("Why?").fill("it was never so")
    page.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("1 done.")).to_be_visible()
    ours.belief.refresh_from_db()
    assert (ours.belief.status, ours.belief.status_reason) == ("forgotten", "it was never so")


def test_ending_a_memory_file_is_asked_about_first(page: Page, ours: Scene, tmp_path: Path, settings: Any) -> None:
    """P11: from the navigation to the file and what stands in it; then an owner takes our section out."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    path = tmp_path / "MEMORY.md"
    path.write_text("<!-- ENGRAM:BELIEFS:BEGIN -->\n<!-- ENGRAM:BELIEFS:END -->\n# Mine\n")
    MemoryFile.objects.filter(pk=ours.file.pk).update(path=str(path))
    page.get_by_role("link", name="MEMORY.md files").first.click()
    expect(page.locator("#result_list")).not_to_contain_text("theirs")
    expect(page.locator("select[name=action]")).to_have_count(0)
    page.get_by_role("link", name=str(path)).click()
    expect(page.locator("#content")).to_contain_text(ours.belief.statement)
    Membership.objects.filter(user__username="curator").update(role=Role.OWNER)
    page.goto(reverse("admin:memory_memoryfile_changelist"))
    page.locator("#result_list input.action-select").check()
    page.locator("select[name=action]").select_option("disable")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#content")).to_contain_text(str(path))
    assert path.read_text().startswith("<!-- ENGRAM")
    page.get_by_role("button", name="Take out").click()
    expect(page.get_by_text("1 ended.")).to_be_visible()
    assert path.read_text() == "# Mine\n"


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
