"""A document read piece by piece gives the same nodes and places as one composed whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentloom.syntax.backend import with_line_feeds
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.moving import moved
from agentloom.syntax.pieces import find_body
from agentloom.syntax.reader import Reader
from tests.syntax.support import check_ranges, documents, drawn, line_ends


@given(documents(), line_ends(), st.booleans())
def test_pieces_equal_the_whole(text: str, line_end: str, mark: bool) -> None:
    """Every valid document: same nodes, same places, nothing to say but of duplicate keys; every broken one has a finding."""
    text = text.replace("\n", line_end)
    end = find_body(with_line_feeds(text)).end
    composed = compose(text[:end])
    tree = Reader().read("\ufeff" * mark + text)
    for finding in tree.findings:
        check_ranges(tree.text, finding)
    codes = {finding.code for finding in tree.findings}
    if isinstance(composed, Composed):
        assert codes <= {"AL002"}
        expected = moved(composed.node, int(mark), {}) if composed.node is not None else None
        assert drawn(tree.root) == drawn(expected)
    else:
        assert codes & {"AL001", "AL006", "AL011"}
