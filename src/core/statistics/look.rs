//! A look: turns all sums since the start into a report, and updates the kept state.
//!
//! ```text
//! totals ─▶ arms against control ─▶ burn-in ─▶ p, harm, bands ─▶ Holm, e-BH ─▶ decision of each arm ─▶ report
//!                                       kept: τ, running maxima ◀─┘                kept: decided ◀─┘
//! ```

use std::collections::BTreeMap;

use super::arm::LookedArm;
use super::calendar::{Calendar, LookSpan};
use super::days;
use super::decision::{ArmState, Basis, Decision, dated};
use super::facts::Shared;
use super::family;
use super::guardrail::GuardrailReport;
use super::notes::{notes, notes_on_arms, open_again, open_again_note, open_again_reason};
use super::power::PlannedTest;
use super::progress::{InformationGrowth, Known};
use super::report::{ArmReport, ComparisonReport, MetricDecision};
use super::sequence;
use super::settings::{Settings, Unit, Validity};
use super::test_state::{DecidedAt, DecidedLook, KeptArm, TestState, raise};
use super::totals::{STICKY_NOTE, Totals};
use super::units::UnitShares;
use super::versus::{Sides, Versus};
use super::waiting::Waiting;

/// Takes one look. Looks must be taken in order of time, each once, so that running maxima do not depend on restarts.
pub fn look(settings: &Settings, kept: &mut TestState, totals: &Totals, time: LookSpan) -> ComparisonReport {
    look_at(settings, kept, totals, &Sides::new(&totals.epochs), time)
}

/// Takes one look with the arms of `totals` already prepared as `sides`.
pub fn look_at(
    settings: &Settings,
    kept: &mut TestState,
    totals: &Totals,
    sides: &Sides,
    time: LookSpan,
) -> ComparisonReport {
    // The calendar needs the time of the look before, which is overwritten next.
    let calendar = Calendar::new(settings, time, kept.last_look_ms);
    kept.n_looks += 1;
    kept.last_look_ms = Some(time.as_of_ms);
    let mut arms = look_at_arms(settings, kept, totals, sides, &calendar);
    let n_treatments = arms.keys().filter(|arm| settings.tests(arm)).count();
    // Corrections take the p of all arms together, so decisions must wait for them.
    family::correct(settings, n_treatments, &mut arms);
    let shared = Shared {
        settings,
        calendar,
        srm_p: srm_p(settings, kept, totals),
        multi_arm: totals.multi_arm().filter(|_| settings.unit == Unit::User),
        n_treatments,
    };
    report(&shared, kept, totals, &arms)
}

/// Takes a single look that was fixed in advance, with t intervals, fixed p and no first days to wait for.
pub fn one_look(settings: &Settings, totals: &Totals, time: LookSpan) -> ComparisonReport {
    let settings = Settings {
        validity: Validity::OneLook,
        ..settings.clone()
    };
    look(&settings, &mut TestState::default(), totals, time)
}

fn look_at_arms(
    settings: &Settings,
    kept: &mut TestState,
    totals: &Totals,
    sides: &Sides,
    calendar: &Calendar,
) -> BTreeMap<String, LookedArm> {
    let n_compared = totals.compared(settings.sticky).len();
    let treatments = totals
        .arms(settings)
        .into_iter()
        .filter(|arm| *arm != settings.control);
    let look = |arm: String| {
        let kept = kept.arms.entry(arm.clone()).or_default();
        let versus = Versus::new(sides, n_compared, &arm, &settings.control);
        let looked = LookedArm::new(&versus, settings, calendar, kept);
        (arm, looked)
    };
    treatments.map(look).collect()
}

