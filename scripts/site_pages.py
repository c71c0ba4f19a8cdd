"""Hooks of mkdocs: pages for what lies outside docs/ (README, benchmarks, licence, each example beside its output), and
links that lead there."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "build" / "site-pages"

# Path in the repository -> page of the site. Those of docs/ keep their names.
PAGES = {
    "README.md": "readme.md",
    "bench/README.md": "benchmarks.md",
    "examples/data/mime-db/README.md": "examples/mime-db.md",
    "examples": "examples.md",
    "LICENSE": "licence.md",
}


def example_page(source):
    """The comment at the beginning of a program as text, the program, and its output; and the first sentence of the text."""
    code = source.read_text()
    comment = re.match(r"(?:// .*\n)+", code)
    text = re.sub(r"^// ?", "", comment.group(0), flags=re.M) if comment else ""
    page = f"# {source.stem}\n\n{text}\n```cpp\n{code[len(comment.group(0)) if comment else 0:]}```\n"
    expected = source.with_suffix(".expected")
    if expected.exists():
        page += f"\n## Output\n\n```text\n{expected.read_text()}```\n"
    picture = "images/" + source.stem.replace("_", "-") + ".svg"
    if (ROOT / "docs" / picture).exists():
        page += f"\n## Output\n\n![what it writes](../docs/{picture})\n"
    return page, re.match(r".*?(?:\.(?= )|$)", " ".join(text.split())).group(0)


def made_pages():
    """Path in the repository and text of each page that is not in docs/."""
    for name in ("README.md", "bench/README.md", "examples/data/mime-db/README.md"):
        yield name, (ROOT / name).read_text()
    yield "LICENSE", f"# Licence\n\n```text\n{(ROOT / 'LICENSE').read_text()}```\n"
    listing = "# Examples\n\nEach is a short program that the tests run; its output is compared.\n\n| | |\n|---|---|\n"
    for source in sorted((ROOT / "examples").glob("*.cpp")):
        page, summary = example_page(source)
        listing += f"| [{source.stem}]({source.name}) | {summary} |\n"
        yield f"examples/{source.name}", page
    yield "examples", listing


def title(page):
    """The header that a page of docs/ is about, if it is about one."""
    match = re.match(r"# (\w+\.hpp)\n", page.read_text())
    return match.group(1) if match else None


def site_path(path):
    """The page of a path of the repository, with an anchor where the path has one; None if there is no page."""
    path, _, anchor = path.partition("#")
    page = PAGES.get(path)
    if page is None and path.startswith("docs/"):
        page = path[len("docs/"):]
    match = re.fullmatch(r"(examples/\w+)\.(cpp|expected)", path)
    if match:
        page = match.group(1) + ".md"
        anchor = anchor or ("output" if match.group(2) == "expected" else "")
    return None if page is None else page + ("#" + anchor if anchor else "")


def on_config(config):
    """Adds the pages that are not in the list of pages to its end: those of headers, and others."""
    listed = re.findall(r"[\w-]+\.md", str(config["nav"]))
    pages = sorted(p for p in (ROOT / "docs").glob("*.md") if p.name not in listed)
    headers = next(entry["Headers"] for entry in config["nav"] if "Headers" in entry)
    headers += [{title(p): p.name} for p in pages if title(p)]
    others = [p.name for p in pages if not title(p)]
    if others:
        config["nav"].append({"More": others})
    return config


def on_files(files, config):
    for path, text in made_pages():
        name = site_path(path)
        target = MADE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        made = File(name, str(MADE), config["site_dir"], config["use_directory_urls"])
        made.repository_path = path + "/." if path == "examples" else path
        files.append(made)
    files.append(File("site.css", str(ROOT / "scripts"), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_markdown(markdown, page, config, files):
    here = getattr(page.file, "repository_path", "docs/" + page.file.src_path)

    def link(match):
        text, target = match.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if not (ROOT / path.partition("#")[0]).exists():
            raise SystemExit(f"{here}: there is no {target}")
        found = site_path(path)
        if found is None:
            return text  # a source file: the site has none
        return f"[{text}]({posixpath.relpath(found, posixpath.dirname(page.file.src_path) or '.')})"

    # What tells the tests about a block is of no use to readers.
    markdown = re.sub(r"^(```cpp\n)// (?:run|begin|part): \w+\n", r"\1", markdown, flags=re.M)
    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(b if b.startswith("```") else re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, b) for b in blocks)
