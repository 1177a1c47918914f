import subprocess
import sys

from brokers.children import child_processes, children_in


def test_a_child_counts_until_it_has_ended() -> None:
    """Also before its exit code is read."""
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.pid in child_processes()
        child.kill()
        assert child.stdout is not None
        assert child.stdout.read() == b""
        child.wait(10)
        assert child.pid not in child_processes()


def test_children_of_others_and_dead_ones_do_not_count() -> None:
    """State Z is that of an ended process that is not reaped yet."""
    assert children_in("10 5 S\n11 5 Z+\n12 6 R\n", 5) == (10,)