/// Computes the p of the sample ratio. None if users are not counted, or no shares are expected.
fn srm_p(settings: &Settings, kept: &mut TestState, totals: &Totals) -> Option<f64> {
    let is_tested = settings.unit == Unit::User && !settings.shares.is_empty();
    let now = totals.ln_bayes_factor().filter(|_| is_tested)?;
    // The largest factor so far decides, so the test is valid at every look.
    raise(&mut kept.max_ln_bayes_factor, Some(now));
    Some(sequence::p_of(kept.max_ln_bayes_factor))
}

fn report(
    shared: &Shared,
    kept: &mut TestState,
    totals: &Totals,
    arms: &BTreeMap<String, LookedArm>,
) -> ComparisonReport {
    let settings = shared.settings;
    let x_plan = plan(shared).x();
    let n_compared = totals.compared(settings.sticky).len();
    let report = |(name, arm): (&String, &LookedArm)| {
        let is_tested = settings.tests(name);
        let units = UnitShares::new(totals, settings, name);
        let kept_arm = kept.arms.entry(name.clone()).or_default();
        let mut report = arm.report(is_tested, x_plan);
        let incomparable = shared.facts(arm, &units, None).incomparable();
        if is_tested {
            let decision = decide(shared, arm, &units, kept.n_looks, kept_arm);
            // A failed check and harm suspend an earlier decision: its numbers would contradict the state.
            if decision.basis != Basis::Check {
                report.decided.clone_from(&kept_arm.decided);
            }
            report.decision = Some(decision);
        }
        report.refused = units.refused.shares;
        report.notes = notes(name, arm, &units, settings);
        if let Some(decided) = &report.decided {
            report.open_again = open_again(arm, decided);
            if let (Some(metric), Some(decision)) = (&report.open_again, &mut report.decision) {
                decision.reason = open_again_reason(&decision.reason, metric);
            }
            let note = report.open_again.as_ref().zip(decided.at);
            report
                .notes
                .extend(note.map(|(metric, at)| open_again_note(metric, at.day)));
        }
        // A state without a decision, or for an earlier reason, does not explain why numbers are missing.
        let is_explained = report.decision.as_ref().map(|decision| &decision.reason) == incomparable.as_ref();
        if let Some(reason) = incomparable.as_ref().filter(|_| !is_explained) {
            report
                .notes
                .push(format!("not comparable with {}: {reason}", settings.control));
        }
        // An earlier version left neither the time nor the numbers of its decision.
        let decided = report.decided.as_ref();
        if let Some((at, decided)) = decided.and_then(|decided| Some((decided.at?, decided))) {
            for (id, metric) in &decided.metrics {
                if let Some(shown) = report.metrics.get_mut(id) {
                    shown.decision = Some(MetricDecision { at, metric: *metric });
                }
            }
        }
        if is_tested {
            judge_guardrails(settings, arm, &mut report);
        }
        // Last, because decisions and notes above still need the numbers.
        if let Some(reason) = incomparable {
            report.withhold(reason);
        }
        (name.clone(), report)
    };
    let mut arms_report: BTreeMap<String, ArmReport> = arms.iter().map(report).collect();
    let sticky_note = (n_compared < totals.epochs.len()).then_some(STICKY_NOTE);
    let as_of_ms = kept.last_look_ms.unwrap_or_default();
    let grown = kept.progress.take(Known::new(settings, arms, as_of_ms));
    add_waiting(shared, &grown, &mut arms_report);
    ComparisonReport {
        arms: arms_report,
        as_of_ms,
        grown,
        look: kept.n_looks,
        next_decision_ms: shared.calendar.next_decision_ms(),
        planned_end_ms: shared.calendar.planned_end_ms(),
        srm_p: shared.srm_p,
        multi_arm: shared.multi_arm,
        notes: sticky_note
            .map(str::to_owned)
            .into_iter()
            .chain(notes_on_arms(totals))
            .collect(),
    }
}

