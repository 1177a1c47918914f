"""Reader of network documents: YAML in, checked network out, every mistake reported in one pass.

Reading has three steps: the form (YAML, keys, names, durations), the streams with their schemas,
and the boxes in topological order. A step continues after a mistake; what depends on an invalid
part is not reported, so that each mistake is reported once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pipeline import durations, yaml_reader
from pipeline.availability import Availability
from pipeline.errors import DocumentError, Problem
from pipeline.ids import BoxName, NetworkName, StreamName
from pipeline.labels import EVERY_NODE
from pipeline.names import NAME_PATTERN
from pipeline.nearest import near, nearest_first
from pipeline.network import graph, topics
from pipeline.network.availability import AVAILABILITY, read_availability
from pipeline.network.box_settings import read_box_settings, read_pace, read_state_limit
from pipeline.network.boxes.common import Defaults, Draft, StreamFacts, check_syntax
from pipeline.network.boxes.python import CodeReference, read_function
from pipeline.network.boxes.python import read_reference as read_code_reference
from pipeline.network.boxes.traits import KINDS, STATEFUL_KINDS
from pipeline.network.declared import Declared, check_declared
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.limits import read_limit
from pipeline.network.model import Box, BoxSettings, Limit, Network
from pipeline.network.outputs import OutputDraft, check_finality, check_keys, read_outputs
from pipeline.network.placement import Placement, check_apart, read_placement
from pipeline.network.priority import PRIORITY, read_priority
from pipeline.network.reliability import RELIABILITY, check_amnesia, read_reliability
from pipeline.network.streams import (
    PARTITIONS,
    PARTITIONS_MAX,
    SchemaReference,
    SchemaText,
    StreamDraft,
    build_stream,
    read_reference,
    read_stream,
)
from pipeline.network.written import Written
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP, Reliability
from pipeline.yaml_reader import YamlMap, YamlScalar

__all__ = [
    "Code",
    "CodeReference",
    "SchemaReference",
    "SchemaText",
    "check",
    "code_references",
    "function_lines",
    "load",
    "read",
    "references",
    "schema_references",
]

Code = Mapping[BoxName, str | Problem]
"""Box → the text of its Python file, or why there is none."""
NO_CODE: Code = MappingProxyType({})

RETENTION_MS = durations.parse("7d")
REPLICATION = 1
REPLICATION_MAX = 100
_SOME_WINDOW_MS = durations.parse("1m")


def schema_references(text: str, file: str) -> tuple[SchemaReference, ...]:
    """The schemas that a YAML document needs: `references` of what `read` gives."""
    return references(read(text, file))


def load(
    text: str,
    file: str,
    schemas: Mapping[SchemaReference, SchemaText | Problem],
    code: Code = NO_CODE,
) -> Network:
    """The network that a YAML document describes: `check` of what `read` gives.

    Raises:
        DocumentError: with every mistake in the document.
    """
    return check(read(text, file), schemas, code)


def read(text: str, file: str) -> Written:
    """A YAML document, not checked yet; `file` is its name, for messages. Never raises."""
    tree, problems = yaml_reader.read(text, file)
    return Written(tree, file, problems)


def references(written: Written) -> tuple[SchemaReference, ...]:
    """The schemas that a document needs, for the caller to fetch. Never raises.

    What cannot be read yields nothing here; `check` reports it.
    """
    found = (
        read_reference(StreamName(key.text), Fields(node, "stream", Report(written.file)))
        for key, node in _entries(written, "streams")
    )
    return tuple(reference for reference in found if reference is not None)


def code_references(written: Written) -> tuple[CodeReference, ...]:
    """The Python files that a document needs, as `references`."""
    found = (
        read_code_reference(BoxName(key.text), Fields(node, "box", Report(written.file)))
        for key, node in _entries(written, "boxes")
    )
    return tuple(reference for reference in found if reference is not None)


def function_lines(written: Written) -> dict[BoxName, int]:
    """Where each box that has one names its function, be it of a file or of a module."""
    found = (
        (BoxName(key.text), read_function(Fields(node, "box", Report(written.file))))
        for key, node in _entries(written, "boxes")
    )
    return {box: function.line for box, function in found if function is not None}


def _entries(written: Written, section: str) -> list[tuple[YamlScalar, YamlMap]]:
    """The entries of a section that can be checked."""
    root = written.tree if isinstance(written.tree, YamlMap) else None
    found = Fields(root, "document", Report(written.file)).mapping(section)
    entries = found.entries if found else ()
    return [(key, node) for key, node in entries if isinstance(node, YamlMap)]


def check(
    written: Written,
    schemas: Mapping[SchemaReference, SchemaText | Problem],
    code: Code = NO_CODE,
) -> Network:
    """The network that a document describes.

    Args:
        written: the document.
        schemas: for each of `references`, the schema, or why there is none.
        code: the same for `code_references`.

    Raises:
        DocumentError: with every mistake in the document.
    """
    report = Report(written.file, list(written.problems))
    tree = written.tree
    if tree is not None and not isinstance(tree, YamlMap):
        report.add("a network document is a mapping that begins with network: NAME", tree.line)
    network = _Loader(report, schemas, code).load(tree) if isinstance(tree, YamlMap) else None
    if network is None or report.problems:
        raise DocumentError(written.located(report.problems))
    return network


class _Loader:
    """One pass over one document."""

    def __init__(
        self,
        report: Report,
        schemas: Mapping[SchemaReference, SchemaText | Problem],
        code: Code,
    ) -> None:
        self.report = report
        self.schemas = schemas
        self.code = code
        self.limits: list[Limit] = []
        self.box_settings: list[BoxSettings] = []
        self.placements: list[Placement] = []
        self.reliabilities: list[Declared[Reliability]] = []
        self.priorities: list[Declared[Priority]] = []
        self.availabilities: list[Declared[Availability]] = []

    def load(self, root: YamlMap) -> Network | None:
        """The network, as far as it is valid; None without a name."""
        fields = Fields(root, "the document", self.report)
        name = self._network_name(fields)
        # An invalid window was reported; any size suffices for checking the rest.
        window = fields.duration("window", _SOME_WINDOW_MS, low=1)
        partitions = fields.integer("partitions", PARTITIONS, low=1, high=PARTITIONS_MAX)
        replication = fields.integer("replication", REPLICATION, low=1, high=REPLICATION_MAX)
        retention = topics.read_retention(fields) or RETENTION_MS
        internal = topics.read_internal_retention(fields)
        auto_create = fields.boolean("auto_create", default=True)
        pace_ms, state_limit = read_pace(fields), read_state_limit(fields)
        placement = read_placement(fields, None)
        reliability = read_reliability(fields, None).value
        priority = read_priority(fields, None).value
        availability = read_availability(fields, None).value
        streams = self._streams(fields, partitions)
        defaults = Defaults(window if fields.has("window") else None, self.code)
        drafts, broken = self._drafts(fields, defaults, set(streams))
        outputs = read_outputs(fields, partitions, {*drafts, *broken}, set(streams), self.report)
        for output in outputs:
            self._readable(drafts.get(output.stream.value), output.stream)
        fields.finish()
        self._topics(streams, outputs)
        built = {
            key: build_stream(draft, self.schemas, self.report)
            for key, draft in streams.items()
            if draft is not None
        }
        facts = {key: made.facts for key, made in built.items() if made.facts is not None}
        boxes = self._boxes(drafts, facts, {*streams, *drafts, *broken})
        apart = self._apart((placement, *(one.placement for one in outputs)), drafts, broken)
        self._check_shared(outputs, _routes(drafts))
        declared = (*self.reliabilities, *(output.reliability for output in outputs))
        check_amnesia(declared, boxes, self.report)
        check_finality(outputs, boxes, self.report)
        check_keys(outputs, boxes, self.report)
        if name is None:
            return None
        return Network(
            name=name,
            streams=tuple(s.stream for s in built.values() if s.stream is not None),
            boxes=boxes,
            outputs=tuple(draft.output for draft in outputs),
            partitions=partitions,
            replication=replication,
            retention_ms=retention,
            auto_create=auto_create,
            trims_internal=internal,
            limits=tuple(self.limits),
            pace_ms=pace_ms or 0,
            state_limit_bytes=state_limit,
            box_settings=tuple(self.box_settings),
            nodes=placement.nodes or EVERY_NODE,
            apart=apart,
            reliability=reliability or UPSTREAM_BACKUP,
            priority=priority or Priority.NORMAL,
            availability=availability,
        )

    def _network_name(self, fields: Fields) -> NetworkName | None:
        found = fields.text("network", required=True)
        if found is None or not self._named(found, "a network"):
            return None
        return NetworkName(found.value)

    def _named(self, name: Text, what: str) -> bool:
        """Whether a name has the required form; otherwise reported."""
        fine = re.fullmatch(NAME_PATTERN, name.value) is not None
        if not fine:
            self.report.add(
                f"{name.value!r} is no name for {what}",
                name.line,
                hint="small letters, digits and _, beginning with a letter, at most 63",
            )
        return fine

    # --- streams --------------------------------------------------------------------------------

    def _streams(self, fields: Fields, partitions: int) -> dict[str, StreamDraft | None]:
        """External streams by name; None for one that is too broken to be checked."""
        found: dict[str, StreamDraft | None] = {}
        fields.required("streams")
        node = fields.mapping("streams")
        for key, value in node.entries if node else ():
            fine = self._named(Text(key.text, key.line), "a stream")
            what = f"stream {key.text}"
            if not isinstance(value, YamlMap):
                self.report.add(f"{what} must be a mapping", value.line)
                found[key.text] = None
                continue
            inner = Fields(value, what, self.report)
            inner.line = key.line
            self._limit(key.text, inner)
            draft = read_stream(StreamName(key.text), inner, partitions)
            found[key.text] = draft if fine else None
        if node is not None and not node.entries:
            self.report.add("streams names no stream", node.line)
        return found

    def _limit(self, name: str, fields: Fields) -> None:
        found = read_limit(name, fields)
        if found is not None:
            self.limits.append(found)

    # --- boxes ----------------------------------------------------------------------------------

    def _drafts(
        self, fields: Fields, defaults: Defaults, streams: set[str]
    ) -> tuple[dict[str, Draft], set[str]]:
        """Boxes as written, by name, and the names of those that are too broken to check."""
        drafts: dict[str, Draft] = {}
        broken: set[str] = set()
        fields.required("boxes")
        node = fields.mapping("boxes")
        taken = streams | {key.text for key, _ in node.entries} if node else streams
        for key, value in node.entries if node else ():
            fine = self._named(Text(key.text, key.line), "a box")
            if key.text in streams:
                fine = False
                self.report.add(f"{key.text} is both a stream and a box", key.line, box=key.text)
            draft = self._draft(key, value, defaults)
            parts = draft.parts if draft is not None else ()
            fine = self._parts_fit(key.text, parts, taken | set(drafts)) and fine
            if draft is not None and fine:
                drafts |= {one.name: one for one in (draft, *parts)}
            else:
                broken |= {key.text, *(part.name for part in parts)}
        if node is not None and not node.entries:
            self.report.add("boxes names no box", node.line)
        return drafts, broken

    def _draft(
        self, key: YamlScalar, value: yaml_reader.YamlNode, defaults: Defaults
    ) -> Draft | None:
        if not isinstance(value, YamlMap):
            self.report.add(f"box {key.text} must be a mapping", value.line, box=key.text)
            return None
        fields = Fields(value, f"box {key.text}", self.report, key.text)
        fields.line = key.line
        kinds = [kind for kind in KINDS if fields.has(kind)]
        if len(kinds) != 1:
            written = [word.text for word, _ in value.entries]
            message, choices = (
                (f"box {key.text} is both {' and '.join(kinds)}", ())
                if kinds
                else _no_kind(key.text, written)
            )
            self.report.add(message, key.line, box=key.text, choices=choices)
            return None
        draft = KINDS[kinds[0]](BoxName(key.text), fields, defaults)
        self._limit(key.text, fields)
        settings = read_box_settings(BoxName(key.text), fields, kinds[0], STATEFUL_KINDS)
        placement = read_placement(fields, BoxName(key.text))
        self.placements.append(placement)
        declared = read_reliability(fields, BoxName(key.text))
        self.reliabilities.append(declared)
        priority = read_priority(fields, BoxName(key.text))
        self.priorities.append(priority)
        availability = read_availability(fields, BoxName(key.text))
        self.availabilities.append(availability)
        settings = replace(
            settings,
            nodes=placement.nodes,
            reliability=declared.value,
            priority=priority.value,
            availability=availability.value,
        )
        self.box_settings.append(settings)
        fields.finish()
        return draft

    def _parts_fit(self, box: str, parts: Sequence[Draft], taken: set[str]) -> bool:
        """Whether the names of the parts of a box are free; otherwise reported."""
        fine = True
        for part in parts:
            named = self._named(Text(part.name, part.line), "a stream")
            if part.name in taken:
                message = f"box {box} makes a stream {part.name}, and there is another one"
                self.report.add(message, part.line, box=box)
            fine = fine and named and part.name not in taken
        return fine

    def _boxes(
        self,
        drafts: Mapping[str, Draft],
        streams: Mapping[str, StreamFacts],
        names: set[str],
    ) -> tuple[Box, ...]:
        """The checked boxes, inputs before readers; `names` are all streams and boxes."""
        known = self._known_inputs(drafts, names)
        order, loops = graph.in_order(
            {name: [text.value for text in draft.inputs] for name, draft in drafts.items()}
        )
        for loop in loops:
            way = " → ".join((*loop, loop[0]))
            self.report.add(f"a loop: {way}", drafts[loop[0]].line, box=loop[0])
        facts = dict(streams)
        boxes: list[Box] = []
        built: set[str] = set()
        for name in order:
            draft = drafts[name]
            inputs = [facts.get(text.value) for text in draft.inputs]
            given = [f for f in inputs if f is not None]
            if name not in known or len(given) != len(inputs):
                continue
            built.add(name)
            box = draft.build(given, self.report)
            if box is not None:
                boxes.append(box)
                sound = all(f.sound for f in given)
                facts[name] = StreamFacts(
                    StreamName(name), box.columns, box.event_time_column, sound=sound
                )
        for name, draft in drafts.items():
            if name not in built:
                check_syntax(draft, self.report)
        return tuple(boxes)

    def _known_inputs(self, drafts: Mapping[str, Draft], names: set[str]) -> set[str]:
        """The boxes all of whose inputs exist; the others are reported."""
        known = set(drafts)
        for name, draft in drafts.items():
            for text in draft.inputs:
                if text.value in names:
                    if not self._readable(drafts.get(text.value), text, name):
                        known.discard(name)
                    continue
                known.discard(name)
                self.report.add(
                    f"there is no stream or box {text.value}",
                    text.line,
                    box=name,
                    choices=nearest_first(text.value, tuple(sorted(names - {name}))),
                )
        return known

    def _readable(self, source: Draft | None, text: Text, by: str = "") -> bool:
        """Whether a box, or an output, may read a box; only the parts of a box with parts may.

        Otherwise reported.
        """
        parts = tuple(part.name for part in source.parts) if source else ()
        if not parts or by in parts:
            return True
        self.report.add(
            f"{text.value} is no stream but makes several", text.line, box=by, choices=parts
        )
        return False

    # --- outputs, placement, reliability, priority and topics ------------------------------------

    def _apart(
        self, others: Sequence[Placement], drafts: Mapping[str, Draft], broken: set[str]
    ) -> tuple[tuple[BoxName, BoxName], ...]:
        """The pairs of boxes that are to run on different nodes; mistakes are reported.

        `others`: the placements of the network and of its outputs.
        """
        parts = {name: tuple(map(str, (p.name for p in one.parts))) for name, one in drafts.items()}
        routes = _routes(drafts)
        declared = {one.of for one in self.placements if one.nodes is not None}
        for one in others:
            if one.of is None or one.nodes is None:
                continue
            if one.of in declared:
                message = f"box {one.of} has nodes of its own: write them there or here"
                self.report.add(message, one.line, box=one.of)
            elif one.of in routes:
                message = f"{one.of} runs where its route does: write nodes at {routes[one.of]}"
                self.report.add(message, one.line, box=one.of)
        everything = parts | dict.fromkeys(broken, ())
        return check_apart((*self.placements, *others), everything, self.report)

    def _check_shared(self, outputs: tuple[OutputDraft, ...], routes: Mapping[str, str]) -> None:
        """Check that no output declares a setting that its box declares."""
        of_outputs = (output.reliability for output in outputs)
        check_declared(RELIABILITY, self.reliabilities, of_outputs, routes, self.report)
        priorities = (output.priority for output in outputs)
        check_declared(PRIORITY, self.priorities, priorities, routes, self.report)
        bounds = (output.availability for output in outputs)
        check_declared(AVAILABILITY, self.availabilities, bounds, routes, self.report)

    def _topics(
        self,
        streams: Mapping[str, StreamDraft | None],
        outputs: tuple[OutputDraft, ...],
    ) -> None:
        external = {name: d.topic for name, d in streams.items() if d is not None and d.topic}
        chosen = {o.stream.value: o.topic for o in outputs}
        external = {
            name: topic
            for name, topic in external.items()
            if topics.check_name(topic, f"stream {name}", self.report, derived=False)
        }
        chosen = {
            name: topic
            for name, topic in chosen.items()
            if topics.check_name(topic, f"output {name}", self.report, derived=True)
        }
        topics.check_collisions(external, chosen, self.report)


def _routes(drafts: Mapping[str, Draft]) -> dict[str, str]:
    """The route of each branch."""
    return {part.name: name for name, one in drafts.items() for part in one.parts}


def _no_kind(box: str, written: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The message for a box without a kind, and the kinds, likely ones first."""
    message, kinds = f"box {box} does not say what it is", tuple(KINDS)
    # The kind is written first, unless another word looks more like one.
    meant = next((word for word in written if near(word, kinds)), written[0] if written else "")
    if meant:
        message += f": there is no kind of box called {meant}"
    return message, nearest_first(meant, kinds)
