"""Hypothesis strategy for diagrams of any shape."""

from hypothesis import strategies as st

from pipeline.network.drawing.picture import DrawnBox, Inflow, Part, Picture


@st.composite
def parts(draw: st.DrawFn, name: str = "") -> Part:
    """A group of a few streams and boxes, each box behind its inputs."""
    inflows = tuple(Inflow(f"s{i}", f"topic-{i}") for i in range(draw(st.integers(1, 3))))
    names = [inflow.name for inflow in inflows]
    found = []
    for i in range(draw(st.integers(0, 9))):
        inputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        topics = (f"out-{name}-{i}",) if draw(st.booleans()) else ()
        found.append(DrawnBox(f"b{i}", "union", tuple(inputs), topics))
        names.append(f"b{i}")
    return Part(inflows, tuple(found), name)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """One group without a border, or several with one."""
    count = draw(st.integers(0, 3))
    named = tuple(draw(parts(f"fragment f{i}")) for i in range(count))
    return Picture("generated", named or (draw(parts()),))
