"""Routes of version 1."""

from django.urls import URLPattern, path

from memory.api.episodes import EpisodesView

urlpatterns: list[URLPattern] = [
    path("episodes", EpisodesView.as_view()),
]
