# branches.py DIRECTORY PERCENT FILE...
# Adds up the branches in FILEs, each what `llvm-cov show -show-branches=count` says of one program, for the headers below
# DIRECTORY. Prints what was never taken, and the share of each header; fails if that of all is below PERCENT.
import collections
import re
import sys

root, required = sys.argv[1].rstrip("/") + "/", float(sys.argv[2])
taken = collections.defaultdict(lambda: [False, False])  # (header, line, column): taken when true, when false
branch = re.compile(r"Branch \((\d+):(\d+)\): \[True: ([^,]+), False: ([^\]]+)\]")

for name in sys.argv[3:]:
    header = None
    for line in open(name, encoding="utf-8", errors="replace"):
        if line.startswith("/"):
            path = line.rstrip(":\n")
            header = path[len(root):] if path.startswith(root) else None
        elif header is not None and (found := branch.search(line)):
            sides = taken[header, int(found[1]), int(found[2])]
            for side in (0, 1):
                sides[side] |= found[3 + side].strip() != "0"

headers = collections.defaultdict(lambda: [0, 0])
for (header, line, column), sides in sorted(taken.items()):
    headers[header][0] += sum(sides)
    headers[header][1] += 2
    for side, word in zip(sides, ("true", "false")):
        if not side:
            print(f"{header}:{line}:{column}: never {word}")
for header, (hit, count) in sorted(headers.items()):
    print(f"{100 * hit / count:6.1f} % of {count:4} branches  {header}")
hit, count = (sum(column) for column in zip(*headers.values()))
print(f"{100 * hit / count:6.1f} % of {count:4} branches")
sys.exit(0 if 100 * hit >= required * count else 1)
