//! Rows of the table, one file per topic.

mod coverage;
mod decisions;
mod effects;
mod first_view;
mod no_effect;
mod units;
mod users;

use super::row::Row;
use super::scenario::Scale;

pub use self::coverage::{coverage, misses};
pub use self::decisions::{Change, Course, changing, constant, course, eight_weeks};
pub use self::effects::{harm, power};
pub use self::first_view::first_view;
pub use self::no_effect::{holm, no_effect, ramp};
pub use self::units::{crawler, without_id};
pub use self::users::{list_ratio, more_lists, sample_ratio, wrong_shares};

/// Returns every row, in the order of the contract.
pub fn all(scale: Scale) -> Vec<Row> {
    let mut rows = vec![no_effect(scale), coverage(scale)];
    rows.extend([-0.1, 0.02, 0.1].map(|lift| misses(scale, lift)));
    rows.extend(power(scale));
    for n_weeks in [1, 8] {
        rows.extend([Change::BetterFirst, Change::WorseFirst].map(|change| changing(scale, change, n_weeks)));
    }
    rows.extend(Course::ALL.map(|of| course(scale, of)));
    rows.extend([eight_weeks(scale), constant(scale)]);
    rows.extend([harm(scale, -0.1), list_ratio(scale), more_lists(scale, 0.1)]);
    rows.extend([false, true].map(|is_ramped| sample_ratio(scale, is_ramped)));
    rows.extend([0.2, 0.5].map(|share| without_id(scale, share)));
    rows.extend([0.2, 0.35, 0.6].map(|share| crawler(scale, share)));
    rows.extend([wrong_shares(scale), holm(scale), ramp(scale), first_view()]);
    rows
}
