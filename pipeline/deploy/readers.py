"""Which deployed boxes could not read records that are written with a new schema. Pure.

A lane decodes the columns that its fragment uses, with the schema that its stream has, and passes
over all others; what it could not decode would be dead letters. So nothing else counts here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.errors import RefusedError
from pipeline.ids import FragmentName, NetworkId, StreamName
from pipeline.names import value_subject
from pipeline.network.model import ExternalStream
from pipeline.planner.columns import narrowed, read_columns, reading_boxes
from pipeline.planner.plan import Fragment, FragmentInput, Plan
from schemas.avro import AvroSchema, parse
from schemas.compatibility import differences
from schemas.meaning import other_meanings

_UNREADABLE = "deployed boxes could not read what is written with this schema"


@dataclass(frozen=True, slots=True)
class Broken:
    """A deployed box whose fragment would refuse the records.

    `reason` names the path in the schema and both types.
    """

    network: NetworkId
    fragment: FragmentName
    box: str
    stream: StreamName
    reason: str

    def __str__(self) -> str:
        return f"{self.network.full_name}.{self.box}: stream {self.stream}, {self.reason}"


class BreaksBoxesError(RefusedError):
    """A schema with which boxes that are deployed could not read what is written."""

    code = "breaks-boxes"

    def __init__(self, subject: str, broken: tuple[Broken, ...]) -> None:
        super().__init__(
            f"{_UNREADABLE}: {'; '.join(str(one) for one in broken)}",
            place=f"subject {subject}",
            hint="deploy a document first whose streams can read both, or say --yes to register: "
            "those records go to the dead letters.",
        )
        self.broken = broken

    def __str__(self) -> str:
        listed = "".join(f"\n    - {one}" for one in self.broken)
        return f"{self.place}: {_UNREADABLE}{listed}\n  hint: {self.hint}"


def broken_by(subject: str, text: str, plans: Iterable[Plan]) -> tuple[Broken, ...]:
    """What a schema under a subject would break, network by network.

    Keys are not decoded, so the subject of a key breaks nothing.

    Raises:
        SchemaError: the text is no schema.
    """
    writer = parse(text)
    found = (
        broken
        for plan in plans
        for fragment in plan.fragments
        for stream in fragment.inputs
        if subject in _subjects(stream)
        for broken in _broken(writer, stream, fragment)
    )
    return tuple(dict.fromkeys(found))


def unreadable(
    writer: AvroSchema, stream: FragmentInput, fragment: Fragment
) -> tuple[tuple[str, str], ...]:
    """Why a fragment cannot read what is written with a schema: each path and reason."""
    reader = parse(narrowed(stream.schema_json, read_columns(stream, fragment)))
    return (
        *((one.path, str(one)) for one in differences(reader, writer)),
        *((text.partition(":")[0], text) for text in other_meanings(reader, writer)),
    )


def _subjects(stream: FragmentInput) -> frozenset[str]:
    """Where schemas of a stream's records are registered: that of its topic, and its own."""
    own = {stream.subject} if isinstance(stream, ExternalStream) else set()
    return frozenset({value_subject(stream.topic), *own})


def _broken(writer: AvroSchema, stream: FragmentInput, fragment: Fragment) -> Iterator[Broken]:
    names = fragment.names
    for path, reason in unreadable(writer, stream, fragment):
        for box in reading_boxes(stream, fragment, _column(path)):
            yield Broken(names.network, names.fragment, box, stream.name, reason)


def _column(path: str) -> str | None:
    """The column that a path such as `/fields/speed/type` lies in; None: the whole record."""
    match path.split("/"):
        case ["", "fields", column, *_]:
            return column
        case _:
            return None
