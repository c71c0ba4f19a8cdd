"""Runs keyfold_bench and its companions and writes docs/performance.md: see scripts/performance."""
import csv
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from plot import line_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "performance"
ENGINES = {"keyfold": "keyfold", "flat_map": "flat_map loop", "multi_index": "MultiIndex loop"}
DATABASES = {"keyfold": "keyfold", "sqlite": "SQLite", "lmdb": "LMDB", "rocksdb": "RocksDB"}


class Plan:
    """What is run, and where its results are."""

    def __init__(self, short):
        self.short = short
        self.small, self.main, self.large = (10_000, 100_000, 200_000) if short else (10_000, 1_000_000, 10_000_000)
        self.tables = sorted({1000, 10_000, 100_000, self.main, self.large})
        self.results = BUILD / ("results-short" if short else "results")
        self.pages = BUILD / "short" if short else ROOT / "docs"
        self.benchmarks = self.results / "benchmarks"
        self.series = self.results / "growth.csv"
        self.compile_time = self.results / "compile_time.json"
        self.machine_code = self.results / "machine_code.txt"
        self.machine = self.results / "machine.txt"

    def rounds(self, rows):
        return 3 if self.short else 45 if rows <= 10_000 else 9

    def runs(self):
        """Name, rows of the table and filter of each process. A large table has a process for each batch size."""
        for rows in self.tables:
            if rows < self.large:
                yield f"upsert-{rows}", rows, "^upsert/"
        for batch in (1, 1000, 100_000):
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


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def measure(plan):
    shutil.rmtree(plan.results, ignore_errors=True)
    plan.benchmarks.mkdir(parents=True)
    plan.machine.write_text(machine())
    for name, rows, selected in plan.runs():
        tell(name)
        run(BUILD / "build" / "bench" / "keyfold_bench", f"--rows={rows}", f"--rounds={plan.rounds(rows)}",
            f"--series={plan.series}", f"--benchmark_filter={selected}", f"--benchmark_out={plan.benchmarks / name}.json",
            "--benchmark_out_format=json", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tell("machine code, compile time")
    compared = subprocess.run([sys.executable, ROOT / "bench" / "machine_code" / "compare"], text=True,
                              stdout=subprocess.PIPE, check=False)
    plan.machine_code.write_text(compared.stdout)
    run(sys.executable, ROOT / "bench" / "compile_time" / "measure", f"--runs={1 if plan.short else 5}",
        f"--json={plan.compile_time}", stdout=subprocess.DEVNULL)
    tell("done")


def tell(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal: *(\d+)", pathlib.Path("/proc/meminfo").read_text())
    compiler = run("g++", "--version", capture_output=True).stdout.splitlines()[0]
    boost = run("g++", "-E", "-P", "-x", "c++", "-", capture_output=True,
                input="#include <boost/version.hpp>\nBOOST_LIB_VERSION").stdout.split('"')[1].replace("_", ".")
    return (f"{cpu[1] if cpu else os.uname().machine}, {os.cpu_count()} cores, {int(memory[1]) / 2**20:.0f} GiB; "
            f"{compiler}, `-O3`, Boost {boost}; {datetime.date.today():%d %B %Y}, load {os.getloadavg()[0]:.1f} at the beginning.")


class Figures:
    """The counters of all benchmarks."""

    def __init__(self, plan):
        self.counters, self.failures = {}, []
        for file in sorted(plan.benchmarks.glob("*.json")):
            for one in json.loads(file.read_text())["benchmarks"]:
                if one.get("error_occurred"):
                    self.failures.append(f"{one['name']}: {one['error_message']}")
                else:
                    self.counters[one["name"].split("/iterations:")[0]] = one
        self.compile_time = json.loads(plan.compile_time.read_text())
        self.machine_code = plan.machine_code.read_text()
        self.machine = plan.machine.read_text()
        self.growth = {name: [] for name in ENGINES}
        with open(plan.series, newline="", encoding="utf-8") as file:
            for name, rows, nanoseconds in csv.reader(file):
                self.growth[name].append((int(rows), float(nanoseconds) / 1e6))

    def __call__(self, benchmark, counter):
        """None where it was not measured."""
        return self.counters.get(benchmark, {}).get(counter)

    def upsert(self, row, table, batch, counter, race="upsert"):
        return self(f"{race}/row:{row}/table:{table}/batch:{batch}", counter)


def divide(a, b):
    return None if a is None or not b else a / b


def goals(plan, figures):
    """Text, figure and limit of each goal."""
    flat, multi = "keyfold/flat_map", "keyfold/multi_index"
    main, large = plan.main, plan.large
    for row, batch, to, limit in (("A", 1000, multi, 0.5), ("A", 1000, flat, 1.3), ("B", 1000, multi, 0.5),
                                  ("B", 1000, flat, 0.5), ("A", 100_000, multi, 0.55), ("A", 100_000, flat, 2.0),
                                  ("B", 100_000, multi, 1.1), ("B", 100_000, flat, 1.5), ("A", 1, multi, 1.2),
                                  ("B", 1, multi, 1.2)):
        yield (f"upsert, row {row}, batches of {batch:,}, to the {ENGINES[to.split('/')[1]]}",
               figures.upsert(row, main, batch, to), limit)
    yield (f"slowest commit of 1,000 to the median one, growing to {large:,} rows",
           figures(f"growth/keyfold/row:A/table:{large}", "slowest/median"), 20)
    for row in "AB":
        yield (f"the same with one ordered index, row {row}, batches of 1,000, to the MultiIndex loop",
               figures.upsert(row, main, 1000, multi, "upsert_indexed"), 0.8)
    for row in "AB":
        yield f"a batch again that changes nothing, row {row}, to its first run", figures.upsert(
            row, main, 1000, "again/first", "rerun"), 0.5
    yield (f"bytes that allocates, {main:,} rows to {plan.small:,}",
           divide(figures.upsert("A", main, 1000, "bytes", "rerun"), figures.upsert("A", plan.small, 1000, "bytes", "rerun")), 1.1)
    for row, table in (("A", plan.small), ("A", main), ("A", large), ("B", plan.small), ("B", main)):
        ratios = [figures.upsert(row, table, batch, "keyfold/sqlite", "database") for batch in (1, 1000, 100_000)]
        known = [ratio for ratio in ratios if ratio is not None]
        yield f"to SQLite, row {row}, {table:,} rows, the worst batch size", max(known, default=None), 1 / 15
    for batch in (1000, 100_000):
        yield (f"cost of a row, batches of {batch:,}, {large:,} rows to {main:,}",
               divide(figures.upsert("A", large, batch, "keyfold_ns"), figures.upsert("A", main, batch, "keyfold_ns")), 1.3)
    yield f"memory, {large:,} rows, to the MultiIndex container", figures(f"memory/row:A/table:{large}", multi), 1.6
    for row in "AB":
        yield f"find by key, row {row}, to the index of the container", figures(f"find/row:{row}/table:{main}", multi), 1.1
    for row in "AB":
        yield f"scan, row {row}, to a vector of pointers", figures(f"scan/row:{row}/table:{main}", "keyfold/pointers"), 1.2
    yield "a merge with expressions, to one with lambdas", figures(f"condition/row:A/table:{main}", "expression/lambda"), 1.05
    for row in "AB":
        yield (f"append of {main:,} rows, row {row}, to inserting them into the container",
               figures(f"append/row:{row}/table:{main}", multi), 0.8)
    merge, alone = figures.compile_time["merge"], figures.compile_time["multi_index"]
    yield "compile time of the core and one merge, s", merge["seconds"], 1.6
    yield "memory of that, MiB", merge["mebibytes"], 300
    yield "more than MultiIndex alone, s", merge["seconds"] - alone["seconds"], 0.6
    yield "50 columns instead of 5, more by s", figures.compile_time["merge_50_columns"]["seconds"] - merge["seconds"], 1.0


def shown(value, digits=2):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.1f}"


def table(head, rows):
    numbers = ["---" if i == 0 else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(line) + " |" for line in ([*head], numbers, *rows))


def goal_table(plan, figures):
    rows = []
    for text, figure, limit in goals(plan, figures):
        outcome = "not measured" if figure is None else "met" if figure <= limit else "**missed**"
        rows.append([text, shown(figure, 3 if limit < 0.1 else 2), f"{limit:.3f}" if limit < 0.1 else shown(limit), outcome])
    return table(["goal", "measured", "at most", ""], rows)


def race_table(plan, figures, race, contenders, ratios, batches):
    rows = []
    for row in "AB":
        for size in plan.tables:
            for batch in batches:
                name = f"{race}/row:{row}/table:{size}/batch:{batch}"
                if figures(name, "keyfold_ns") is not None:
                    rows.append([f"{row}, {size:,}, {batch:,}", *(shown(figures(name, f"{one}_ns")) for one in contenders),
                                 *(shown(figures(name, f"keyfold/{one}"), 3 if race == "database" else 2) for one in ratios)])
    return table(["row, table, batch", *(f"{text}, ns" for text in contenders.values()),
                  *(f"keyfold / {contenders[one]}" for one in ratios)], rows)


def other_table(plan, figures):
    rows = []
    for text, name in (("with one ordered index, batches of 1,000", "upsert_indexed/row:{}/table:{}/batch:1000"),
                       ("find by key, many", "find/row:{}/table:{}"), ("find by key, one at a time", "find_single/row:{}/table:{}"),
                       ("find a key that is missing", "find_missing/row:{}/table:{}"), ("append to an empty table", "append/row:{}/table:{}")):
        for row in "AB":
            at = name.format(row, plan.main)
            rows.append([f"{text}, row {row}", *(shown(figures(at, f"{one}_ns")) for one in ENGINES),
                         shown(figures(at, "keyfold/multi_index"))])
    return table(["ns for each row", "keyfold", "flat_map", "MultiIndex", "keyfold / MultiIndex"], rows)


def single_table(plan, figures):
    rows = []
    for row in "AB":
        scan = f"scan/row:{row}/table:{plan.main}"
        rows.append([f"scan, row {row}: the table; a vector of pointers to its rows, ns a row",
                     shown(figures(scan, "keyfold_ns")), shown(figures(scan, "pointers_ns"))])
    for size in (plan.small, plan.main):
        again = f"rerun/row:A/table:{size}/batch:1000"
        rows.append([f"a batch of 1,000, {size:,} rows, row A: first; again, ns a row", shown(figures(again, "first_ns")), shown(figures(again, "again_ns"))])
        rows.append(["what it allocates the second time: blocks; bytes", shown(figures(again, "allocations")), shown(figures(again, "bytes"))])
    condition = f"condition/row:A/table:{plan.main}"
    rows.append(["a merge with expressions; with lambdas, ns a row", shown(figures(condition, "expression_ns")), shown(figures(condition, "lambda_ns"))])
    for row, size in (("A", plan.large), ("B", plan.main)):
        memory = f"memory/row:{row}/table:{size}"
        rows.append([f"memory, row {row}, {size:,} rows: keyfold with history; the container, bytes a row",
                     shown(figures(memory, "keyfold_bytes")), shown(figures(memory, "multi_index_bytes"))])
        rows.append(["the same; the container with a sequenced index, which keeps the order of insertion, too",
                     shown(figures(memory, "keyfold_bytes")), shown(figures(memory, "sequenced_bytes"))])
    for engine, text in ENGINES.items():
        growth = f"growth/{engine}/row:A/table:{plan.large}"
        rows.append([f"growing to {plan.large:,} rows, {text}: median commit of 1,000; slowest, µs",
                     shown(figures(growth, "median_us")), shown(figures(growth, "slowest_us"))])
    return table(["", "first", "second"], rows)


def part_table(plan, figures):
    rows = []
    for text, name, counter in (
            ("hash of a 64-bit key", f"hash/row:A/table:{plan.main}", "keyfold_ns"),
            ("hash of a key of 16 characters", f"hash/row:B/table:{plan.main}", "keyfold_ns"),
            ("the same with boost::hash", f"hash/row:B/table:{plan.main}", "boost_ns"),
            (f"random access to one of {plan.main:,} cache lines, alone", f"access/table:{plan.main}", "alone_ns"),
            ("the same, 16 under way", f"access/table:{plan.main}", "of_16_ns"),
            ("malloc of 64 bytes, touched for the first time", f"allocate/table:{plan.main}", "first_touch_ns"),
            ("the same of memory that was used before", f"allocate/table:{plan.main}", "used_before_ns"),
            ("copy of row A, in the cache", f"copy/row:A/table:{plan.main}", "copy_ns"),
            ("copy of row B, in the cache", f"copy/row:B/table:{plan.main}", "copy_ns"),
            ("swap of two rows A", f"copy/row:A/table:{plan.main}", "swap_ns"),
            ("swap of two rows B", f"copy/row:B/table:{plan.main}", "swap_ns")):
        rows.append([text, shown(figures(f"parts/{name}", counter))])
    return table(["part", "ns"], rows)


def compile_table(figures):
    texts = {"multi_index": "Boost.MultiIndex alone, a container and a loop", "include": "`keyfold.hpp` included, not used",
             "merge": "a table and one merge, row of 5 columns", "merge_50_columns": "the same, row of 50 columns",
             "print": "the merge, printed", "store": "the merge, in a store"}
    rows = [[texts[name], f"{one['seconds']:.2f}", f"{one['mebibytes']:.0f}"] for name, one in figures.compile_time.items()]
    return table(["source file", "seconds", "MiB"], rows)


def slowest_of_each(points, count=100):
    """The slowest of each so many commits, which a plot of all would hide."""
    step = max(1, len(points) // count)
    return [(points[min(i + step, len(points)) - 1][0], max(y for _, y in points[i:i + step]))
            for i in range(0, len(points), step)]


def plots(plan, figures, directory):
    directory.mkdir(parents=True, exist_ok=True)

    def points(engine, names):
        found = ((x, figures(name, f"{engine}_ns")) for x, name in names)
        return [(x, y) for x, y in found if y is not None]

    batches = [(batch, f"upsert/row:A/table:{plan.main}/batch:{batch}") for batch in (1, 10, 100, 1000, 10_000, 100_000)]
    tables = [(rows, f"upsert/row:A/table:{rows}/batch:1000") for rows in plan.tables]
    for file, title, label, names in (
            ("cost-by-batch", f"Cost of a source row by size of batch (row A, {plan.main:,} rows)", "source rows in a batch", batches),
            ("cost-by-table", "Cost of a source row by size of table (row A, batches of 1,000)", "rows in the table", tables)):
        line_plot(directory / f"{file}.svg", title, label, "ns for each source row",
                  {text: points(engine, names) for engine, text in ENGINES.items()})
    line_plot(directory / "commits-while-growing.svg", "The slowest commit of 1,000 rows, while the table grows (row A)",
              "rows in the table", "ms, the slowest of each hundredth",
              {ENGINES[engine]: slowest_of_each(times) for engine, times in figures.growth.items() if times},
              log_x=False, markers=False)


def write(plan):
    figures = Figures(plan)
    all_batches = (1, 1000, 100_000)
    parts = {
        "machine": figures.machine,
        "goals": goal_table(plan, figures),
        "upserts": race_table(plan, figures, "upsert", ENGINES, ("flat_map", "multi_index"), all_batches),
        "databases": race_table(plan, figures, "database", DATABASES, ("sqlite", "lmdb", "rocksdb"), all_batches),
        "others": other_table(plan, figures),
        "single": single_table(plan, figures),
        "machine code": f"```text\n{figures.machine_code}```",
        "compile time": compile_table(figures),
        "parts": part_table(plan, figures),
    }
    page = (ROOT / "docs" / "performance.md").read_text()
    for name, text in parts.items():
        page, count = re.subn(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", page, flags=re.DOTALL)
        if count != 1:
            sys.exit(f"docs/performance.md has {count} places for '{name}'")
    plan.pages.mkdir(parents=True, exist_ok=True)
    (plan.pages / "performance.md").write_text(page)
    plots(plan, figures, plan.pages / "images")
    print(parts["goals"])
    print(f"Written: {plan.pages / 'performance.md'}")
    if figures.failures:
        sys.exit("\n".join(["These ended with an error:", *figures.failures]))


def main(arguments):
    plan = Plan(short="--short" in arguments)
    if "--write" not in arguments:
        measure(plan)
    write(plan)


if __name__ == "__main__":
    main(sys.argv[1:])
