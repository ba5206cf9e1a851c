"""Self-correction: what providers report corrects a counter that only approximates.

Every answer that reports its prompt tokens is one sample: by which factor our count should have been
multiplied. Samples are kept as a histogram in steps of 2 %, by profile and model. A histogram is all that
the factor needs, and two of them merge by adding, in any order: instances share them without a lock, and
every instance derives the same factor from the same histogram.

Which factor: not the mean and not the median, under which half of the prompts would be counted too low, but
the smallest step under which 99 of 100 samples stay, because a count may be too low one time in a hundred at
most. At least the largest sample is always left out, so one odd answer never carries the factor beyond what
another answer has shown. A factor above 1 counts from `ENOUGH_TO_RAISE` samples on, one below 1 from
`ENOUGH_TO_LOWER`: too high costs some history, too low costs the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from contextshift.tokens import TokenCounter, TokenizerProfile, slack_of

__all__ = [
    "ENOUGH_TO_LOWER",
    "ENOUGH_TO_RAISE",
    "FLOOR",
    "UNCORRECTED",
    "CalibratedCounter",
    "Calibration",
    "Correction",
    "calibrated",
    "corrected",
    "day_of",
]

UNCORRECTED = 50
"""Steps in a factor of 1: one step is 2 %."""
LEAST, MOST = 25, 100
"""Samples are clipped to these steps, 0.5 and 2."""
FLOOR = 30
"""The lowest step that is ever used, 0.6; a profile may say that it is nearer (`TokenizerProfile.least_ratio`).

