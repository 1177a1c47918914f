"""How much one request may ask for."""

from typing import Final

BODY_BYTES_MAX: Final = 1_000_000
"""More than the store takes in one step; larger bodies are refused before they are read."""
REFERENCES_MAX: Final = 100
"""Schemas that one schema leads to, directly and through others."""
USED_CHARS_MAX: Final = 1_000_000
"""Of all these together: each is read with the types of those before it."""
PARSED_CHARS_MAX: Final = 16_000_000
"""Of all schemas that are kept parsed: however many large ones come, memory stays bounded."""
DIGESTS_MAX: Final = 100_000
"""Schemas of which a digest is kept, to tell whether another one is the same."""
PAGE_MAX: Final = 20_000
"""Entries of one answer of names and numbers; also what is given when nothing is asked for."""
SCHEMAS_MAX: Final = 1_000
"""The same for answers that hold schemas."""
