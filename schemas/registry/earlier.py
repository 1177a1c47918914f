"""Schemas that an earlier version of Medusa kept in a form of its own are taken over, once.

    <earlier>/counter, ids/<id>, contents/<key>, subjects/<subject>, level, levels/<subject>

Ids, versions and levels stay what they were. What was taken over is removed at the end; whoever is
stopped in between does it again, and changes nothing twice.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from brokers.versioned_store import Delete, NoSuchPathError, VersionedStore
from pipeline.ids import ZnodePath
from schemas.compatibility import Level
from schemas.json_value import JsonObject, list_of, number_of, object_of, text_of
from schemas.registry.config import Config
from schemas.registry.content import Content, Guid, guid_of, kept
from schemas.registry.names import DEFAULT, SubjectName
from schemas.registry.registry import Registry
from schemas.registry.state import (
    Change,
    ConfigPut,
    ContentPut,
    Decided,
    Ids,
    State,
    SubjectPut,
    Version,
)

_FOLDERS: Final = ("ids", "contents", "subjects", "levels")


def take_over(store: VersionedStore, earlier: ZnodePath, registry: Registry, now_ms: int) -> int:
    """Take over what an earlier version kept; gives how many versions of subjects there were.

    Raises:
        UnavailableError: the store does not answer.
    """
    contents = dict(_contents(store, earlier))
    if not contents:
        return 0
    ids: dict[Guid, Ids] = {}
    for number, content in contents.items():
        guid = guid_of(content)
        ids[guid] = (*ids.get(guid, ()), (DEFAULT, number))
    count = 0
    for number, content in contents.items():
        guid = guid_of(content)
        if ids[guid][0][1] == number:
            _put(registry, ContentPut(guid, content, ids[guid]))
    for subject, found in _values(store, earlier, "subjects"):
        versions = tuple(
            _version(object_of(one), contents, now_ms) for one in list_of(found["versions"])
        )
        count += len(versions)
        _put(registry, SubjectPut(SubjectName.parse(subject), versions))
    for subject, found in _values(store, earlier, "levels"):
        _put(registry, ConfigPut(SubjectName.parse(subject), Config(level=Level(found["level"]))))
    general = store.get(f"{earlier}/level")
    if general is not None:
        level = Level(json.loads(general.value)["level"])
        _put(registry, ConfigPut(SubjectName(DEFAULT, ""), Config(level=level)))
    _remove(store, earlier)
    return count


def _version(found: JsonObject, contents: Mapping[int, Content], now_ms: int) -> Version:
    number = number_of(found["id"])
    return Version(number_of(found["version"]), number, guid_of(contents[number]), now_ms)


def _contents(store: VersionedStore, earlier: ZnodePath) -> Iterator[tuple[int, Content]]:
    for name, found in _values(store, earlier, "ids"):
        text, _ = kept(text_of(found["schema"]), (), normal=False)
        yield int(name), Content(text)


def _values(
    store: VersionedStore, earlier: ZnodePath, folder: str
) -> Iterator[tuple[str, JsonObject]]:
    for node in store.children(f"{earlier}/{folder}"):
        found = store.get(f"{earlier}/{folder}/{node}")
        if found is not None:
            yield unquote(node), json.loads(found.value)


def _put(registry: Registry, change: Change) -> None:
    def decide(state: State) -> Decided[None]:
        return Decided(None, () if state.after((change,)) == state else (change,))

    registry.change(decide)


def _remove(store: VersionedStore, earlier: ZnodePath) -> None:
    """The ids at last: as long as they are there, it is not done."""
    paths = [
        f"{earlier}/{folder}/{node}"
        for folder in reversed(_FOLDERS)
        for node in store.children(f"{earlier}/{folder}")
    ]
    folders = [f"{earlier}/{folder}" for folder in reversed(_FOLDERS)]
    for path in (f"{earlier}/level", *paths, *folders, f"{earlier}/counter", str(earlier)):
        try:
            store.apply((Delete(path, None),))
        except NoSuchPathError:
            continue
