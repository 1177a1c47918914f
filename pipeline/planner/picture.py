"""A plan as a picture: one part for each fragment, with the topics between them."""

from pipeline.network.drawing.picture import DrawnBox, Inflow, Part, Picture
from pipeline.planner.plan import Fragment, Plan


def fragments_picture(plan: Plan) -> Picture:
    """The planned boxes, grouped by the fragments that compute them."""
    return Picture(str(plan.network), tuple(_part(fragment) for fragment in plan.fragments))


def _part(fragment: Fragment) -> Part:
    last = fragment.boxes[-1].name
    return Part(
        inflows=tuple(Inflow(str(s.name), str(s.topic)) for s in fragment.inputs),
        boxes=tuple(
            DrawnBox(
                name=str(box.name),
                kind=box.kind,
                inputs=tuple(map(str, box.inputs)),
                topics=(str(fragment.output.topic),) if box.name == last else (),
            )
            for box in fragment.boxes
        ),
        name=f"fragment {fragment.name}",
    )
