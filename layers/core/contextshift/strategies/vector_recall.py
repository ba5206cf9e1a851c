"""``vector-recall``: what has least to do with the question leaves first; old history is shortened before it goes.

Relevance stands on the block (``meta.relevance``, 0 to 1: the service puts it there from embeddings). Where it
does not, a lexical scorer supplies it: BM25 against the current user input.
"""

from __future__ import annotations

from contextshift.lexical import bm25
from contextshift.messages import meta_number
from contextshift.strategies.base import Proposal, Situation, with_text
from contextshift.strategies.leaving import Leaving, Shelves, breakpoints_last, shelve
from contextshift.strategies.texts import all_text, cutter, plain_text
from contextshift.tokens import count_one

__all__ = ["VectorRecall"]

SHORTEST = 8
"""Tokens below which a message is not worth shortening: it leaves instead."""
KEPT_SHARE = 4
"""A shortened message keeps at least the first 1/4 of its tokens."""
_UNSET = -1.0


class VectorRecall:
    """Memories and optional lore leave by rising relevance; then old text is shortened, oldest first; then it leaves.

    ::

        before  S  L(.9) L(.1)  U1"a long story" A1  U2        after  S  L(.9)  U1"a long" A1  U2
    """

    id = "vector-recall"
    acts_when_fitting = False

    def propose(self, situation: Situation) -> Proposal:
        """Remove the irrelevant, shorten the old, and remove it only where shortening is not enough."""
        leaving = Leaving(situation)
        shelves = shelve(situation)
        leaving.orphans()
        leaving.until_it_fits([*shelves.added, *shelves.examples])
        if leaving.over > 0:
            leaving.until_it_fits(_by_relevance(situation, shelves))
        needed = leaving.over
        leaving.in_steps()
        shortened, saved = _shorten(situation, leaving, shelves)
        # What shortening could not free is removed, in steps of its own: the cut then stays put, too.
        leaving.over = needed - saved
        leaving.in_steps()
        leaving.until_it_fits(breakpoints_last(situation, shelves.history))
        texts = {index: text for index, text in shortened.items() if index not in leaving.gone}
        return Proposal(leaving.gone, texts)


def _by_relevance(situation: Situation, shelves: Shelves) -> list[int]:
    """Return memories and lore, least relevant first; of equals the older."""
    indices = sorted([*shelves.memories, *shelves.lore])
    relevance = {index: meta_number(situation.messages[index], "relevance", _UNSET) for index in indices}
    unrated = [index for index in indices if relevance[index] < 0]
    if unrated and situation.current is not None:
        query = all_text(situation.messages[situation.current])
        scores = bm25(query, [all_text(situation.messages[index]) for index in unrated])
        relevance.update(zip(unrated, scores, strict=True))
    return sorted(indices, key=lambda index: relevance[index])


def _shorten(situation: Situation, leaving: Leaving, shelves: Shelves) -> tuple[dict[int, str], int]:
    """Shorten plain texts of history, oldest first, until enough is free; return them and the tokens saved.

    Calls and parts are never touched.
    """
    cut = cutter(situation.count)
    tokens = list(situation.tokens)
    shortened: dict[int, str] = {}
    saved = 0
    for index in shelves.history:
        if saved >= leaving.over:
            break
        text = plain_text(situation.messages[index])
        if text is None or index in leaving.gone or situation.groups.of[index] in situation.protected:
            continue
        target = max(SHORTEST, tokens[index] // KEPT_SHARE, tokens[index] - (leaving.over - saved))
        short = cut(text, target, index) if target < tokens[index] else text
        if not short or short == text:
            continue
        after = count_one(situation.count, with_text(situation.messages[index], short), index)
        if after < tokens[index]:
            saved += tokens[index] - after
            tokens[index], shortened[index] = after, short
    leaving.tokens = tokens
    return shortened, saved
