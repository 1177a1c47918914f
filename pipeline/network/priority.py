"""`priority` of a network, an output or a box: which fragments run if there is not room for all."""

from typing import Final

from pipeline.ids import BoxName
from pipeline.network.declared import Declared
from pipeline.network.fields import Fields
from pipeline.priority import Priority

PRIORITY: Final = "priority"
_PRIORITIES = tuple(one.value for one in Priority)


def read_priority(fields: Fields, of: BoxName | None) -> Declared[Priority]:
    """Read the key `priority`; mistakes are reported.

    Args:
        fields: the entries of the document, the output or the box.
        of: the box, or the box of the output; None: the network.
    """
    word = fields.choice(PRIORITY, _PRIORITIES, "")
    return Declared(of, Priority(word) if word else None, fields.line_of(PRIORITY))
