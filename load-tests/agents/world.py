"""A world to search: documents about people, each with facts that name others, and questions over several of them.

Everything follows from a seed. A question names a person and asks for the teacher of the rival of … that person; its answer is
known. Some persons on the way have no document: those questions cannot be answered, whatever is spent on them.
"""

import json

from luck import luck, pick

RELATIONS = ("teacher", "rival", "patron", "heir", "guide", "neighbour", "translator", "creditor")
BEGINNINGS = ("Ar", "Bel", "Cor", "Dal", "El", "Fen", "Gor", "Hal", "Is", "Jor", "Kel", "Lun", "Mir", "Nor", "Or", "Pel")
ENDINGS = ("vo", "da", "mir", "tas", "lin", "ros", "ke", "wen", "dun", "sa", "bor", "nel")
TASKS_INTRACTABLE = 0.15
TOOLS = [
    {"type": "function", "function": {
        "name": "search", "description": "Finds documents by words of their titles, for each query the best three.",
        "parameters": {"type": "object", "required": ["queries"],
                       "properties": {"queries": {"type": "array", "items": {"type": "string"}}}}}},
    {"type": "function", "function": {
        "name": "open", "description": "Reads a document, by the id that a search gave.",
        "parameters": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}},
]


class World:
    """The documents, and what its tools say of them."""

    def __init__(self, seed, people=420):
        self.seed = seed
        names = [f"{first}{last} {family}{end}" for first in BEGINNINGS for last in ENDINGS
                 for family in BEGINNINGS[:7] for end in ENDINGS[:3]]
        names.sort(key=lambda name: luck(seed, "name", name))
        self.names = names[:people]
        # One in eight is named by others and has no document.
        self.lost = {name for name in self.names if luck(seed, "lost", name) < 0.125}
        self.ids = {name: f"d{at:04}" for at, name in enumerate(self.names) if name not in self.lost}
        self.titles = {number: name for name, number in self.ids.items()}
        self.facts = {name: self._facts(name) for name in self.ids}
        self.titled = {}
        for name in self.ids:
            for word in name.split():
                self.titled.setdefault(word, []).append(name)

    def _facts(self, name):
        known = sorted(RELATIONS, key=lambda relation: luck(self.seed, "has", name, relation))[:5]
        return {relation: pick(self.names, self.seed, "fact", name, relation) for relation in known}

    def tasks(self, count):
        """Questions of two to six steps, each with its answer; none where it cannot be answered."""
        found, at = [], 0
        while len(found) < count:
            at += 1
            task = self._task(at, intractable=luck(self.seed, "kind", len(found)) < TASKS_INTRACTABLE)
            if task:
                found.append({"number": len(found), **task})
        return found

    def _task(self, at, intractable):
        hops = 2 + int(luck(self.seed, "hops", at) * 5)
        person = start = pick(list(self.ids), self.seed, "start", at)
        path = []
        for hop in range(hops):
            if person in self.lost:
                # The way ends here, before the question does.
                relation = pick(RELATIONS, self.seed, "lost hop", at, hop)
                path.append(relation)
                continue
            relation = pick(list(self.facts[person]), self.seed, "hop", at, hop)
            path.append(relation)
            last, person = person, self.facts[person][relation]
        is_lost = last != self._before_last(start, path)
        if is_lost != intractable:
            return None
        return {"question": question(start, path), "hops": hops, "answer": None if intractable else person}

    def _before_last(self, start, path):
        """Whom the last fact is about; none where nobody knows."""
        person = start
        for relation in path[:-1]:
            person = self.facts.get(person, {}).get(relation)
        return person if person in self.facts and path[-1] in self.facts[person] else None

    def call(self, name, arguments):
        """What a tool says, and for how many calls it counts."""
        try:
            given = json.loads(arguments)
        except ValueError:
            return "these arguments are not JSON", 1
        if name == "search" and isinstance(given.get("queries"), list):
            return "\n".join(self._found(str(query)) for query in given["queries"]), max(1, len(given["queries"]))
        if name == "open":
            return self._read(str(given.get("id"))), 1
        return "there is no such tool, or it wants other arguments", 1

    def _found(self, query):
        words = set(query.split())
        scored = []
        for name in {name for word in words for name in self.titled.get(word, ())}:
            shared = len(words.intersection(name.split()))
            # Some documents are found by about half of the queries that name them.
            is_shy = luck(self.seed, "shy", name) < 0.3
            if not (is_shy and luck(self.seed, "hides", name, query) < 0.5):
                scored.append((-shared, luck(self.seed, "rank", name, query), f"[{self.ids[name]}] {name}"))
        lines = [line for _, _, line in sorted(scored)[:3]] or ["nothing found"]
        return "\n".join([f"query: {query}", *lines])

    def _read(self, number):
        name = self.titles.get(number)
        if name is None:
            return "no such document"
        facts = [f"The {relation} of {name} is {other}." for relation, other in self.facts[name].items()]
        words = 40 + int(luck(self.seed, "prose", name) * 120)
        return "\n".join([f"[{number}] {name}", *facts, "Little else is certain. " + "It is said otherwise elsewhere. " * (words // 6)])


def question(start, path):
    chain = " of ".join(f"the {relation}" for relation in reversed(path))
    return f"Who is {chain} of {start}?"
