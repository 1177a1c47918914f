from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from connectors.generators.sensors import (
    DEVICES,
    ROOM_SIZE,
    TICK_MS,
    WRONG_EVERY,
    Calibration,
    Fleet,
    Reading,
)

START_MS = 1_700_000_000_000
LATENESS_MS = 3_000


def drive(
    seed: int = 1, seconds: int = 20, devices: int = DEVICES
) -> Iterator[tuple[int, Reading | Calibration]]:
    """Pairs (time of sending, report) of a fleet."""
    fleet = Fleet(seed, START_MS, devices)
    for at_ms in range(START_MS + TICK_MS, START_MS + seconds * 1_000, TICK_MS):
        for report in fleet.reports(at_ms):
            yield at_ms, report


@cache
def readings() -> tuple[tuple[int, Reading], ...]:
    """All readings, with their times of sending."""
    return tuple((at_ms, report) for at_ms, report in drive() if isinstance(report, Reading))


def calibrations(seconds: int = 60) -> dict[str, list[Calibration]]:
    """All calibrations, by device."""
    found = defaultdict(list)
    for _, report in drive(seconds=seconds):
        if isinstance(report, Calibration):
            found[report.device].append(report)
    return found


def test_the_same_seed_gives_the_same_devices() -> None:
    """Two runs with equal arguments are equal; another seed gives other devices."""
    assert list(drive(seconds=3)) == list(drive(seconds=3))
    assert list(drive(seed=2, seconds=3)) != list(drive(seconds=3))


def test_each_device_has_its_own_rate() -> None:
    """From about one reading a second to a hundred, and about six hundred in total."""
    numbers = defaultdict(set)
    for _, reading in readings():
        numbers[reading.device].add(reading.number)
    rates = sorted((max(found) - min(found)) / 20 for found in numbers.values())
    assert len(rates) == DEVICES
    assert rates[DEVICES // 2] < 2
    assert 80 < rates[-1] <= 110
    assert 500 < len(readings()) / 20 < 700


def test_readings_are_out_of_order_and_those_of_wrong_clocks_late() -> None:
    """All others are within the lateness of the network, repeats included."""
    newest = 0
    late, went_back = set(), 0
    for _, reading in readings():
        newest = max(newest, reading.measured_at)
        went_back += reading.measured_at < newest
        if newest - reading.measured_at > LATENESS_MS:
            late.add(reading.device)
    assert went_back > 1_000
    assert late == {f"S{n:03d}" for n in (8, 48, 88)}
    assert len(late) == -(-DEVICES // WRONG_EVERY)


def test_some_readings_are_repeated() -> None:
    """Byte for byte; and a device counts on, so that its numbers are unique."""
    found = Counter(reading for _, reading in readings())
    assert 0.01 < sum(count > 1 for count in found.values()) / len(found) < 0.03
    assert len({(reading.device, reading.number) for reading in found}) == len(found)


def test_readings_of_a_device_have_different_times() -> None:
    """The higher the number, the later: the last one in a window has the highest number."""
    times: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for _, reading in readings():
        times[reading.device][reading.number] = reading.measured_at
    for found in times.values():
        in_order = [found[number] for number in sorted(found)]
        assert in_order == sorted(set(in_order))


def test_devices_drop_out_and_count_on() -> None:
    """Some are silent for several seconds, and their readings of that time are lost."""
    last: dict[str, Reading] = {}
    silent, lost = Counter[str](), Counter[str]()
    sent = [one for _, one in readings() if one.measured_at < START_MS + 18_000]  # all have come
    for reading in sorted(sent, key=lambda one: one.measured_at):
        before = last.get(reading.device, reading)
        last[reading.device] = reading
        silent[reading.device] += reading.measured_at - before.measured_at > 3_000
        lost[reading.device] += reading.number - before.number > 1
    assert sum(silent.values()) >= 3
    assert +silent == +lost


def test_the_new_firmware_is_installed_on_one_device_after_the_other() -> None:
    """From then on each reports its battery; at the beginning none does, and in the end all do."""
    reported = defaultdict(set)
    for at_ms, reading in readings():
        reported[(at_ms - START_MS) // 1_000].add(reading.battery is not None)
    assert [reported[second] for second in (0, 8, 18)] == [{False}, {False, True}, {True}]


def test_calibrations_are_repeated_and_change_after_a_drift() -> None:
    """Each device has one before its first reading, except for one, which gets it later."""
    found = calibrations()
    assert len(found) == DEVICES
    first = {device: versions[0].since for device, versions in found.items()}
    assert Counter(since < START_MS for since in first.values()) == {True: DEVICES - 1, False: 1}
    changed = [device for device, v in found.items() if len({one.offset for one in v}) > 1]
    assert 10 < len(changed) < 30
    assert all(len({(one.room, one.gain) for one in v}) == 1 for v in found.values())
    assert all(len(versions) >= 3 for versions in found.values())


def test_rooms_have_equal_numbers_of_devices() -> None:
    """So that the average of a room has enough values."""
    rooms = Counter(versions[0].room for versions in calibrations(20).values())
    assert rooms == {f"room-{n + 1}": ROOM_SIZE for n in range(DEVICES // ROOM_SIZE)}


def test_readings_before_a_pause_are_lost() -> None:
    """After a pause the devices continue at the present time, and have counted meanwhile."""
    fleet = Fleet(1, START_MS)
    early = [*fleet.reports(START_MS + TICK_MS), *fleet.reports(START_MS + 10_000)]
    assert len(early) < 300
    late = [one for one in fleet.reports(START_MS + 11_000) if isinstance(one, Reading)]
    assert max(one.number for one in late) > START_MS + 800
