"""A reliability curve as an SVG of a few lines, readable on a light and on a dark page."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.quality.reliability import Bin

_SIDE, _LEFT, _TOP, _FOOT, _RIGHT = 360, 60, 44, 76, 20
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-size: 14px; font-weight: 600 }
  .frame { fill: #fff; stroke: #999 }
  .ideal { stroke: #999; stroke-dasharray: 4 4 }
  .curve { fill: none; stroke: #1f5fa8; stroke-width: 2 }
  .interval { stroke: #1f5fa8 }
  .point { fill: #1f5fa8 }
  .count { font-size: 10px; fill: #666; text-anchor: middle }
  .bar { fill: #c9d8ea }
"""


def draw_reliability(*, bins: Sequence[Bin], title: str) -> str:
    """Return an SVG: share true over mean confidence with Wilson intervals, the diagonal, and each bin's share of n."""
    parts = [*_frame(title), *_bars(bins), *_points(bins), _curve(bins)]
    width, height = _LEFT + _SIDE + _RIGHT, _TOP + _SIDE + _FOOT
    body = "\n".join(f"  {part}" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'  <style>{_STYLE}  </style>\n  <rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _x(value: float) -> float:
    return round(_LEFT + _SIDE * value, 1)


def _y(value: float) -> float:
    return round(_TOP + _SIDE * (1.0 - value), 1)


def _frame(title: str) -> list[str]:
    ticks = [step / 5 for step in range(6)]
    middle = _LEFT + _SIDE / 2
    return [
        f'<text class="title" x="{middle}" y="24" text-anchor="middle">{escape(title)}</text>',
        f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}"/>',
        f'<line class="ideal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>',
        *(f'<text x="{_x(tick)}" y="{_y(0) + 18}" text-anchor="middle">{tick:.1f}</text>' for tick in ticks),
        *(f'<text x="{_LEFT - 8}" y="{_y(tick) + 4}" text-anchor="end">{tick:.1f}</text>' for tick in ticks),
        f'<text x="{middle}" y="{_y(0) + 38}" text-anchor="middle">confidence (bars: samples, with n)</text>',
        f'<text transform="translate(18 {_TOP + _SIDE / 2}) rotate(-90)" text-anchor="middle">share true</text>',
    ]


def _bars(bins: Sequence[Bin]) -> list[str]:
    """Draw along the foot how many samples each bin has, its number below the axis."""
    total = sum(one.true.total for one in bins)
    drawn = []
    for one in bins:
        share = one.true.total / total
        width = _SIDE * (one.high - one.low) - 4
        size = f'y="{_y(share)}" width="{width:.1f}" height="{_y(0) - _y(share):.1f}"'
        drawn.append(f'<rect class="bar" x="{_x(one.low) + 2:.1f}" {size}/>')
        drawn.append(f'<text class="count" x="{_x((one.low + one.high) / 2)}" y="{_y(0) + 56}">{one.true.total}</text>')
    return drawn


def _points(bins: Sequence[Bin]) -> list[str]:
    drawn = []
    for one in bins:
        x, (low, high) = _x(one.mean_confidence), one.true.interval()
        drawn.append(f'<line class="interval" x1="{x}" y1="{_y(low)}" x2="{x}" y2="{_y(high)}"/>')
        drawn.append(f'<circle class="point" cx="{x}" cy="{_y(one.true.value)}" r="3.5"/>')
    return drawn


def _curve(bins: Sequence[Bin]) -> str:
    points = " ".join(f"{_x(one.mean_confidence)},{_y(one.true.value)}" for one in bins)
    return f'<polyline class="curve" points="{points}"/>'
