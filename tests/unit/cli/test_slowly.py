import io

from pipeline.cli.output import Format, Printer
from pipeline.cli.slowly import SlowProgress
from tests.unit.deploy.twins import TwinClock


def test_only_long_operations_print_progress() -> None:
    """Nothing for two seconds, then one line for every tenth."""
    err, clock = io.StringIO(), TwinClock()
    progress = SlowProgress(Printer(Format.TABLE, out=io.StringIO(), err=err), clock)
    for done in range(100):
        progress("comparing versions", done, 100)
        clock.sleep(0.1)
    lines = err.getvalue().splitlines()
    assert lines[0] == "comparing versions: 20 %"
    assert lines[-1] == "comparing versions: 90 %"
    assert len(lines) == 8
