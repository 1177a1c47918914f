"""The projects of the examples; each document is read once, since its functions are called."""

from functools import cache
from importlib import resources
from pathlib import Path

from pipeline.deploy.documents import Document, loaded, read_document
from pipeline.examples.example import DOCUMENT
from pipeline.network.model import Network


def folder(name: str) -> Path:
    """The files that `medusa init` copies."""
    return Path(str(resources.files("pipeline.projects") / name))


@cache
def document(name: str) -> Document:
    """The document of an example."""
    return read_document(folder(name) / DOCUMENT, lambda _: None)


def network(name: str) -> Network:
    """Its network."""
    return document(name).network


def changed(name: str, now: str, then: str) -> Network:
    """Its network with a change of one place of the text; the functions are the same."""
    own = document(name)
    assert own.text.count(now) == 1
    return loaded(own.text.replace(now, then), own.file, own.schemas, own.code).network
