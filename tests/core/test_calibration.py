"""Self-correction: what converges, what one odd answer may do, and what a correction may never do."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import TokenizerProfile, text_counter
from contextshift.calibration import (
    ENOUGH_TO_LOWER,
    ENOUGH_TO_RAISE,
    FLOOR,
    LEAST,
    LEAST_PROMPT,
    MOST,
    MOST_NAMES,
    UNCORRECTED,
    CalibratedCounter,
    Calibration,
    Correction,
    calibrated,
    corrected,
    day_of,
    has_room,
    name_of,
    sample,
)
from contextshift.errors import InvalidSetting
from contextshift.estimate import EstimateCounter
from contextshift.settings import Level, Plan, check_account_settings, check_overrides, resolve
from contextshift.tokens import TokenCounter

ROUGH = TokenizerProfile("rough", approximate=True)
EXACT = TokenizerProfile("exact")
NAME = name_of(ROUGH, "m")

steps = st.integers(LEAST, MOST)
histograms = st.dictionaries(
    st.sampled_from(["rough/m", "rough/n", "other/m"]), st.dictionaries(steps, st.integers(1, 300), min_size=1)
).map(Calibration)


def observed(factors, counted=10_000, calibration=None, frozen=ROUGH) -> Calibration:
    """Collect the samples of answers whose true size is our raw count times each factor."""
    calibration = calibration or Calibration()
    for factor in factors:
        found = sample(frozen, "m", counted, round(counted * factor / frozen.ratio))
        assert found is not None
        calibration = calibration.observed(*found)
    return calibration


def step_of(calibration: Calibration) -> int:
    return calibration.correction(ROUGH, "m").step


# -- what it converges to ----------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [0.62, 0.7, 0.86, 0.98, 1.0, 1.04, 1.3, 1.96])
def test_it_converges_to_the_truth_within_a_step_and_rounds_up(truth):
    ratio = observed([truth] * ENOUGH_TO_LOWER).correction(ROUGH, "m").ratio
    assert truth <= ratio <= truth + 0.02 + 1e-9
    assert math.isclose(ratio * 50, round(ratio * 50))


@given(st.integers(0, 2**32))
def test_of_later_answers_about_one_in_a_hundred_is_counted_too_low(seed):
    dice = random.Random(seed)
    truths = [min(1.9, dice.lognormvariate(-0.15, 0.1)) for _ in range(3_000)]
    ratio = observed(truths[:1_000]).correction(ROUGH, "m").ratio
    too_low = sum(truth > ratio for truth in truths[1_000:])
    assert too_low <= 2_000 * 0.035
    assert 0.95 <= ratio <= 1.3


@pytest.mark.parametrize("truth", [0.7, 1.3])
def test_samples_taken_under_a_correction_confirm_it(truth):
    first = observed([truth] * 200)
    profile = CalibratedCounter(EstimateCounter("rough"), first.correction(ROUGH, "m")).profile
    counted = first.correction(ROUGH, "m").apply(10_000)
    found = sample(profile, "m", counted, round(10_000 * truth))
    assert found is not None
    assert found[0] == NAME
    assert found[1] == step_of(first)


def test_a_model_whose_tokenizer_has_grown_is_raised_by_its_first_hundredth():
    calm = observed([0.7] * 5_000)
    assert step_of(observed([0.95] * 60, calibration=calm)) == 48


# -- odd answers -------------------------------------------------------------------------------------


@given(st.integers(ENOUGH_TO_LOWER, 400), st.integers(30, 90), steps)
def test_one_odd_answer_moves_nothing_visible(many, usual, odd):
    calm = Calibration({NAME: {usual: many}})
    assert calm.observed(NAME, odd).correction(ROUGH, "m").step == calm.correction(ROUGH, "m").step


@given(st.dictionaries(steps, st.integers(1, 50), min_size=1), steps)
def test_one_odd_answer_never_carries_a_factor_beyond_what_another_has_shown(own, odd):
    after = Calibration({NAME: own}).observed(NAME, odd)
    assert step_of(after) <= max(UNCORRECTED, FLOOR, *own)


@pytest.mark.parametrize("factor", [0.0001, 0.4, 2.1, 1_000])
def test_samples_are_clipped(factor):
    found = sample(ROUGH, "m", 10_000, max(1, round(10_000 * factor)))
    assert found == (NAME, LEAST if factor < 1 else MOST)


@pytest.mark.parametrize("reported", [None, 0, -5, True, 12.5, "300", [300]])
def test_what_is_no_report_is_no_sample(reported):
    assert sample(ROUGH, "m", 10_000, reported) is None


def test_short_prompts_and_odd_names_are_no_samples():
    assert sample(ROUGH, "m", LEAST_PROMPT, 300) is not None
    assert sample(ROUGH, "m", LEAST_PROMPT - 1, 300) is None
    assert sample(ROUGH, "", 0, 1) is None
    for model in ("m" * 300, "\ud800", "m\n", "mödel"):
        assert sample(ROUGH, model, 10_000, 10_000) is None


# -- steps, bounds and versions ----------------------------------------------------------------------


@given(histograms)
def test_a_factor_is_a_step_within_the_bounds_and_names_its_version(calibration):
    correction = calibration.correction(ROUGH, "m")
    assert FLOOR <= correction.step <= MOST
    assert correction.ratio == correction.step / 50
    assert correction.version == (0 if correction.ratio == 1 else correction.step)
    if correction.samples < ENOUGH_TO_LOWER:
        assert correction.ratio >= 1
    if correction.samples < ENOUGH_TO_RAISE:
        assert correction.ratio == 1


@given(st.lists(steps, max_size=250))
def test_a_version_changes_exactly_when_the_factor_does(samples):
    calibration, before = Calibration(), Correction()
    for step in samples:
        calibration = calibration.observed(NAME, step)
        now = calibration.correction(ROUGH, "m")
        assert (now.version == before.version) == (now.ratio == before.ratio)
        before = now


@given(st.integers(FLOOR, MOST), st.integers(0, 10**9))
def test_corrected_counts_round_up_and_keep_the_bound(step, tokens):
    correction = Correction(step)
    counted = correction.apply(tokens)
    assert counted >= 0.6 * tokens - 1e-6
    assert 0 <= counted * 50 - tokens * step < 50
    assert (counted == 0) == (tokens == 0)
    assert correction.apply(correction.within(tokens)) <= tokens < correction.apply(correction.within(tokens) + 1)


# -- merging -----------------------------------------------------------------------------------------


@given(histograms, histograms, histograms)
def test_merging_is_commutative_and_associative_and_loses_nothing(one, other, third):
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + Calibration() == one == Calibration() + one
    assert sum(many for *_, many in one + other) == sum(many for *_, many in [*one, *other])


@given(st.lists(steps, max_size=60), st.integers(1, 5))
def test_instances_together_see_what_one_alone_would_have_seen(samples, instances):
    alone = Calibration.of((NAME, step, 1) for step in samples)
    shares = [Calibration.of((NAME, step, 1) for step in samples[i::instances]) for i in range(instances)]
    assert sum(shares, Calibration()) == alone


def test_nonsense_is_passed_over_and_nothing_is_changed_in_place():
    assert not Calibration.of([("a", LEAST - 1, 1), ("a", MOST + 1, 1), ("a", 50, 0), ("a", 50, -1)])
    one = Calibration({"a": {50: 1}})
    assert (one + one).observed("a", 51).counts == {"a": {50: 2, 51: 1}}
    assert one.counts == {"a": {50: 1}}


def test_there_is_room_for_so_many_names():
    full = Calibration({f"rough/{i}": {50: 1} for i in range(MOST_NAMES)})
    assert has_room("rough/0", full)
    assert not has_room("rough/new", full)
    assert has_room("rough/new", Calibration(), Calibration({"rough/a": {50: 1}}))


def test_days_are_counted_from_the_epoch():
    assert (day_of(0), day_of(86_399.9), day_of(86_400)) == (0, 0, 1)


# -- the counter -------------------------------------------------------------------------------------

LOW = Calibration({"estimate/m": {40: 500}})


@dataclass(frozen=True)
class Model:
    name: str


def test_a_corrected_counter_says_so_in_its_profile():
    counter = calibrated(EstimateCounter(margin=0.1), LOW, "m")
    assert isinstance(counter, TokenCounter)
    assert counter.profile == replace(EstimateCounter(margin=0.1).profile, ratio=0.8, version=40)


class ByteBound(EstimateCounter):
    def __init__(self) -> None:
        super().__init__()
        self.profile = replace(self.profile, bytes_bound=1.5)


@pytest.mark.parametrize(("step", "bound"), [(40, 1.5), (60, 1.8)])
def test_what_bytes_prove_rises_with_a_correction_and_never_falls(step, bound):
    counter = calibrated(ByteBound(), Calibration({"estimate/m": {step: 500}}), "m")
    assert counter.profile.bytes_bound == pytest.approx(bound)


@given(st.text(max_size=400), st.integers(0, 200))
def test_every_count_is_corrected_and_cuts_fit(text, limit):
    raw = EstimateCounter()
    counter = calibrated(raw, LOW, "m")
    message = {"role": "user", "content": text}
    request = {"model": "m", "messages": [message], "tools": [{"type": "function", "function": {"name": "f"}}]}
    assert counter(message) == math.ceil(raw(message) * 4 / 5)
    assert counter.fixed(request) == math.ceil(raw.fixed(request) * 4 / 5)
    assert counter.text(text) == math.ceil(raw.text(text) * 4 / 5)
    cut = counter.cut(text, limit)
    assert text.startswith(cut)
    assert counter.text(cut) <= limit


def test_exact_profiles_and_other_models_and_other_counters_are_not_corrected():
    raw = EstimateCounter()
    assert calibrated(raw, LOW, "other") is raw
    renamed = EstimateCounter("other")
    assert calibrated(renamed, LOW, "m") is renamed
    exact = text_counter(len, name="estimate")
    assert calibrated(exact, LOW, "m") is exact
    assert sample(EXACT, "m", 10_000, 9_000) is None
    assert Calibration({"exact/m": {40: 500}}).correction(EXACT, "m") == Correction()


def test_models_that_share_a_counter_and_a_correction_share_a_corrected_counter():
    raw = EstimateCounter()
    both = LOW + Calibration({"estimate/twin": {40: 900}, "estimate/third": {41: 900}})
    counter_for = corrected(lambda model: raw, both)
    assert counter_for(Model("m")) is counter_for(Model("twin")) is counter_for(Model("m"))
    assert counter_for(Model("third")).profile.ratio == 0.82
    assert counter_for(Model("plain")) is raw


def test_a_request_keeps_the_correction_it_began_with():
    counter = calibrated(EstimateCounter(), LOW, "m")
    later = LOW + Calibration({"estimate/m": {60: 500}})
    assert later.correction(EstimateCounter().profile, "m").ratio == 1.2
    assert counter.profile.ratio == 0.8


# -- the switch --------------------------------------------------------------------------------------


def test_an_account_can_switch_it_off_and_a_request_cannot():
    assert resolve(Plan("p"), {}, {}).calibration == "on"
    settings = resolve(Plan("p"), check_account_settings({"calibration": "off"}), {})
    assert (settings.calibration, settings.level("calibration")) == ("off", Level.ACCOUNT)
    assert settings.shown()["calibration"] == {"value": "off", "level": "account"}
    with pytest.raises(InvalidSetting):
        check_overrides({"calibration": "off"})
    with pytest.raises(InvalidSetting):
        check_account_settings({"calibration": False})


def test_the_profile_a_sample_is_taken_from_must_be_approximate_still_when_corrected():
    assert replace(ROUGH, ratio=0.8, version=40).approximate


def test_beside_a_counter_that_is_nearly_right_little_is_believed() -> None:
    near = TokenizerProfile("gemma3", True, 0.02, least_ratio=0.96)
    seen = Calibration({name_of(near, "m"): {LEAST: 500}})
    assert seen.correction(near, "m").step == 48
    assert seen.correction(replace(near, least_ratio=0.1), "m").step == FLOOR
