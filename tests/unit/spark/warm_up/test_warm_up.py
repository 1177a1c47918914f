"""Warm-up of an idle session: it has no side effects, and ends when a lane starts."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.errors import MedusaError, RefusedError
from pipeline.ids import TopicName
from pipeline.planner.plan import Fragment
from pipeline.spark.warm_up.practice import fragments
from pipeline.spark.warm_up.warm_up import WarmUp


@dataclass
class Session:
    """Runs queries: each leaves a file in its folder, and may fail."""

    fails: MedusaError | None = None
    ran: list[str] = field(default_factory=list)
    batches: int = 3
    meanwhile: Callable[[], None] = lambda: None

    def practise(self, folder: Path, stop: threading.Event) -> dict[str, int]:
        """Practice; has three results."""
        self._run("practice", folder, stop)
        return {"made up": 3}

    def rehearse(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """A rehearsal; of as many batches as its topics give."""
        assert topic_ids == {}
        self._run(fragment.name, folder, stop)
        return self.batches

    def rehearse_beside(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """The same beside lanes; a lane may start meanwhile."""
        batches = self.rehearse(fragment, topic_ids, folder, stop)
        self.meanwhile()
        return batches

    def _run(self, name: str, folder: Path, stop: threading.Event) -> None:
        assert not stop.is_set()
        assert not folder.exists()
        folder.mkdir()
        (folder / "checkpoint").write_text("...")
        self.ran.append(name)
        if self.fails is not None:
            raise self.fails


def test_a_rehearsal_without_records_does_not_count(tmp_path: Path) -> None:
    """It has warmed nothing up, and is to be retried."""
    session = Session(batches=0)
    warm_up = WarmUp(session, tmp_path / "scratch")
    fragment = fragments()[0]
    assert not warm_up.rehearse(fragment, {})
    session.batches = 1
    assert warm_up.rehearse(fragment, {})
    assert not (tmp_path / "scratch").exists()


def test_errors_are_logged_and_files_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A deleted topic, for example: its lane will report it."""
    caplog.set_level("INFO")
    session = Session(fails=RefusedError("the topic does not exist"))
    warm_up = WarmUp(session, tmp_path / "scratch")
    warm_up.practise()
    assert not warm_up.rehearse(fragments()[0], {})
    assert caplog.text.count("the topic does not exist") == 2
    assert not (tmp_path / "scratch").exists()


def test_the_folder_of_a_killed_node_is_removed_first(tmp_path: Path) -> None:
    """A query would continue from that checkpoint."""
    (tmp_path / "scratch").mkdir()
    session = Session()
    WarmUp(session, tmp_path / "scratch").practise()
    assert session.ran == ["practice"]


def test_warm_up_ends_permanently_when_a_lane_starts(tmp_path: Path) -> None:
    """Both cores are needed for it."""
    session = Session()
    warm_up = WarmUp(session, tmp_path / "scratch")
    warm_up.end()
    warm_up.practise()
    assert not warm_up.rehearse(fragments()[0], {})
    assert warm_up.over
    assert session.ran == []


def test_a_session_that_has_work_rehearses_beside_it(tmp_path: Path) -> None:
    """Also after its idle time is over; the start of another lane ends it, and it has failed."""
    session = Session()
    warm_up = WarmUp(session, tmp_path / "scratch")
    warm_up.end()
    assert warm_up.rehearse_beside(fragments()[0], {}) is True
    session.batches = 0
    assert warm_up.rehearse_beside(fragments()[0], {}) is False
    session.meanwhile = warm_up.end
    assert warm_up.rehearse_beside(fragments()[0], {}) is None
    session.fails = RefusedError("the topic does not exist")
    assert warm_up.rehearse_beside(fragments()[0], {}) is None
    assert not (tmp_path / "scratch").exists()
