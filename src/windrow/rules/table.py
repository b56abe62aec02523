"""The rules in force, arranged by what each waits for.

A *simple* rule is one threshold: it fires exactly while an operand passes a number. A *guarded*
rule can only start while a threshold is passed. Both are kept in the order of their thresholds
(``rules.thresholds``), so that few of thousands are looked at. An *unguarded* one always is.
"""

from collections import Counter

from windrow.errors import BadSpecification
from windrow.rules.expression import Expression, Operand
from windrow.rules.instant import Instant
from windrow.rules.key_state import KeyState
from windrow.rules.rule import Rule
from windrow.rules.thresholds import Thresholds

Groups = dict[tuple[Operand, str], Thresholds]


class Table:
    """Rules by name, by number, and by what they wait for."""

    def __init__(self) -> None:
        self.by_name: dict[str, Rule] = {}
        self.by_number: dict[int, Rule] = {}
        self.simple: Groups = {}
        self.guarded: Groups = {}
        self.unguarded: dict[int, Rule] = {}
        self.users: Counter[int] = Counter()
        """How many rules are about each windowed aggregate."""
        self.slots = 0
        """How many groups there are: keys keep a value for each that is simple."""
        self.numbers = 0
        """How many rules there ever were."""

    def new(self, name: str, when: Expression, until: Expression | None) -> Rule:
        """A rule with a number of its own, which is not in force yet."""
        self.numbers += 1
        return Rule(name, self.numbers - 1, when, until)

    def add(self, rule: Rule) -> Thresholds | None:
        """Put a rule into force, among those that wait for the same operand, if it waits."""
        self.by_name[rule.name] = self.by_number[rule.number] = rule
        self.users.update(rule.features)
        guard = rule.guard
        if guard is None:
            self.unguarded[rule.number] = rule
            return None
        groups = self._groups(rule)
        name = (guard.operand, guard.sign)
        if name not in groups:
            groups[name] = Thresholds(*name, self.slots)
            self.slots += 1
        groups[name].add(guard.number, rule.number)
        return groups[name]

    def remove(self, name: str) -> tuple[Rule, int | None]:
        """Forget a rule; and the slot of its group, where it was the last one in it."""
        rule = self.by_name.pop(name, None)
        if rule is None:
            raise BadSpecification(f"there is no rule {name!r}")
        del self.by_number[rule.number]
        self.users.subtract(rule.features)
        guard = rule.guard
        if guard is None:
            del self.unguarded[rule.number]
            return rule, None
        groups, waits = self._groups(rule), (guard.operand, guard.sign)
        groups[waits].remove(guard.number, rule.number)
        if len(groups[waits]):
            return rule, None
        gone = groups.pop(waits).slot
        self.slots -= 1
        for group in (*self.simple.values(), *self.guarded.values()):
            group.slot -= group.slot > gone
        return rule, gone

    def restore(self, rules: list[tuple[Rule, int | None]], slots: int, numbers: int) -> None:
        """Take over another table's rules, with the slots of the groups they are in."""
        waiting = [(slot, rule) for rule, slot in rules if slot is not None]
        for slot, rule in sorted(waiting, key=lambda pair: pair[0]):  # as they were made
            guard = rule.guard
            assert guard is not None
            name = (guard.operand, guard.sign)
            self._groups(rule).setdefault(name, Thresholds(*name, slot))
        for rule, _ in rules:
            self.add(rule)
        self.slots, self.numbers = slots, numbers

    def group_of(self, rule: Rule) -> Thresholds | None:
        """The thresholds that a rule in force is among, if it waits."""
        guard = rule.guard
        return None if guard is None else self._groups(rule)[guard.operand, guard.sign]

    def _groups(self, rule: Rule) -> Groups:
        return self.simple if rule.simple else self.guarded

    def to_settle(self, state: KeyState, instant: Instant) -> list[Rule]:
        """The rules, of those not simple, that may start or stop for a key now."""
        waiting = dict(self.unguarded)
        for group in self.guarded.values():
            for number in group.passed(group.operand.value(instant)):
                waiting[number] = self.by_number[number]
        for number in sorted(state.firing):  # the order of a set would depend on its past
            waiting[number] = self.by_number[number]
        return list(waiting.values())

    def passes_any_guard(self, instant: Instant) -> bool:
        """Whether a threshold of a guarded rule is passed."""
        return any(
            group.passes_any(group.operand.value(instant)) for group in self.guarded.values()
        )

    def firing(self, state: KeyState) -> list[Rule]:
        """The rules that fire for a key, in the order they were added."""
        numbers = list(state.firing)
        for group in self.simple.values():
            if group.slot < len(state.values):
                numbers += group.passed(state.values[group.slot])
        return [self.by_number[number] for number in sorted(numbers)]

    @property
    def columns(self) -> set[str]:
        """The columns that conditions name."""
        rules = self.by_name.values()
        read = [e for rule in rules for e in (rule.when, rule.until) if e is not None]
        return {name for expression in read for name in expression.columns}

    def explain(self) -> list[str]:
        """How rules are found."""
        return [
            f"{sum(map(len, self.simple.values()))} rules are one threshold each, in "
            f"{len(self.simple)} orders: only those that a value crosses are looked at",
            f"{sum(map(len, self.guarded.values()))} rules wait for a threshold, in "
            f"{len(self.guarded)} orders: looked at while it is passed",
            f"{len(self.unguarded)} rules are looked at with every event",
        ]

    def __len__(self) -> int:
        return len(self.by_name)
