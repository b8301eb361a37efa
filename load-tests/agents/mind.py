"""What the scripted models make of a conversation. They know what its messages say, and nothing else.

A model is a character: how often it misses or misreads what stands in a document, says the same again, and thinks how long. A
policy is how it goes about a task: *unaware*, it calls on for ever with many calls at a time; *heeding*, it does so only while
nothing tells it otherwise, and where a block says what is left it calls less, gives up what leads nowhere, and answers in time.
"""

import json
import re
from dataclasses import dataclass, field

from luck import length, luck

QUESTION = re.compile(r"Who is (.+) of ([^?]+)\?")
FACT = re.compile(r"^The (\w+) of (.+) is (.+)\.$", re.M)
HIT = re.compile(r"^\[(d\d+)\] (.+)$", re.M)
BLOCK = re.compile(r"<budget>\n(.*?)\n</budget>", re.S)
AMOUNT = re.compile(r"^(.+): ([\d.]+)(?: USD)? used, ([\d.]+)(?: USD)? left$", re.M)
UNKNOWN = "Answer: unknown."
WAYS = ("{name}", "{name} {relation}", "life of {name}", "{relation} and {name}", "{name} letters", "who knew {name}", "about {name}",
        "{name} early years", "{name} according to others", "papers on {name}")


@dataclass(frozen=True)
class Character:
    """How a model is."""

    misses: float
    misreads: float
    repeats: float
    content: float
    thinks: int


CHARACTERS = {
    "small": Character(misses=0.40, misreads=0.05, repeats=0.25, content=0.35, thinks=60),
    "large": Character(misses=0.06, misreads=0.01, repeats=0.03, content=0.60, thinks=160),
}


@dataclass
class Reply:
    """What it says: thought, text, calls as (name, arguments)."""

    thought: int
    text: str = ""
    calls: list = field(default_factory=list)


class Mind:
    """One model before one conversation."""

    def __init__(self, seed, model, request):
        self.name, self.character = model, CHARACTERS[model]
        self.messages = request["messages"]
        self.offered = {tool["function"]["name"] for tool in request.get("tools") or []}
        if request.get("tool_choice") == "none":
            self.offered = set()
        texts = [text(message) for message in self.messages]
        self.is_heeding = any("policy: heeding" in said for said in texts[:1])
        asked = next(said for message, said in zip(self.messages, texts) if message["role"] == "user")
        chain, self.start = QUESTION.search(asked).groups()
        self.path = [word.removeprefix("the ") for word in chain.split(" of ")][::-1]
        self.seed = (seed, asked.split("\n")[0])
        self.step = sum(message["role"] == "assistant" for message in self.messages)
        block = BLOCK.search(texts[-1]) if self.is_heeding else None
        self.told = block.group(1) if block else ""
        self._read(texts)

    def _read(self, texts):
        """Everything that it was shown and did not miss."""
        self.ids, self.opened, self.queries, self.facts = {}, {}, [], {}
        for message, said in zip(self.messages, texts):
            for call in message.get("tool_calls") or []:
                given = arguments(call)
                self.queries += given.get("queries") or []
            if message["role"] != "tool":
                continue
            said = BLOCK.sub("", said)
            for number, title in HIT.findall(said):
                self.ids[title] = number
            for relation, title, other in FACT.findall(said):
                self._notice(relation, title, other, said)
            for title in {title for _, title, _ in FACT.findall(said)}:
                self.opened[title] = self.opened.get(title, 0) + 1

    def _notice(self, relation, title, other, said):
        times = self.opened.get(title, 0)
        if luck(*self.seed, self.name, "miss", title, relation, times) < self.character.misses:
            return
        if luck(*self.seed, self.name, "misread", title, relation) < self.character.misreads:
            other = next(wrong for word, _, wrong in FACT.findall(said) if word != relation)
        self.facts[title, relation] = other

    def reply(self):
        """What it says next."""
        thought = length(self.character.thinks, *self.seed, self.name, "thought", self.step)
        person, done = self.start, 0
        while done < len(self.path) and (person, self.path[done]) in self.facts:
            person, done = self.facts[person, self.path[done]], done + 1
        calls = self._calls(person, self.path[done:])
        calls = [call for call in calls if call[0] in self.offered]
        if calls:
            return Reply(thought, calls=[(name, json.dumps(given)) for name, given in calls])
        return Reply(thought, f"Answer: {person}." if done == len(self.path) else UNKNOWN)

    def _regime(self):
        return next((word for word in ("CRITICAL", "LOW", "MEDIUM", "HIGH") if word in self.told), None)

    def _calls(self, person, open_path):
        """The calls that it would make now; none where it would answer."""
        regime = self._regime()
        if "FINAL" in self.told:
            return []
        if not open_path:
            is_content = luck(*self.seed, self.name, "content", self.step) < self.character.content
            return [] if is_content or regime in ("LOW", "CRITICAL") else self._search(person, "letters", regime)
        relation, number = open_path[0], self.ids.get(person)
        if "DEAD END" in self.told and number is None and sum(person in query for query in self.queries) >= 6:
            return []
        if regime == "CRITICAL":
            return [("open", {"id": number})] if number and len(open_path) == 1 else []
        if number is None or "open" not in self.offered:
            return self._search(person, relation, regime)
        return [("open", {"id": number}), *self._besides(person, relation, regime)]

    def _besides(self, person, relation, regime):
        """What else it asks for at once: namesakes of what it reads, and more about it."""
        if regime in ("MEDIUM", "LOW"):
            return []
        namesakes = [title for title in self.ids if title != person and title not in self.opened][:1]
        return [("open", {"id": self.ids[title]}) for title in namesakes] + self._search(person, relation, "MEDIUM")

    def _search(self, person, relation, regime):
        """More queries while there is plenty; a model that repeats itself asks what it has asked."""
        count = {"MEDIUM": 2, "LOW": 1, "CRITICAL": 1}.get(regime, 4)
        ways = [way.format(name=person, relation=relation) for way in WAYS]
        repeats = luck(*self.seed, self.name, "repeats", self.step) < self.character.repeats and "DEAD END" not in self.told
        if not repeats:
            ways = [way for way in ways if way not in self.queries] or ways
        return [("search", {"queries": ways[:count]})]


def text(message):
    """A message's text, however it is written."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n\n".join(part.get("text", "") for part in content)
    return content or ""


def arguments(call):
    try:
        given = json.loads(call["function"]["arguments"])
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
