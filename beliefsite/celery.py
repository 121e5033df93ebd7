"""The Celery application: settings from Django, tasks from workers."""

import gc
import os
import sys
import threading
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init, worker_process_init, worker_ready
from django.core.exceptions import ImproperlyConfigured

from beliefsite.observability import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
# However Flower is started, it loads this application first, and then asks everyone for a name and password.
os.environ.setdefault("FLOWER_CONF", str(Path(__file__).with_name("flowerconfig.py")))

app = Celery("engram")
app.set_default()  # for every thread: a web server's threads send tasks, too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["workers"])
app.steps["consumer"].add("workers.health:Presence")


@app.on_after_finalize.connect
def set_schedule(sender: Celery, **_: Any) -> None:
    """Give beat its schedule, which reads the policy from Django's settings."""
    from workers.schedule import BEAT_SCHEDULE

    sender.conf.beat_schedule = BEAT_SCHEDULE


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Leave logging as the settings configure it; Celery would replace the root handlers."""


@worker_init.connect
@beat_init.connect
def start_services(**_: Any) -> None:
    """Start what is embedded before the first connection is tried."""
    import scipy.cluster.hierarchy  # noqa: F401  (as models are: clustering would load it in each child)

    from beliefsite.services import ensure_services
    from memory.checks import refuse_unfit_limits
    from memory.llm.registry import preload_models

    try:
        refuse_unfit_limits()
    except ImproperlyConfigured as error:  # a signal's exceptions are logged and forgotten; this is none
        sys.exit(f"Engram: {error}")
    ensure_services()
    preload_models()  # in the parent, so that its children share the memory
    gc.freeze()  # what is loaded by now stays: children need not go through it in every collection


@worker_process_init.connect
def trace_tasks(**_: Any) -> None:
    """Each child exports its own spans: the thread that does so is not forked along."""
    start_tracing(process="worker")


@beat_init.connect
def trace_schedule(**_: Any) -> None:
    """Let a sweep's trace begin where it was asked for."""
    start_tracing(process="beat")


@worker_init.connect
def share_ending(sender: Any, **_: Any) -> None:
    """Before children are forked: what tells them that the worker was asked to end."""
    from workers.health import share_shutdown_flag

    sender.page_of_ending = share_shutdown_flag()


@worker_ready.connect
def catch_up(**_: Any) -> None:
    """Ask for the cycles that are due since nothing ran; any number of workers may, and any one does it."""
    from django.conf import settings

    from workers.tasks import catch_up

    if settings.ENGRAM_CATCH_UP:
        catch_up.delay()


@worker_ready.connect
def note_endings(sender: Any, **_: Any) -> None:
    """After Celery has set its signal handlers, which is later than any of its signals but this one."""
    from workers.health import set_flag_on_signals

    if threading.current_thread() is threading.main_thread():  # elsewhere, as in tests, nobody may handle signals
        set_flag_on_signals(page=sender.controller.page_of_ending)
