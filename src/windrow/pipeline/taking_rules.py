"""A pipeline's rules: from its own file or another, each mistake with the line it stands in."""

import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from windrow.errors import WindrowError
from windrow.pipeline.lines import Path
from windrow.pipeline.reading import Document
from windrow.rules.texts import read_rules

if TYPE_CHECKING:
    from windrow.pipeline.building import Pipeline


def take_rules(document: Document, pipeline: "Pipeline") -> None:
    """Put the rules into the pipeline; what is wrong with them is noted."""
    given = document.data.get("rules")
    if given is None:
        if "alerts" in document.data:
            document.say(("alerts",), "there are no rules that could tell something: [[rules]]")
        return
    if document.has_mistake(("rules",)):
        return
    if isinstance(given, dict):
        _from_elsewhere(document, pipeline, given)
    else:
        pipeline.rules = given
        pipeline.rule_places = [(("rules", place), "") for place in range(len(given))]
    _check_surroundings(document, pipeline)
    if not document.has_mistake(("rules",)):
        _check_each(document, pipeline)


def _from_elsewhere(document: Document, pipeline: "Pipeline", given: dict[str, Any]) -> None:
    from windrow.pipeline.building import RulesFrom

    place: Path = ("rules", "file")
    if "table" in given:
        if not pipeline.streaming:
            document.say(("rules", "table"), "rules from a table are for streams: name a file")
        pipeline.rules_from = RulesFrom(table=given["table"], reread=given.get("reread", "1s"))
        return
    if "reread" in given:
        document.say(("rules", "reread"), "a file is looked at before every batch: leave it out")
    path = document.local(given["file"])
    pipeline.rules_from = RulesFrom(file=path)
    try:
        text = FilePath(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        document.say(place, f"{path} cannot be read: {reason}")
        return
    found = read_rules(text)
    if not found:
        document.say(place, f"there are no rules in {path}: [[rule]] with name and when")
    for rule in found:
        where = f"{os.path.basename(path)}, line {rule.line}: "
        if rule.error is not None:
            document.say(place, where + rule.error)
            continue
        until = {} if rule.until is None else {"until": rule.until}
        pipeline.rules.append({"name": rule.name, "when": rule.when, **until})
        pipeline.rule_places.append((place, where))


def _check_surroundings(document: Document, pipeline: "Pipeline") -> None:
    if "alerts" not in document.data:
        document.say(
            ("rules",),
            "[alerts] is missing: say where what rules tell goes, with format and path",
        )
    elif pipeline.streaming and pipeline.longest is None:
        document.say(
            ("alerts",),
            'say how far back rules may look, for so long rows are kept: longest = "1d"',
        )
    elif not pipeline.streaming and pipeline.longest is not None:
        document.say(("alerts", "longest"), "for streams only: leave it out, or change mode")
    if pipeline.streaming and pipeline.alerts is not None and pipeline.alerts.format == "csv":
        document.say(
            ("alerts", "format"), "an event has a map of values, for which csv has no place: json"
        )
    if not pipeline.streaming and len(pipeline.features.key) != 1:
        document.say(("rules",), "rules need a key of one column: features.key = …")


def _check_each(document: Document, pipeline: "Pipeline") -> None:
    """Rules are read one at a time, so that each mistake has its place; of streams, later."""
    rules, names = pipeline.rules, set()
    for rule, (path, where) in zip(rules, pipeline.rule_places, strict=True):
        if rule["name"] in names:
            document.say(path, f"{where}a second rule is called {rule['name']!r}")
        names.add(rule["name"])
        if pipeline.streaming:
            continue
        pipeline.rules = [rule]
        try:
            pipeline.watching()
        except WindrowError as error:
            document.say(path, f"{where}{error}")
    pipeline.rules = rules


def columns_of(pipeline: "Pipeline", rule: dict[str, Any]) -> list[str]:
    """The columns that a rule looks at."""
    alone = type(pipeline)(**{**vars(pipeline), "rules": [rule]})
    return list(alone.watching().columns)
