//! A look: takes all sums since the start, moves what is kept, and says what is shown.
//!
//! ```text
//! totals ─▶ arms against control ─▶ burn-in ─▶ p, harm, intervals ─▶ Holm, e-BH ─▶ decision of each arm ─▶ report
//!                                       kept: τ, running maxima ◀─┘                    kept: decided ◀─┘
//! ```

use std::collections::BTreeMap;

use super::arm::LookedArm;
use super::calendar::{Calendar, Time};
use super::decision::{Decision, State};
use super::facts::Shared;
use super::family;
use super::kept::{Kept, KeptArm, raise};
use super::planned::PLANNED_NOTE;
use super::power::Plan;
use super::progress::Known;
use super::report::Report;
use super::sequence;
use super::settings::{Settings, Unit, Validity};
use super::totals::{STICKY_NOTE, Totals};
use super::versus::{Sides, Versus};

/// Takes one look. Looks are taken in the order of time, each once, so that running maxima depend on no restart.
pub fn look(settings: &Settings, kept: &mut Kept, totals: &Totals, time: Time) -> Report {
    look_at(settings, kept, totals, &Sides::new(&totals.epochs), time)
}

/// The same, where it is known what each arm says by itself in the epochs of `totals`.
pub fn look_at(settings: &Settings, kept: &mut Kept, totals: &Totals, sides: &Sides, time: Time) -> Report {
    let calendar = Calendar::new(settings, time, kept.last_look_ms);
    kept.n_looks += 1;
    kept.last_look_ms = Some(time.as_of_ms);
    let mut arms = look_at_arms(settings, kept, totals, sides, &calendar);
    let n_treatments = arms.keys().filter(|arm| settings.tests(arm)).count();
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

/// What one look says that was fixed before anything was seen: t intervals, fixed p, no first days to wait for.
pub fn one_look(settings: &Settings, totals: &Totals, time: Time) -> Report {
    let settings = Settings {
        validity: Validity::OneLook,
        ..settings.clone()
    };
    look(&settings, &mut Kept::default(), totals, time)
}

fn look_at_arms(
    settings: &Settings,
    kept: &mut Kept,
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

/// None where users are not counted, or no shares are expected.
fn srm_p(settings: &Settings, kept: &mut Kept, totals: &Totals) -> Option<f64> {
    let is_tested = settings.unit == Unit::User && !settings.shares.is_empty();
    let now = totals.ln_bayes_factor().filter(|_| is_tested)?;
    raise(&mut kept.max_ln_bayes_factor, Some(now));
    Some(sequence::p_of(kept.max_ln_bayes_factor))
}

fn report(shared: &Shared, kept: &mut Kept, totals: &Totals, arms: &BTreeMap<String, LookedArm>) -> Report {
    let settings = shared.settings;
    let x_plan = plan(settings, shared.n_treatments).x();
    let n_compared = totals.compared(settings.sticky).len();
    let report = |(name, arm): (&String, &LookedArm)| {
        let is_tested = settings.tests(name);
        let kept = kept.arms.entry(name.clone()).or_default();
        let mut report = arm.report(is_tested, x_plan);
        report.decision = is_tested.then(|| decide(shared, arm, kept));
        (name.clone(), report)
    };
    let as_of_ms = kept.last_look_ms.unwrap_or_default();
    let grown = kept.progress.take(Known::new(settings, arms, as_of_ms));
    Report {
        arms: arms.iter().map(report).collect(),
        as_of_ms,
        grown,
        look: kept.n_looks,
        next_decision_ms: shared.calendar.next_decision_ms(),
        srm_p: shared.srm_p,
        multi_arm: shared.multi_arm,
        notes: notes(kept, n_compared < totals.epochs.len()),
    }
}

fn notes(kept: &Kept, leaves_epochs_out: bool) -> Vec<&'static str> {
    let sticky = leaves_epochs_out.then_some(STICKY_NOTE);
    let mut metrics = kept.arms.values().flat_map(|arm| arm.metrics.values());
    let planned = metrics
        .any(|metric| metric.planned_end.is_some())
        .then_some(PLANNED_NOTE);
    sticky.into_iter().chain(planned).collect()
}

/// Keeps what a decision look says. What was invalid or unknown then is no decision later.
fn decide(shared: &Shared, arm: &LookedArm, kept: &mut KeptArm) -> Decision {
    let decision = shared.facts(arm, kept.decided).decide();
    if shared.calendar.is_decision() {
        kept.decided = Some(if decision.is_fresh {
            decision.state
        } else {
            State::NoDecision
        });
    }
    decision
}

fn plan(settings: &Settings, n_treatments: usize) -> Plan {
    Plan {
        validity: settings.validity,
        has_planned_end: settings.has_planned_end(),
        alpha: settings.alpha,
        n_hypotheses: n_treatments * settings.primary.len(),
        n_guardrails: settings.guardrails.len(),
    }
}
