"""Pictures of results: bars on a logarithmic scale, since what is compared differs by hundreds."""

import math
from html import escape

COLOURS = ["#4878a8", "#d08838", "#5c9e5c", "#a85870", "#8068a8"]
BAR, GAP, LEFT, WIDTH, TOP = 14, 12, 220, 900, 60


def bars(title, unit, groups, series):
    """`groups` are pairs of a name and a value for each of `series`, or none where there is none."""
    values = [value for _, row in groups for value in row if value]
    low = 10 ** math.floor(math.log10(min(values)))
    high = 10 ** math.ceil(math.log10(max(values)))
    scale = (WIDTH - LEFT - 80) / math.log10(high / low)

    def x(value):
        return LEFT + scale * math.log10(max(value, low) / low)

    height = TOP + sum(BAR * len(row) + GAP for _, row in groups) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             f'<text x="10" y="20" font-size="15">{escape(title)}</text>']
    for at, name in enumerate(series):
        parts.append(f'<rect x="{LEFT + 190 * at}" y="32" width="10" height="10" fill="{COLOURS[at]}"/>'
                     f'<text x="{LEFT + 190 * at + 14}" y="41">{escape(name)}</text>')
    mark = low
    while mark <= high:
        parts.append(f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP - 8}" y2="{height - 22}" stroke="#ddd"/>'
                     f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="middle">{mark:g} {escape(unit)}</text>')
        mark *= 10
    top = TOP
    for name, row in groups:
        middle = top + BAR * len(row) / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for at, value in enumerate(row):
            if value:
                parts.append(f'<rect x="{LEFT}" y="{top}" width="{x(value) - LEFT:.1f}" height="{BAR - 2}" fill="{COLOURS[at]}"/>'
                             f'<text x="{x(value) + 4:.1f}" y="{top + BAR - 4}" font-size="10">{value:,.0f}</text>')
            top += BAR
        top += GAP
    return "\n".join([*parts, "</svg>\n"])
