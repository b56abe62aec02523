"""Sphinx's settings. Pages are the repository's Markdown; the navigation is docs/README.md."""

from windrow.version import __version__

project = "windrow"
author = "the windrow authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",  # Markdown
    "sphinx.ext.autodoc",  # the API reference, from docstrings
    "sphinx.ext.linkcode",  # from a name to its source
    "sphinx_copybutton",  # copy an example without its prompts and answers
    "tools.site.navigation",
    "tools.site.sources",
]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "examples/README.md",
    "docs/**",
    "benchmarks/results/*.md",
    "api/*.rst",
]
exclude_patterns = ["src", "tests", "tools", "examples/*.py", "benchmarks/*.py"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 4  # the anchors that links in Markdown files use
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # annotations name private types and other packages
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = True
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 125

pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = "windrow"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_search_summary = False  # it would fetch pages, which browsers refuse to files
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of a name is, as a link from a page of the reference."""
    from tools.site.sources import link_to_name

    return link_to_name(info["module"], info["fullname"]) if domain == "py" else None
