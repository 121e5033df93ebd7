"""Fit the profile of the embedding model that the settings name (B8a)."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings

from memory.domain.similarity import CalibrationError
from memory.llm.calibration import CalibrationReport, ErrorRates, calibrate, load_pairs
from memory.llm.onnx_models import ModelUnavailable
from memory.llm.profiles import store_profile
from memory.llm.registry import default_embedder
from memory.llm.types import CallFailed, WrongDimensions
from memory.management.command_line import ServiceCommand, fail_on


class Command(ServiceCommand):
    """Fit on half of the labelled pairs, print the errors on the other half, and keep the profile if asked to."""

    help = "Fit the embedding model's profile on half of the labelled pairs and print the errors on the other half."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take --json and --write."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--write", action="store_true", help="keep the profile beside those that ship")

    def handle(self, *args: Any, **options: Any) -> None:
        """Calibrate, print, and write on request."""
        with fail_on(CallFailed, WrongDimensions, ModelUnavailable, CalibrationError):
            report = calibrate(embedder=default_embedder(), pairs=load_pairs(), policy=settings.POLICY)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report) | {"profile": report.profile.to_dict()}))
        else:
            self._print(report)
        if options["write"]:
            self.stderr.write(f"wrote {store_profile(profile=report.profile)}")

    def _print(self, report: CalibrationReport) -> None:
        profile = report.profile
        self.stdout.write(f"{profile.model}: fitted on {report.fitted_pairs} pairs")
        for raw, reference in profile.anchors:
            self.stdout.write(f"  raw cosine {raw:+.3f} → {reference:+.3f}")
        self.stdout.write(f"  pairs on the wrong side of the related boundary: {profile.wrong_side_share:.1%}")
        limits = ", ".join(f"{name} {raw:.3f}" for name, raw in report.raw_thresholds.items())
        self.stdout.write(f"  thresholds as raw cosines: {limits}")
        self.stdout.write(f"on the other {report.held_out_pairs} pairs:")
        for name in ("pair_question", "threshold", "both"):
            self._print_rates(name.replace("_", " "), getattr(report, name))

    def _print_rates(self, name: str, rates: ErrorRates) -> None:
        by_label = ", ".join(f"{label} {share:.1%}" for label, share in rates.false_passes.items())
        self.stdout.write(
            f"  {name:<13}  false passes {rates.false_pass_share:.1%} ({by_label}), "
            f"false refusals {rates.false_refusal_share:.1%}"
        )
