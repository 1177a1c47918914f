"""Inputs that a deployed fragment begins to read, or leaves, and the user's choices for them. Pure.

A fragment continues at its positions. A topic that it has never read has no position, and records
of a topic that it leaves before its end count in no result. Both need an explicit choice:
`--input STREAM=end|beginning`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pipeline.counting import counted
from pipeline.errors import Problem
from pipeline.ids import FragmentName, Offset, StreamName, TopicName

Ranges = tuple[tuple[int, Offset, Offset], ...]
"""(partition, first offset, end), by partition."""


class InputFrom(Enum):
    """The choice for an input with `--input`."""

    BEGINNING = "beginning"
    """Everything in its topic is read."""
    END = "end"
    """The present contents of its topic are not read."""


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """A topic that a fragment begins to read, or leaves.

    Args:
        stream: the stream of the topic, present or former.
        begins: whether the fragment begins to read it; otherwise it leaves it.
        ranges: of a topic that it begins to read all offsets; of one that it leaves those unread
            at the time of the check.
        derived: whether a fragment writes the topic.
        beside: the output topic, if others have written there: the fragment begins anew.
    """

    stream: StreamName
    topic: TopicName
    begins: bool
    ranges: Ranges
    derived: bool = False
    beside: TopicName | None = None

    @property
    def needs_choice(self) -> bool:
        """Whether a choice is required; a topic that is left may have been read to its end.

        That is uncertain for one that a fragment writes: it may write until it is stopped.
        """
        return self.begins or self.derived or self.offsets > 0

    @property
    def offsets(self) -> int:
        """The number of offsets; there may be fewer records."""
        return sum(end - begin for _, begin, end in self.ranges)


class Fared(Enum):
    """The fate of records of a changed input."""

    READ = "read"
    """They are read now, after others that arrived later."""
    PASSED_OVER = "passed over"
    """They count in no result."""
    LEFT_TO_OTHERS = "left to others"
    """Those that another fragment has read count in its results, the others in none."""
    LEFT_UNREAD = "left unread"
    """They count in no result, unless the stream is added again: reading then continues there."""


@dataclass(frozen=True, slots=True)
class Announced:
    """The effect of a deploy on a changed input, by offset ranges."""

    fragment: FragmentName
    stream: StreamName
    topic: TopicName
    fared: Fared
    ranges: Ranges

    def __str__(self) -> str:
        where = ", ".join(
            f"partition {p}: {begin} up to {end}" for p, begin, end in self.ranges if end > begin
        )
        offsets = counted(sum(end - begin for _, begin, end in self.ranges), "offset")
        amount = f"{offsets} ({where})" if where else "nothing yet"
        return f"stream {self.stream}, topic {self.topic}: {amount} {_WORDS[self.fared]}"


_WORDS: Mapping[Fared, str] = {
    Fared.READ: "will be read; what lies at or below the published boundary is skipped",
    Fared.PASSED_OVER: "will be passed over and count in no result",
    Fared.LEFT_TO_OTHERS: "will be passed over: what the fragment before has not read counts in no "
    "result",
    Fared.LEFT_UNREAD: "stay unread; if the stream comes back, it goes on from there",
}


@dataclass(frozen=True, slots=True)
class Begins:
    """First positions of a stream that a fragment has never read.

    `ranges`: per partition the first offset to read, and the end at the time of the decision.
    `skips` and `passes_over`: as in `pipeline/lanes/source_ids.py`. `anew`: whether the fragment
    begins anew with all of its inputs.
    """

    stream: StreamName
    topic: TopicName
    ranges: Ranges
    skips: bool
    passes_over: bool
    anew: bool = False


def announced(
    fragment: FragmentName,
    changed: Iterable[ChangedInput],
    choices: Mapping[StreamName, InputFrom],
) -> Iterator[Announced]:
    """The effects of the choices on the records of a fragment's inputs."""
    for one in changed:
        choice = choices.get(one.stream)
        if choice is not None and one.needs_choice:
            yield Announced(fragment, one.stream, one.topic, _fared(one, choice), one.ranges)


def begins(
    changed: Iterable[ChangedInput], choices: Mapping[StreamName, InputFrom]
) -> tuple[Begins, ...]:
    """The first positions of a fragment's new inputs, as far as chosen."""
    return tuple(
        Begins(
            one.stream,
            one.topic,
            _from(one.ranges, choice),
            _skips(one, choice),
            choice is InputFrom.END,
            one.beside is not None,
        )
        for one in changed
        if one.begins and (choice := choices.get(one.stream)) is not None
    )


def undecided(
    changed: Iterable[ChangedInput], choices: Mapping[StreamName, InputFrom]
) -> tuple[ChangedInput, ...]:
    """The inputs that need a choice and have none."""
    return tuple(one for one in changed if one.needs_choice and one.stream not in choices)


def question(one: ChangedInput) -> str:
    """The question about an input, in words."""
    if not one.begins:
        unread = f"{counted(one.offsets, 'offset')} {'was' if one.offsets == 1 else 'were'}"
        return f"stream {one.stream} leaves topic {one.topic}, of which {unread} not read by now"
    if one.beside is not None:
        return (
            f"topic {one.beside} was last written by another fragment, or this one has begun in "
            "another topic since it was deployed, so it begins anew: "
            f"what it reads of stream {one.stream} from the beginning may come a second time"
        )
    return (
        f"stream {one.stream} reads topic {one.topic}, which this fragment has never read; it "
        f"holds {counted(one.offsets, 'offset')}"
    )


def answers(one: ChangedInput) -> str:
    """The possible choices, in words."""
    end = f"`--input {one.stream}={InputFrom.END.value}`"
    if not one.begins:
        return f"{end} leaves them unread; if the stream comes back, it goes on from there"
    beginning = f"`--input {one.stream}={InputFrom.BEGINNING.value}`"
    return (
        f"{beginning} reads all that the topic holds, but for what lies at or below the published "
        f"boundary; {end} passes over what it holds by now"
    )


def invalid_choices(
    choices: Mapping[StreamName, InputFrom],
    changed: Mapping[FragmentName, tuple[ChangedInput, ...]],
) -> Iterator[Problem]:
    """Choices for inputs that need none, and impossible ones."""
    every = [one for inputs in changed.values() for one in inputs]
    needing = sorted({one.stream for one in undecided(every, {})})
    for stream, choice in choices.items():
        if stream not in needing:
            yield Problem(
                f"--input names {stream}, of which nothing has to be decided",
                choices=tuple(needing),
                hint="without --input, `medusa plan` lists the required choices.",
            )
        elif choice is InputFrom.BEGINNING and not any(
            one.begins for one in every if one.stream == stream
        ):
            yield Problem(
                f"stream {stream} is not read any more, so that it cannot begin anywhere",
                hint=f"`--input {stream}=end` leaves what was not read.",
            )


def _fared(one: ChangedInput, choice: InputFrom) -> Fared:
    if not one.begins:
        return Fared.LEFT_UNREAD
    if choice is InputFrom.BEGINNING:
        return Fared.READ
    return Fared.PASSED_OVER if one.beside is None else Fared.LEFT_TO_OTHERS


def _from(ranges: Ranges, choice: InputFrom) -> Ranges:
    if choice is InputFrom.BEGINNING:
        return ranges
    return tuple((partition, end, end) for partition, _, end in ranges)


def _skips(one: ChangedInput, choice: InputFrom) -> bool:
    """Whether a fragment that has published skips late records of a new derived stream.

    They break no promise of the stream's writer, so they must not stop the reader.
    """
    return one.derived or choice is InputFrom.BEGINNING
