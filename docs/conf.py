"""Sphinx: pages in Markdown, mathematics as MathML, a reference made from the code; nothing comes from elsewhere."""

import sys
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math import latex2mathml

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

project = "Epsilometer"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Epsilometer"
html_static_path = ["_static"]
html_css_files = ["epsilometer.css"]
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"  # browsers know it: no script, no address


def _inline(self, node):
    self.body.append(latex2mathml.tex2mathml(node.astext()))
    raise SkipNode


def _block(self, node):
    self.body.append(f'<div class="math">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def _write_reference(_app):
    """Only what has changed is written, so that Sphinx reads only that again."""
    place = HERE / "api"
    place.mkdir(exist_ok=True)
    for name, text in reference.api_pages().items():
        page = place / name
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", _write_reference)
