//! List ratio: a check at every look that an arm does not change how many lists a user gets. It needs no counts of users.
//!
//! The two-sided test of lists per assigned user with τ = 0.03. It needs buckets, but no clicks.

use super::effect::Effect;
use super::measure::half_width;
use super::per_user::{LISTS_PER_USER, per_user_of};
use super::report::ListRatio;
use super::sequence;
use super::settings::{Settings, Validity};
use super::test_state::{KeptArm, raise};
use super::versus::Versus;

/// Difference that the test is designed for.
pub const TAU: f64 = 0.03;

/// Takes a look, once both arms have the buckets for burn-in. None without shares.
pub(super) fn look(versus: &Versus, settings: &Settings, kept: &mut KeptArm) -> Option<ListRatio> {
    let effect = per_user_of(&versus.counts(LISTS_PER_USER), settings.epoch_weights)?.effect;
    raise(
        &mut kept.max_ln_e_list_ratio,
        surprise(&effect, settings.validity),
    );
    let half_width = half_width(&effect, TAU, settings.validity, settings.alpha);
    let interval = super::Interval::around(effect.value, half_width);
    Some(ListRatio {
        g: effect.value,
        value: sequence::finite(effect.value.exp())?,
        // The ratio is e^g, and not e^g − 1.
        interval: interval
            .and_then(|interval| interval.exp_m1())
            .map(|lift| lift.shifted(1.0)),
        p: sequence::p_of(kept.max_ln_e_list_ratio),
    })
}

fn surprise(effect: &Effect, validity: Validity) -> Option<f64> {
    match validity {
        Validity::OneLook => sequence::finite(effect.surprise_at_one_look()),
        _ => sequence::ln_e_now(effect, TAU),
    }
}
