"""Clicks of visitors of a shop: they look, search, fill a cart, order or leave; some are robots.

The same seed and the same times give the same clicks.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

PRODUCTS = 300
THINKING_S = 8.0
"""The average time between two clicks of a visitor."""
VISITORS_MIN = 3
ROBOT_SHARE, ROBOT_CLICKS = 0.02, (5, 20)
"""A robot clicks so many times at once, and never orders."""
NEXT = {
    "come": (("home", 70), ("product", 30)),
    "home": (("search", 40), ("product", 40), ("leave", 20)),
    "search": (("product", 65), ("search", 20), ("leave", 15)),
    "product": (("product", 35), ("cart", 20), ("search", 20), ("home", 5), ("leave", 20)),
    "cart": (("order", 45), ("product", 30), ("leave", 25)),
    "order": (("home", 20), ("leave", 80)),
}
"""What a visitor does next, and how often."""
PRICE = (5.0, 250.0)
DELAY_MAX_MS = 2_000
"""A click is reported at most this long after it."""


@dataclass(frozen=True, slots=True)
class Click:
    """A click; `clicked_at` in ms since 1970 UTC. Only an order has an amount."""

    visitor: str
    action: str
    page: str
    amount: float | None
    robot: bool
    clicked_at: int


@dataclass(slots=True)
class Visitor:
    """Somebody who looks at pages, with what is in the cart."""

    name: str
    robot: bool
    action: str = "come"
    cart: float = 0.0


class Shop:
    """A shop with its visitors; one who leaves is followed by a new one.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time at which it opens.
        rate: clicks a second, which decides how many visitors there are at the same time.
    """

    def __init__(self, seed: int, start_ms: int, rate: float) -> None:
        self._random = random.Random(seed)
        self._prefix = f"{start_ms:x}"
        self._arrived = 0
        count = max(VISITORS_MIN, round(rate * THINKING_S))
        self._visitors = [self._new() for _ in range(count)]
        self._robot = self._visitors[0]
        self._robot_clicks = 0

    def clicks(self, at_ms: int, count: int) -> Iterator[Click]:
        """The next `count` clicks that are reported at `at_ms`, which must never go back."""
        for _ in range(count):
            yield self._click(at_ms)

    def _new(self) -> Visitor:
        self._arrived += 1
        robot = self._random.random() < ROBOT_SHARE
        return Visitor(f"V{self._prefix}-{self._arrived:07d}", robot)

    def _click(self, at_ms: int) -> Click:
        if self._robot_clicks > 0:
            self._robot_clicks -= 1
            return self._page(self._robot, at_ms)
        while True:
            place = self._random.randrange(len(self._visitors))
            visitor = self._visitors[place]
            if visitor.robot:
                self._visitors[place] = self._new()
                self._robot, self._robot_clicks = visitor, self._random.randint(*ROBOT_CLICKS)
                visitor.action = "product"
                return self._page(visitor, at_ms)
            actions, shares = zip(*NEXT[visitor.action], strict=True)
            visitor.action = self._random.choices(actions, shares)[0]
            if visitor.action != "leave":
                return self._page(visitor, at_ms)
            self._visitors[place] = self._new()

    def _page(self, visitor: Visitor, at_ms: int) -> Click:
        chance, amount = self._random, None
        page = f"/{visitor.action}"
        if visitor.action == "product":
            page = f"/product/{chance.randrange(PRODUCTS) + 1}"
        elif visitor.action == "cart":
            visitor.cart = round(visitor.cart + chance.uniform(*PRICE), 2)
        elif visitor.action == "order":
            amount, visitor.cart = visitor.cart, 0.0
        clicked_ms = at_ms - chance.randint(0, DELAY_MAX_MS)
        return Click(visitor.name, visitor.action, page, amount, visitor.robot, clicked_ms)
