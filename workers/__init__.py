"""Celery: tasks that call services, the canvas that orders them, and what beat sends."""
