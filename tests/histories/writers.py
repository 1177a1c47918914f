"""Writers of output topics, tracked independently of the deploy code."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pipeline.planner.plan import Fragment
from tests.histories.kafka import Topics
from tests.histories.reference import Ledger, Wrong, is_marked
from tests.histories.world import Commit

Key = tuple[int, str]
"""A life of the network, and a fragment."""
_NEVER = 2**31


@dataclass
class Writers:
    """The fragments deployed to write each topic, and the promises there.

    Args:
        writers: by life and topic id, in order of deploys.
        due: the fragments that are to begin anew: with which version, beside whom, and the id of
            the topic in which they are to.
        promised: promises by topic id, with their fragment.
        passed_over: topic ids whose existing records a fragment skips.
        written: output topic id of each deployed fragment.
        versions: version of each deployed fragment.
        given_up: the version with which a fragment was to begin anew, and does not any more.
        late: the fragments of which a lane of such a version has begun all the same.
    """

    writers: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    due: dict[Key, tuple[int, tuple[str, ...], str]] = field(default_factory=dict)
    promised: dict[str, tuple[int, str]] = field(default_factory=dict)
    passed_over: dict[Key, set[str]] = field(default_factory=dict)
    written: dict[Key, str] = field(default_factory=dict)
    versions: dict[Key, int] = field(default_factory=dict)
    given_up: dict[Key, int] = field(default_factory=dict)
    late: set[Key] = field(default_factory=set)

    def others(self, kafka: Topics, life: int, fragment: Fragment) -> tuple[str, ...]:
        """Other writers of a fragment's output, unless the fragment writes it already."""
        topic = kafka.topics.get(fragment.output.topic)
        known = [] if topic is None else self.writers.get((life, topic.topic_id), [])
        others = tuple(one for one in known if one != fragment.name)
        written = self.written.get((life, str(fragment.name)))
        goes_on = topic is not None and written == topic.topic_id and known[-1:] == [fragment.name]
        return () if goes_on else others

    def is_due(self, kafka: Topics, life: int, fragment: Fragment) -> bool:
        """Whether a fragment still has to start anew.

        Not if it returns to its former topic without having started in the other one.
        """
        name = str(fragment.name)
        if (life, name) not in self.due:
            return False
        topic = kafka.topics.get(fragment.output.topic)
        if topic is None or topic.topic_id == self.due[life, name][2]:
            return True
        return name not in self.writers.get((life, topic.topic_id), [])

    def gives_up(self, kafka: Topics, life: int, fragment: Fragment) -> bool:
        """Whether a fragment that has not started anew returns to a topic of its own."""
        due = (life, str(fragment.name)) in self.due
        return due and not self.is_due(kafka, life, fragment)

    def deployed(
        self, kafka: Topics, life: int, fragments: Iterable[tuple[Fragment, int]]
    ) -> set[Key]:
        """Apply a deploy: its fragments, and the version of each.

        Returns the fragments that no longer start anew: they continue at their positions, or are
        removed.
        """
        written: dict[Key, str] = {}
        versions: dict[Key, int] = {}
        do_not: set[Key] = set()
        for fragment, version in fragments:
            key, name = (life, str(fragment.name)), str(fragment.name)
            topic_id = kafka.topics[fragment.output.topic].topic_id
            written[key], versions[key] = topic_id, version
            if (others := self.others(kafka, life, fragment)) or key in self.late:
                self.due[key] = version, others, topic_id
                self.late.discard(key)
            elif self.is_due(kafka, life, fragment):
                self.due[key] = (*self.due[key][:2], topic_id)
            elif (was := self.due.pop(key, None)) is not None:
                do_not.add(key)
                self.given_up[key] = was[0]
            known = self.writers.setdefault((life, topic_id), [])
            known[:] = [*(one for one in known if one != name), name]
        names = {str(fragment.name) for fragment, _ in fragments}
        self.written, self.versions = written, versions
        for key in [key for key in self.due if key[0] == life and key[1] not in names]:
            self.given_up[key] = self.due.pop(key)[0]
            do_not.add(key)
        return do_not

    def on_first_marker(
        self, commit: Commit, ledger: Ledger, ledgers: dict[Key, Ledger]
    ) -> Iterator[Wrong]:
        """Start a fragment anew at its first marker; yields violations of that marker."""
        name = str(commit.names.fragment)
        due = self.due.get((commit.life, name))
        last, marker = ledger.marker, commit.marker
        anew = last is None or last.incarnation != marker.incarnation
        key = commit.life, name
        is_late = self.given_up.get(key, _NEVER) <= commit.version < self.versions.get(key, 0)
        if due is None and anew and is_late:
            self.late.add(key)
        if due is not None and commit.version >= due[0] and anew:
            del self.due[commit.life, name]
            others = (ledgers.get((commit.life, one)) for one in (*due[1], name))
            passed_over = self.passed_over.get((commit.life, name), set())
            known = [one for one in others if one is not None]
            ledger.begin_anew(marker, known, passed_over)
        promised_ms, by = self.promised.get(marker.output, (-1, name))
        if by != name:
            for record in commit.records:
                if (
                    record.topic == commit.fragment.output.topic
                    and record.timestamp_ms <= promised_ms
                    and not is_marked(record)
                ):
                    text = f"a result at {record.timestamp_ms}, {by} has promised {promised_ms}"
                    yield Wrong("promise", name, text)
        if marker.boundary_ms is not None and marker.boundary_ms >= promised_ms:
            self.promised[marker.output] = int(marker.boundary_ms), name
