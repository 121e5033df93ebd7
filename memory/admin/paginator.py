"""Pages of tables that are too long to count."""

from typing import TYPE_CHECKING

from django.core.paginator import Paginator

if TYPE_CHECKING:
    PagesWithoutCount = Paginator
else:
    from unfold.paginator import InfinitePaginator as PagesWithoutCount

__all__ = ["PagesWithoutCount"]
