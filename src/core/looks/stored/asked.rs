//! Settings of an experiment as bytes, for comparison: equal settings have equal bytes.

use super::numbers::{float, map, names, option};
use crate::bytes::Writer;
use crate::statistics::{EpochWeights, Goal, Settings, Unit, Validity};

/// Encodes settings. Empty without a control.
pub fn asked(settings: Option<&Settings>) -> Vec<u8> {
    let mut to = Writer::default();
    settings
        .into_iter()
        .for_each(|settings| encode(settings, &mut to));
    to.into_bytes()
}

fn encode(settings: &Settings, to: &mut Writer) {
    // All fields by name, so that no new setting is left out of the comparison by accident.
    let Settings {
        control,
        shares,
        primary,
        guardrails,
        mde,
        alpha,
        min_days,
        planned_days,
        validity,
        goal,
        unit,
        sticky,
        lower_is_better,
        list_ratio_margin,
        epoch_weights,
    } = settings;
    to.text(control);
    map(to, shares, |to, share| float(to, *share));
    names(to, primary.iter());
    map(to, guardrails, |to, margin| float(to, *margin));
    [mde, alpha, min_days, list_ratio_margin]
        .into_iter()
        .for_each(|number| float(to, *number));
    option(to, planned_days.as_ref(), |to, days| float(to, *days));
    to.byte(match validity {
        Validity::Sequence => 0,
        Validity::Strict => 1,
        Validity::OneLook => 2,
    });
    to.byte(match goal {
        Goal::Superior => 0,
        Goal::NonInferior => 1,
    });
    to.byte(match unit {
        Unit::User => 0,
        Unit::Request => 1,
    });
    to.byte(u8::from(*sticky));
    names(to, lower_is_better.iter());
    to.byte(match epoch_weights {
        EpochWeights::Overlap => 0,
        EpochWeights::Lists => 1,
    });
}
