import os
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from brokers.kafka import held_feed
from brokers.kafka.held_feed import ALL, Keeping
from tests.mock_brokers import mock_brokers

PROGRAM = """\
import sys
from pathlib import Path
from confluent_kafka import Producer

held, delivered = Path("held"), []
producer = Producer({"bootstrap.servers": sys.argv[1]})
for number in range(30):
    if number == 10:
        held.touch()
    if number == 20:
        held.unlink()
        producer.poll(0)
    producer.produce("sightings", value=b"%d" % number, key=b"%d" % (number % 5),
                     on_delivery=lambda error, message: delivered.append(error))
assert producer.flush(20) == 0
assert delivered == [None] * 30
sys.exit(3)
"""


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2))), st.sampled_from([None, 0, 1]))
def test_nothing_is_lost_and_each_partition_keeps_its_order(
    offers: list[tuple[bool, int]], kept: int | None
) -> None:
    """Whatever is cut when; what is not kept back is sent at once."""
    cut, sent = [False], list[tuple[int, int]]()
    keeping = Keeping(lambda: cut[0], kept)
    for number, (is_cut, partition) in enumerate(offers):
        cut[0] = is_cut
        place = (partition, number)
        before = len(sent)
        for send in keeping.offered(lambda place=place: sent.append(place), partition):  # type: ignore[misc]
            send()
        is_kept = is_cut and kept in {None, partition}
        assert (place in sent[before:]) is not is_kept
    for send in keeping.taken():
        send()
    assert sorted(sent) == sorted((partition, n) for n, (_, partition) in enumerate(offers))
    for partition in range(3):
        of_one = [n for at, n in sent if at == partition]
        assert of_one == sorted(of_one)


def test_what_is_kept_is_due_when_the_cut_has_ended() -> None:
    """Without another record, too, and only once."""
    cut, sent = [True], list[int]()
    keeping = Keeping(lambda: cut[0], None)
    assert keeping.offered(lambda: sent.append(1), 0) == ()
    assert keeping.due() == ()
    cut[0] = False
    assert len(keeping.due()) == 1
    assert keeping.due() == ()


def run(folder: Path, which: str) -> dict[int, list[int]]:
    """The numbers in each partition of a topic, as a program sent them."""
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    with mock_brokers(1) as brokers:
        brokers.create("sightings", leaders=(1, 1))
        module = ("-m", held_feed.__name__, "held", which)
        command = (sys.executable, "-P", *module, "program.py", brokers.bootstrap)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        assert subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 3
        consumer = Consumer({"bootstrap.servers": brokers.bootstrap, "group.id": "any"})
        consumer.assign([TopicPartition("sightings", one, 0) for one in range(2)])
        found: dict[int, list[int]] = {0: [], 1: []}
        while sum(map(len, found.values())) < 30:
            message = consumer.poll(20)
            assert message is not None
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            found[partition].append(int(value))
        consumer.close()
    return found


def test_a_program_sends_all_records_of_a_cut_partition(tmp_path: Path) -> None:
    """In their order, and notices nothing: its exit code is its own."""
    found = run(tmp_path, "0")
    assert all(found.values())
    assert all(numbers == sorted(numbers) for numbers in found.values())


def test_a_program_sends_all_records_of_a_cut_topic(tmp_path: Path) -> None:
    """The same."""
    assert all(numbers == sorted(numbers) for numbers in run(tmp_path, ALL).values())