/// Adds the states of an arm's guardrails: by the current decision if there is one, else by this look.
fn judge_guardrails(settings: &Settings, arm: &LookedArm, report: &mut ArmReport) {
    let decision = report.decision.as_ref();
    let is_decided = decision.is_some_and(|decision| decision.state.is_decision());
    for (id, margin) in &settings.guardrails {
        let (Some(metric), Some(looked)) = (report.metrics.get_mut(id), arm.metrics.get(id)) else {
            continue;
        };
        let decided = metric.decision.filter(|_| is_decided);
        let at_this_look = looked.judged.and_then(|judged| judged.at_decision);
        // Numbers of a decision must not change while it is in force.
        let interval = match (decided, at_this_look) {
            (Some(decided), _) => decided.metric.interval,
            (None, Some(at_this_look)) => at_this_look.interval,
            (None, None) => metric.interval,
        };
        metric.guardrail = Some(GuardrailReport::new(
            *margin,
            interval,
            interval.and_then(|interval| looked.measure.oriented_lift(interval)),
            settings.lower_is_better.contains(id),
            metric.harm_since_ms.is_some(),
        ));
    }
}

/// Adds the days that primaries need, and the conditions that arms without a decision have not met.
fn add_waiting(shared: &Shared, grown: &InformationGrowth, arms: &mut BTreeMap<String, ArmReport>) {
    let settings = shared.settings;
    let days = days::until_decisions(settings, grown, shared.n_treatments);
    for (name, arm) in arms {
        for (id, days) in days.get(name).into_iter().flatten() {
            if let Some(shown) = arm.metrics.get_mut(id) {
                shown.days_needed = Some(*days);
            }
        }
        arm.waiting = Waiting::of(settings, arm, shared.calendar.days());
    }
}

/// Decides an arm, and keeps the result of a decision look. A check that fails at one ends the current decision.
fn decide(shared: &Shared, arm: &LookedArm, units: &UnitShares, look: u64, kept: &mut KeptArm) -> Decision {
    let facts = shared.facts(arm, units, kept.decided.as_ref());
    let mut decision = facts.decide();
    let calendar = &shared.calendar;
    let Some(decision_look) = calendar.decision() else {
        return decision;
    };
    let state = match decision.basis {
        Basis::ThisLook => decision.state,
        // A check that fails at a decision look withdraws the decision.
        Basis::Check => ArmState::NoDecision,
        Basis::Earlier => return decision,
    };
    // Numbers of a failed check are not kept either, or they would be shown once the check passes again.
    let metrics = arm.metrics.iter().filter(|_| decision.basis == Basis::ThisLook);
    let (as_of_ms, day) = (calendar.as_of_ms(), calendar.day());
    // The same state again confirms the earlier decision. Any other state at a decision look has replaced it.
    let earlier = kept.decided.as_ref().filter(|earlier| earlier.state == state);
    let (since_ms, since_day) = earlier
        .and_then(|earlier| earlier.at)
        .map_or((as_of_ms, day), |at| (at.since_ms, at.since_day));
    let at = DecidedAt {
        look,
        as_of_ms,
        since_ms,
        day,
        since_day,
        k: decision_look.k,
    };
    let decided = DecidedLook {
        state,
        reason: decision.reason.clone(),
        at: Some(at),
        metrics: metrics
            .filter_map(|(id, metric)| Some((id.clone(), metric.decided()?)))
            .collect(),
    };
    // The reason of a decision on a file has no day, because a file is looked at once.
    if decided.is_decision() && shared.settings.validity != Validity::OneLook {
        decision.reason = dated(&decided.reason, at);
    }
    kept.decided = Some(decided);
    decision
}

/// Returns the plan of this decision look, or else of the next one.
fn plan(shared: &Shared) -> PlannedTest {
    let settings = shared.settings;
    PlannedTest {
        validity: settings.validity,
        look: shared.calendar.decision_or_next(),
        alpha: settings.alpha,
        n_hypotheses: shared.n_treatments * settings.primary.len(),
        n_guardrails: settings.guardrails.len(),
    }
}
