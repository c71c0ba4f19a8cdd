"""What keyfold_bench and its companions printed, and the goals and tables that are made of it."""
import csv
import json

ENGINES = {"keyfold": "keyfold", "flat_map": "flat_map loop", "multi_index": "MultiIndex loop"}
DATABASES = {"keyfold": "keyfold", "sqlite": "SQLite", "lmdb": "LMDB", "rocksdb": "RocksDB"}
BATCHES = (1, 10, 100, 1000, 10_000, 100_000)
QUOTED_BATCHES = (1, 1000, 100_000)


class Figures:
    """The counters of all benchmarks, and what was measured beside them."""

    def __init__(self, plan):
        self.plan, self.counters, self.failures = plan, {}, []
        for file in sorted(plan.benchmarks.glob("*.json")):
            for one in json.loads(file.read_text())["benchmarks"]:
                if one.get("error_occurred"):
                    self.failures.append(f"{one['name']}: {one['error_message']}")
                else:
                    self.counters[one["name"].split("/iterations:")[0]] = one
        self.compile_time = json.loads(plan.compile_time.read_text())
        self.machine_code = plan.machine_code.read_text()
        self.machine = plan.machine.read_text()

    def __call__(self, benchmark, counter):
        """None where it was not measured."""
        return self.counters.get(benchmark, {}).get(counter)

    def upsert(self, row, rows, batch, counter, race="upsert"):
        return self(f"{race}/row:{row}/table:{rows}/batch:{batch}", counter)

    def growth(self):
        """Rows and milliseconds of each commit, by engine."""
        points = {name: [] for name in ENGINES}
        with open(self.plan.series, newline="", encoding="utf-8") as file:
            for name, rows, nanoseconds in csv.reader(file):
                points[name].append((int(rows), float(nanoseconds) / 1e6))
        return points


def divide(a, b):
    return None if a is None or not b else a / b


def goals(figures):
    """Text, figure and limit of each goal."""
    main, small, large = figures.plan.main, figures.plan.small, figures.plan.large
    flat, multi = "keyfold/flat_map", "keyfold/multi_index"

    for row, batch, to, limit in (
            ("A", 1000, multi, 0.5), ("A", 1000, flat, 1.3), ("B", 1000, multi, 0.5), ("B", 1000, flat, 0.5),
            ("A", 100_000, multi, 0.55), ("A", 100_000, flat, 2.0), ("B", 100_000, multi, 1.1),
            ("B", 100_000, flat, 1.5), ("A", 1, multi, 1.2), ("B", 1, multi, 1.2)):
        to_text = ENGINES[to.split("/")[1]]
        yield f"upsert, row {row}, batches of {batch:,}, to the {to_text}", figures.upsert(row, main, batch, to), limit

    for row in "AB":
        yield (f"with one ordered index, row {row}, batches of 1,000, to the MultiIndex loop",
               figures.upsert(row, main, 1000, multi, "upsert_indexed"), 0.8)
    yield (f"slowest commit of 1,000 rows to the median one, growing to {large:,}",
           figures(f"growth/keyfold/row:A/table:{large}", "slowest/median"), 20)

    for row in "AB":
        yield (f"a batch again that changes nothing, row {row}, to its first run",
               figures.upsert(row, main, 1000, "again/first", "rerun"), 0.5)
    few, many = (figures.upsert("A", rows, 1000, "bytes", "rerun") for rows in (small, main))
    more = None if few is None or many is None else many - few
    yield f"bytes for each source row that this allocates more with {main:,} rows than with {small:,}", more, 1

    for row, rows in (("A", small), ("A", main), ("A", large), ("B", small), ("B", main)):
        ratios = [figures.upsert(row, rows, batch, "keyfold/sqlite", "database") for batch in QUOTED_BATCHES]
        worst = max((ratio for ratio in ratios if ratio is not None), default=None)
        yield f"to SQLite, row {row}, {rows:,} rows, the worst batch size", worst, 1 / 15

    for batch in (1000, 100_000):
        few, many = (figures.upsert("A", rows, batch, "keyfold_ns") for rows in (main, large))
        yield f"cost of a row, batches of {batch:,}, {large:,} rows to {main:,}", divide(many, few), 1.3
    yield f"memory, {large:,} rows, to the MultiIndex container", figures(f"memory/row:A/table:{large}", multi), 1.6

    for row in "AB":
        at = f"row:{row}/table:{main}"
        yield f"find by key, row {row}, to the index of the container", figures(f"find/{at}", multi), 1.1
        yield f"scan, row {row}, to a vector of pointers", figures(f"scan/{at}", "keyfold/pointers"), 1.2
        yield f"append of {main:,} rows, row {row}, to inserting them one by one", figures(f"append/{at}", multi), 0.8
    yield ("a merge with expressions, to one with lambdas",
           figures(f"condition/row:A/table:{main}", "expression/lambda"), 1.05)

    seconds = {name: one["seconds"] for name, one in figures.compile_time.items()}
    yield "compiling the core and one merge, s", seconds["merge"], 1.6
    yield "memory of that, MiB", figures.compile_time["merge"]["mebibytes"], 300
    yield "that above MultiIndex alone, s", seconds["merge"] - seconds["multi_index"], 0.6
    yield "a row of 50 columns above one of 5, s", seconds["merge_50_columns"] - seconds["merge"], 1.0


# --- Tables

def shown(value, digits=2):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.1f}"


