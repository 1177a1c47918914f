import re
from functools import cache
from pathlib import Path

from tests.tidy.tree import ROOT, text_of, tracked_files

LINK = r"(?<!!)\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)"


def anchors(text: str) -> set[str]:
    """The anchors that renderers generate for the headings of a Markdown text."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", without_code(text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(words.replace(" ", "-"))
    return found


@cache
def anchors_in(file: Path) -> set[str]:
    """Those of a file, to which many others link."""
    return anchors(file.read_text("utf-8"))


def without_code(text: str) -> str:
    """A Markdown text without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def broken_links(path: Path, text: str) -> list[str]:
    """Messages about broken relative links of a Markdown text."""
    problems = []
    for target, anchor in re.findall(LINK, without_code(text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        aim = (ROOT / path.parent / target).resolve() if target else ROOT / path
        if not aim.exists():
            problems.append(f"{path}: {target} does not exist")
        elif anchor and aim.suffix == ".md" and anchor not in anchors_in(aim):
            problems.append(f"{path}: {target or path.name} has no heading #{anchor}")
    return problems


def documents() -> list[Path]:
    """Every Markdown file."""
    return [path for path in tracked_files() if path.suffix == ".md"]


def test_documents_have_no_broken_links() -> None:
    """Every relative link names an existing file and a heading in it."""
    assert not [problem for path in documents() for problem in broken_links(path, text_of(path))]


def test_the_check_detects_violations() -> None:
    """A missing file and a missing heading are reported; existing ones and code blocks are not."""
    here = Path("README.md")
    assert broken_links(here, "[a](no-such-file.md)")
    assert broken_links(here, "# One\n[a](#two)") == ["README.md: README.md has no heading #two"]
    assert not broken_links(here, "[a](Makefile) [b](http://127.0.0.1)\n```\n[c](nowhere)\n```")
