"""Line plots as SVG, for docs/images: light background, labelled axes, names at the ends of the lines."""
import math
import pathlib
from html import escape

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666")  # told apart by the colour-blind, too
WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 120, 44, 58
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def number(value):
    """As a reader writes it: 0.5, 20, 10,000."""
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:g}"


class Axis:
    def __init__(self, values, log, begin, end):
        self.log, self.begin, self.end = log, begin, end
        low, high = min(values), max(values)
        if log:
            self.ticks = self.log_ticks(low, high)
        else:
            step = 10 ** math.floor(math.log10(high))
            step = next(s for s in (step / 5, step / 2, step, step * 2) if high / s <= 6)
            self.ticks = [i * step for i in range(math.ceil(high / step - 1e-9) + 1)]
        self.low, self.high = min(self.ticks[0], low), max(self.ticks[-1], high)

    @staticmethod
    def log_ticks(low, high):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1,) if math.log10(high / low) > 3 else (1, 2, 5)
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
        first = max((i for i, tick in enumerate(ticks) if tick <= low * (1 + 1e-9)), default=0)
        last = min((i for i, tick in enumerate(ticks) if tick >= high * (1 - 1e-9)), default=len(ticks) - 1)
        return ticks[first:last + 1]

    def place(self, value):
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def apart(places, distance):
    """Moves labels down until none covers another."""
    moved, last = {}, -math.inf
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        last = max(place, last + distance)
        moved[name] = last
    return moved


def line_plot(path, title, x_label, y_label, series, log_x=True, log_y=True, markers=True):
    """`series`: points (x, y) by name, in the order of the colours."""
    x = Axis([point[0] for points in series.values() for point in points], log_x, LEFT, WIDTH - RIGHT)
    y = Axis([point[1] for points in series.values() for point in points], log_y, HEIGHT - BOTTOM, TOP)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           f'{FONT} font-size="13" fill="#222222" role="img" aria-label="{escape(title)}">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>']
    for tick in y.ticks:
        at = y.place(tick)
        out += [f'<line x1="{LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#e0e0e0"/>',
                f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number(tick)}</text>']
    for tick in x.ticks:
        at = x.place(tick)
        out += [f'<line x1="{at:.1f}" y1="{bottom}" x2="{at:.1f}" y2="{bottom + 5}" stroke="#888888"/>',
                f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle">{number(tick)}</text>']
    out += [f'<line x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#888888"/>',
            f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
            f'<text transform="translate(18 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>']
    labels = apart({name: y.place(points[-1][1]) for name, points in series.items()}, 17)
    for colour, (name, points) in zip(COLOURS, series.items()):
        places = [(x.place(a), y.place(b)) for a, b in points]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if markers:
            out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
        out.append(f'<text x="{right + 10}" y="{labels[name] + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    pathlib.Path(path).write_text("\n".join([*out, "</svg>"]) + "\n")