def table(head, rows):
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def goal_table(figures):
    rows = []
    for text, figure, limit in goals(figures):
        outcome = "not measured" if figure is None else "met" if figure <= limit else "**missed**"
        digits = 3 if limit < 0.1 else 2
        rows.append([text, shown(figure, digits), shown(limit, digits), outcome])
    return table(["goal", "measured", "at most", ""], rows)


def race_table(figures, race, contenders, digits):
    """keyfold is the first of the contenders."""
    others = {name: text for name, text in contenders.items() if name != "keyfold"}
    rows = []
    for row in "AB":
        for size in figures.plan.tables:
            for batch in QUOTED_BATCHES:
                def counter(name, at=(row, size, batch)):
                    return figures.upsert(*at, name, race)
                if counter("keyfold_ns") is not None:
                    rows.append([f"{row}, {size:,}, {batch:,}",
                                 *(shown(counter(f"{name}_ns")) for name in contenders),
                                 *(shown(counter(f"keyfold/{name}"), digits) for name in others)])
    return table(["row, table, batch", *(f"{text}, ns" for text in contenders.values()),
                  *(f"keyfold / {text}" for text in others.values())], rows)


def other_table(figures):
    main = figures.plan.main
    rows = []
    for text, benchmark, rest in (("upsert with one ordered index, batches of 1,000", "upsert_indexed", "/batch:1000"),
                                  ("find by key, many", "find", ""),
                                  ("find by key, one at a time", "find_single", ""),
                                  ("find a key that is not there", "find_missing", ""),
                                  ("append to an empty table", "append", "")):
        for row in "AB":
            name = f"{benchmark}/row:{row}/table:{main}{rest}"
            rows.append([f"{text}, row {row}", *(shown(figures(name, f"{engine}_ns")) for engine in ENGINES),
                         shown(figures(name, "keyfold/multi_index"))])
    return table(["", *(f"{text}, ns" for text in ENGINES.values()), "keyfold / MultiIndex loop"], rows)


def single_table(figures):
    """Commits of one row, of one kind."""
    rows = []
    for race in ("insert", "update"):
        for row in "AB":
            for size in figures.plan.tables:
                def counter(name, at=(row, size, 1), race=race):
                    return figures.upsert(*at, name, race)
                if counter("keyfold_ns") is not None:
                    rows.append([f"{race}, {row}, {size:,}", *(shown(counter(f"{name}_ns")) for name in ENGINES),
                                 shown(counter("keyfold/multi_index"))])
    return table(["what, row, table", *(f"{text}, ns" for text in ENGINES.values()), "keyfold / MultiIndex loop"], rows)


def pair_table(figures):
    main, small, large = figures.plan.main, figures.plan.small, figures.plan.large
    lines = []
    for row in "AB":
        lines.append((f"scan, row {row}, ns a row: the table; a vector of pointers to its rows",
                      f"scan/row:{row}/table:{main}", "keyfold_ns", "pointers_ns"))
    for size in (small, main):
        again = f"rerun/row:A/table:{size}/batch:1000"
        lines += [(f"a batch of 1,000, row A, {size:,} rows, ns a row: first; again", again, "first_ns", "again_ns"),
                  ("what the second time allocates: blocks; bytes", again, "allocations", "bytes")]
    lines.append(("a merge, ns a row: with expressions; with lambdas",
                  f"condition/row:A/table:{main}", "expression_ns", "lambda_ns"))
    for row, size in (("A", large), ("B", main)):
        memory = f"memory/row:{row}/table:{size}"
        lines += [(f"bytes a row, row {row}, {size:,} rows: the table with its history; the container",
                   memory, "keyfold_bytes", "multi_index_bytes"),
                  ("the same: the flat_map; the container with a sequenced index, which keeps the order of insertion",
                   memory, "flat_map_bytes", "sequenced_bytes")]
    for engine, text in ENGINES.items():
        lines.append((f"commits of 1,000 rows, growing to {large:,}, µs, {text}: the median; the slowest",
                      f"growth/{engine}/row:A/table:{large}", "median_us", "slowest_us"))
    return table(["", "first", "second"], [[text, shown(figures(name, first)), shown(figures(name, second))]
                                           for text, name, first, second in lines])


def part_table(figures):
    main = figures.plan.main
    lines = (("hash of a 64-bit key", "hash/row:A", "keyfold_ns"),
             ("hash of a key of 16 characters", "hash/row:B", "keyfold_ns"),
             ("the same with boost::hash", "hash/row:B", "boost_ns"),
             (f"random access to one of {main:,} cache lines, alone", "access", "alone_ns"),
             ("the same, 16 under way", "access", "of_16_ns"),
             ("malloc of 64 bytes, touched for the first time", "allocate", "first_touch_ns"),
             ("the same, of memory that was used before", "allocate", "used_before_ns"),
             ("copy of a row A, in the cache", "copy/row:A", "copy_ns"),
             ("copy of a row B, in the cache", "copy/row:B", "copy_ns"),
             ("swap of two rows A", "copy/row:A", "swap_ns"),
             ("swap of two rows B", "copy/row:B", "swap_ns"),
             ("the time, from the system's clock", "clock", "system_ns"))
    return table(["part", "ns"], [[text, shown(figures(f"parts/{name}/table:{main}", counter))]
                                  for text, name, counter in lines])


def compile_table(figures):
    return table(["source file", "seconds", "MiB"], [[one["text"], f"{one['seconds']:.2f}", f"{one['mebibytes']:.0f}"]
                                                     for one in figures.compile_time.values()])