The estimate counts English, its most generous script, 1.7 times as high as the densest tokenizer it was
measured against (see `estimate`), and 0.6 is one over that: an account that has only ever sent what the estimate
overrates most is corrected as far as that tokenizer allows, and no further."""
ENOUGH_TO_RAISE = 8
ENOUGH_TO_LOWER = 100
LEAST_PROMPT = 256
"""Counted tokens from which an answer is a sample. A shorter prompt tells of a request's fixed costs rather than
of its texts, and of rounding; and it fits anyway."""
MOST_NAMES = 16
"""Profiles and models of one account, beyond which new ones are not kept: every call reads them all, in 0.2 ms for two
models and in 2.3 ms for 16 that use 30 steps on both days (boto3 and we, 2026-11)."""
_LONGEST_NAME = 200
_ONE_IN = 100
_DAY = 86_400


def day_of(now: float) -> int:
    """Return the day, counted from the epoch, under which samples of this moment are kept."""
    return int(now // _DAY)


@dataclass(frozen=True, slots=True)
class Correction:
    """The factor for one model, as it holds for one request. ``1`` and version 0 until there are enough samples."""

    step: int = UNCORRECTED
    samples: int = 0

    @property
    def ratio(self) -> float:
        """The factor, a multiple of 0.02 between 0.6 and 2."""
        return self.step / UNCORRECTED

    @property
    def version(self) -> int:
        """Names the factor in force, 0 for none.

        It is the step itself, so it changes exactly when the factor does, and on all instances and days equal
        versions mean equal counts.
        """
        return 0 if self.step == UNCORRECTED else self.step

    def apply(self, tokens: int) -> int:
        """Return a count corrected, rounded up: what costs anything never becomes free."""
        return -(-tokens * self.step // UNCORRECTED)

    def within(self, limit: int) -> int:
        """Return the largest count that is at most ``limit`` once it is corrected."""
        return limit * UNCORRECTED // self.step


@dataclass(frozen=True, slots=True)
class Calibration:
    """Histograms of samples by profile and model; immutable, and merged by adding.

    >>> one = Calibration().observed("estimate/m", 43).observed("estimate/m", 44)
    >>> (one + one).counts
    {'estimate/m': {43: 2, 44: 2}}
    """

    counts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """How many samples were at a step, by `name_of` and step."""

    @classmethod
    def of(cls, samples: Iterable[tuple[str, int, int]]) -> Calibration:
        """Make one of (name, step, how many); what cannot be a sample is passed over."""
        counts: dict[str, dict[int, int]] = {}
        for name, step, many in samples:
            if LEAST <= step <= MOST and many > 0:
                own = counts.setdefault(name, {})
                own[step] = own.get(step, 0) + many
        return cls(counts)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        """Yield (name, step, how many)."""
        return ((name, step, many) for name, own in self.counts.items() for step, many in own.items())

    def __add__(self, other: Calibration) -> Calibration:
        """Return the samples of both."""
        return Calibration.of([*self, *other]) if self and other else self or other

    def observed(self, name: str, step: int) -> Calibration:
        """Return these and one more sample."""
        return self + Calibration.of([(name, step, 1)])

    def correction(self, profile: TokenizerProfile, model: str) -> Correction:
        """Return what holds for a model that ``profile`` counts; an exact profile is never corrected."""
        if not profile.approximate:
            return Correction()
        floor = max(FLOOR, round(profile.least_ratio * UNCORRECTED))
        return _correction(self.counts.get(name_of(profile, model), {}), floor)


def name_of(profile: TokenizerProfile, model: str) -> str:
    """Return the name of a histogram: samples of another counter would not correct this one."""
    return f"{profile.name}/{model}"


def sample(profile: TokenizerProfile, model: str, counted: int, reported: object) -> tuple[str, int] | None:
    """Return the histogram and the step of one answer; None for one that corrects nothing.

    ``counted`` is what ``profile`` made of the whole prompt, its correction included: that is taken into
    account. A factor between two steps goes to the upper one.
    """
    name = name_of(profile, model)
    if not profile.approximate or counted < LEAST_PROMPT or len(name) > _LONGEST_NAME:
        return None
    if not isinstance(reported, int) or isinstance(reported, bool) or reported <= 0:
        return None
    if not (name.isascii() and name.isprintable()):
        return None
    step = -(-reported * round(profile.ratio * UNCORRECTED) // counted)
    return name, min(MOST, max(LEAST, step))


def has_room(name: str, *kept: Calibration) -> bool:
    """Say whether a histogram of this name may be kept beside those that are."""
    names = {known for calibration in kept for known in calibration.counts}
    return name in names or len(names) < MOST_NAMES


def _correction(own: Mapping[int, int], floor: int) -> Correction:
    samples = sum(own.values())
    if samples < ENOUGH_TO_RAISE:
        return Correction(samples=samples)
    left_out = max(1, samples // _ONE_IN)
    for step in sorted(own, reverse=True):
        left_out -= own[step]
        if left_out < 0:
            break
    if step < UNCORRECTED and samples < ENOUGH_TO_LOWER:
        return Correction(samples=samples)
    return Correction(max(floor, step), samples)


# -- the counter -------------------------------------------------------------------------------------


class CalibratedCounter:
    """A `TokenCounter` whose every count is another's, corrected and rounded up; its profile says by how much."""

    def __init__(self, counter: TokenCounter, correction: Correction) -> None:
        self._counter = counter
        self._correction = correction
        profile, ratio = counter.profile, correction.ratio
        # What a byte makes at the most was proved without what providers have reported: it may rise, not fall.
        bound = None if profile.bytes_bound is None else profile.bytes_bound * max(1.0, ratio)
        self.profile = replace(profile, ratio=ratio, version=correction.version, bytes_bound=bound)

    def __call__(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one whole message."""
        return self._correction.apply(self._counter(message))

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Return what the request costs beside its messages."""
        return self._correction.apply(self._counter.fixed(request))

    def slack(self, request: Mapping[str, Any]) -> int:
        """Return what ``fixed`` may be under by."""
        return self._correction.apply(slack_of(self._counter, request))

    def text(self, text: str) -> int:
        """Return the tokens of a bare text."""
        return self._correction.apply(self._counter.text(text))

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` corrected tokens."""
        return self._counter.cut(text, self._correction.within(limit))


class Named(Protocol):
    """A model, as far as it matters here."""

    @property
    def name(self) -> str:
        """Its name in the catalogue."""


_Model = TypeVar("_Model", bound=Named)


def calibrated(counter: TokenCounter, calibration: Calibration, model: str) -> TokenCounter:
    """Return the counter corrected for a model; itself where nothing is to be corrected."""
    correction = calibration.correction(counter.profile, model)
    return counter if correction.step == UNCORRECTED else CalibratedCounter(counter, correction)


def corrected(
    counter_for: Callable[[_Model], TokenCounter], calibration: Calibration
) -> Callable[[_Model], TokenCounter]:
    """Return ``counter_for`` with corrections, for one request: they stay as they are however long it takes.

    Models that share a counter and a correction share a corrected counter, so nothing is counted twice.
    """
    if not calibration:
        return counter_for
    made: dict[tuple[int, int], TokenCounter] = {}

    def of(model: _Model) -> TokenCounter:
        counter = counter_for(model)
        step = calibration.correction(counter.profile, model.name).step
        if (id(counter), step) not in made:
            made[id(counter), step] = calibrated(counter, calibration, model.name)
        return made[id(counter), step]

    return of
