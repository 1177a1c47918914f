"""Validation of untrusted JSON: answers of a registry, lines of a file. Pure."""

import json
import re
from typing import Final, NoReturn

from schemas.json_value import Json, parts_of

DEPTH_MAX: Final = 64
"""Schemas are texts in such a value, so valid values are far below this."""
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(content: bytes | str, depth_max: int = DEPTH_MAX) -> Json:
    """Parse JSON in which every text can be encoded as UTF-8.

    Args:
        content: the JSON text.
        depth_max: limit of nested lists and objects.

    Raises:
        ValueError: it is invalid; the message continues "it is".
    """
    try:
        text = content.decode() if isinstance(content, bytes) else content
        value: Json = json.loads(text, parse_constant=_no_number)
        if _deeper(value, depth_max):
            raise ValueError(f"nested more than {depth_max} deep")
        text.encode()
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(f"nested more than {depth_max} deep") from error
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8 text") from error
    except UnicodeEncodeError as error:
        raise ValueError("no text: it has half of a surrogate pair") from error
    except json.JSONDecodeError as error:
        raise ValueError("not JSON") from error
    return value


def is_text(word: str) -> bool:
    """Whether a text can be encoded as UTF-8; typed and unescaped texts may not."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def of_type(value: Json, kind: type) -> bool:
    """Whether a JSON value is of a type; true and false are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"not JSON: {word} is no number")


def _deeper(value: Json, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        level = [part for one in level for part in parts_of(one)]
    return bool(level)
