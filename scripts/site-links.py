"""Fails where a page of a site links to a page or a file that the site does not have: site-links.py FOLDER"""

import html.parser
import pathlib
import sys


class Links(html.parser.HTMLParser):
    """Collects the addresses of a page that lead into the site."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value and "://" not in value and not value.startswith(("#", "mailto:", "data:")):
                self.found.append(value.split("#")[0])


def dead(site):
    for page in sorted(site.rglob("*.html")):
        if page.name in ("print.html", "toc.html", "404.html"):
            continue
        links = Links()
        links.feed(page.read_text())
        for link in links.found:
            if link and not (page.parent / link).exists():
                yield f"{page.relative_to(site)}: {link}"


faults = list(dead(pathlib.Path(sys.argv[1])))
if faults:
    sys.exit("\n".join(faults))
