"""The documentation as a site: Sphinx over the Markdown of this repository, as it stands."""
