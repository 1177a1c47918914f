"""Limits of requests, caches and answers."""

from typing import Final

BODY_BYTES_MAX: Final = 1_000_000
"""More than the store accepts in one step; larger bodies are refused before they are read."""
REFERENCES_MAX: Final = 100
"""Schemas that one schema refers to, directly and through others."""
USED_CHARS_MAX: Final = 1_000_000
"""Of all these together: each is parsed with the types of those before it."""
PARSED_CHARS_MAX: Final = 16_000_000
"""Of all cached parsed schemas: memory stays bounded, whatever schemas are sent."""
DIGESTS_MAX: Final = 100_000
"""Cached digests of schemas, which are compared for equality."""
PAGE_MAX: Final = 20_000
"""Entries of one answer of names and numbers; also the default of `limit`."""
SCHEMAS_MAX: Final = 1_000
"""The same for answers that contain schemas."""
