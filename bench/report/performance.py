"""Runs keyfold_bench and its companions and writes docs/performance.md: see scripts/performance."""
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys

import figures as made
from figures import BATCHES, DATABASES, ENGINES, Figures
from plot import line_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench"
BUILD = ROOT / "build" / "performance"


class Plan:
    """What is run, and where its results are."""

    def __init__(self, short):
        self.short = short
        self.small, self.main, self.large = (10_000, 100_000, 200_000) if short else (10_000, 1_000_000, 10_000_000)
        self.tables = sorted({1000, 10_000, 100_000, self.main, self.large})
        self.pages = BUILD / "short" if short else ROOT / "docs"
        self.results = BUILD / ("results-short" if short else "results")
        self.benchmarks = self.results / "benchmarks"
        self.series = self.results / "growth.csv"
        self.compile_time = self.results / "compile_time.json"
        self.machine_code = self.results / "machine_code.txt"
        self.machine = self.results / "machine.txt"

    def options(self, rows):
        """Small tables take short rounds, so they take more of them."""
        return ("--rounds=3", "--round=10000") if self.short else ("--rounds=45" if rows <= 10_000 else "--rounds=9",)

    def runs(self):
        """Name, rows of the table and filter of each process. A large table has a process for each batch size."""
        for rows in self.tables:
            if rows < self.large:
                yield f"upsert-{rows}", rows, "^upsert/"
                yield f"single-{rows}", rows, "^(insert|update)/"
        for batch in made.QUOTED_BATCHES:
            yield f"upsert-{self.large}-{batch}", self.large, f"^upsert/row:A/.*/batch:{batch}/"
            yield f"database-{self.large}-{batch}", self.large, f"^database/row:A/.*/batch:{batch}/"
        for rows in (self.small, self.main):
            yield f"database-{rows}", rows, "^database/"
            yield f"rerun-{rows}", rows, "^rerun/"
        yield "indexed", self.main, "^upsert_indexed/"
        yield "reads", self.main, "^(find|find_single|find_missing|scan)/"
        yield "append", self.main, "^append/"
        yield "condition", self.main, "^condition/"
        yield "parts", self.main, "^parts/"
        yield "memory", self.large, "^memory/row:A"
        yield "memory-strings", self.main, "^memory/row:B"
        for engine in ENGINES:
            yield f"growth-{engine}", self.large, f"^growth/{engine}/"


def tell(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal: *(\d+)", pathlib.Path("/proc/meminfo").read_text())
    compiler = run("g++", "--version", capture_output=True).stdout.splitlines()[0]
    version = run("g++", "-E", "-P", "-x", "c++", "-", capture_output=True,
                  input="#include <boost/version.hpp>\nBOOST_LIB_VERSION").stdout.split('"')[1]
    return (f"{cpu[1] if cpu else os.uname().machine}, {os.cpu_count()} cores, {int(memory[1]) / 2**20:.0f} GiB; "
            f"{compiler}, `-O3`, Boost {version.replace('_', '.')}; {datetime.date.today():%d %B %Y}, "
            f"load {os.getloadavg()[0]:.1f} at the beginning.")


def measure(plan):
    shutil.rmtree(plan.results, ignore_errors=True)
    plan.benchmarks.mkdir(parents=True)
    plan.machine.write_text(machine())
    for name, rows, selected in plan.runs():
        tell(name)
        run(BUILD / "build" / "bench" / "keyfold_bench", f"--rows={rows}", *plan.options(rows),
            f"--series={plan.series}", f"--benchmark_filter={selected}",
            f"--benchmark_out={plan.benchmarks / name}.json", "--benchmark_out_format=json",
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tell("machine code")
    compared = subprocess.run([sys.executable, BENCH / "machine_code" / "compare"], text=True, check=False,
                              stdout=subprocess.PIPE)
    plan.machine_code.write_text(compared.stdout)
    tell("compile time")
    run(sys.executable, BENCH / "compile_time" / "measure", f"--runs={1 if plan.short else 5}",
        f"--json={plan.compile_time}", stdout=subprocess.DEVNULL)
    tell("done")


def slowest_of_each(points, count=100):
    """The slowest of each so many commits, which a plot of all would hide."""
    step = max(1, len(points) // count)
    pieces = [points[i:i + step] for i in range(0, len(points), step)]
    return [(piece[-1][0], max(y for _, y in piece)) for piece in pieces]


def plot_upserts(figures, file, title, x_label, places):
    """`places`: x, rows of the table and size of the batch."""
    lines = {}
    for engine, text in ENGINES.items():
        points = [(x, figures.upsert("A", rows, batch, f"{engine}_ns")) for x, rows, batch in places]
        lines[text] = [point for point in points if point[1] is not None]
    line_plot(file, title, x_label, "ns for each source row", lines)


def plot_all(figures, directory):
    plan = figures.plan
    directory.mkdir(parents=True, exist_ok=True)
    plot_upserts(figures, directory / "cost-by-batch.svg",
                 f"Cost of a source row by size of batch (row A, {plan.main:,} rows)", "source rows in a batch",
                 [(batch, plan.main, batch) for batch in BATCHES])
    plot_upserts(figures, directory / "cost-by-table.svg",
                 "Cost of a source row by size of table (row A, batches of 1,000)", "rows in the table",
                 [(rows, rows, 1000) for rows in plan.tables])
    line_plot(directory / "commits-while-growing.svg",
              "The slowest commit of 1,000 rows while the table grows (row A)", "rows in the table",
              "ms, the slowest of each hundredth",
              {ENGINES[engine]: slowest_of_each(points) for engine, points in figures.growth().items()},
              log_x=False, markers=False)


def write(plan):
    figures = Figures(plan)
    goals = made.goal_table(figures)
    parts = {
        "machine": figures.machine,
        "goals": goals,
        "upserts": made.race_table(figures, "upsert", ENGINES, 2),
        "singles": made.single_table(figures),
        "databases": made.race_table(figures, "database", DATABASES, 3),
        "others": made.other_table(figures),
        "pairs": made.pair_table(figures),
        "machine code": f"```text\n{figures.machine_code}```",
        "compile time": made.compile_table(figures),
        "parts": made.part_table(figures),
    }
    page = (ROOT / "docs" / "performance.md").read_text()
    for name, text in parts.items():
        place = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = place.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
        if count != 1:
            sys.exit(f"docs/performance.md has {count} places for '{name}'")
    plan.pages.mkdir(parents=True, exist_ok=True)
    (plan.pages / "performance.md").write_text(page)
    plot_all(figures, plan.pages / "images")
    print(f"{goals}\nWritten: {plan.pages / 'performance.md'}")
    if figures.failures:
        sys.exit("\n".join(["These ended with an error:", *figures.failures]))


def main(arguments):
    plan = Plan(short="--short" in arguments)
    if "--write" not in arguments:
        measure(plan)
    write(plan)


if __name__ == "__main__":
    main(sys.argv[1:])
