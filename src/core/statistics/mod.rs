//! Statistics of experiments from sums by user bucket: intervals, tests that hold under peeking, checks and decisions.
//!
//! ```text
//! sums by bucket ─▶ ratio, comparison, per_user ─▶ Effect ─▶ sequence, strict, one look, harm ─▶ p, interval
//!                   (epochs weighted)                           kept: τ, running maxima
//! exposures ─▶ srm        lists ─▶ burn_in, list_ratio                           └─▶ multiple ─▶ decision
//! ```
//! Users are randomized, lists are analyzed, and every metric is a ratio of sums. So a variance comes from the sums of whole
//! users, by bucket. The module is pure arithmetic: no clock, no I/O, no state except the arguments of [`look()`]. Infinite and
//! undefined values are absent.
//!
//! | type | content |
//! |---|---|
//! | [`Settings`] | configuration of an experiment |
//! | [`Totals`] | sums as of a look |
//! | [`TestState`] | state between looks |
//! | [`ComparisonReport`] | result of a look |
//!
//! The claim to hold under peeking is asymptotic and checked by simulation, not proved: with returning users the error of Δ is
//! not a martingale in any filtration (Lindon and Kallus, arXiv 2603.25971v2).
//!
//! Deliberately absent: variances by request (intervals cover a third to a half of the cases that they should), corrections for
//! skewness, and sketches of users.

mod arm;
pub mod burn_in;
mod calendar;
pub mod chance;
pub mod comparison;
pub mod days;
pub mod decision;
mod definition;
pub mod effect;
mod epochs;
mod facts;
mod family;
mod guardrail;
pub mod harm;
mod linear;
pub mod list_ratio;
mod look;
mod measure;
pub mod multiple;
pub mod normal;
mod notes;
pub mod per_user;
pub mod power;
pub mod probability;
mod progress;
pub mod ratio;
mod refused;
mod report;
mod root;
pub mod sequence;
mod settings;
mod span_lift;
pub mod spending;
pub mod srm;
pub mod student;
mod sums;
mod test_state;
pub mod top_user;
mod totals;
mod units;
mod versus;
mod waiting;

pub use self::calendar::{LookSpan, after_days};
pub use self::comparison::{ArmPair, ComparedParts, Comparison, compare};
pub use self::decision::{ArmState, Basis, Decision, Verdict};
pub use self::definition::{MetricDefinition, name_of, unit_of};
pub use self::effect::{Effect, ErrorLevel, Interval, Spread};
pub use self::epochs::EpochWeights;
pub use self::guardrail::{GuardrailReport, GuardrailState};
pub use self::harm::HarmBound;
pub use self::look::{look, look_at, one_look};
pub use self::progress::{InformationGrowth, Known, TestProgress};
pub use self::ratio::{EstimatedRatio, RatioShape, RatioSums};
pub use self::refused::RefusedLists;
pub(crate) use self::report::whole;
pub use self::report::{
    AbsoluteEffect, ArmReport, ComparisonReport, ListRatio, MetricDecision, MetricReport, PerUser, Size,
};
pub use self::settings::{Goal, MetricRole, Settings, Unit, Validity};
pub use self::span_lift::{SpanLift, span_lifts};
pub use self::test_state::{DecidedAt, DecidedLook, DecidedMetric, KeptArm, KeptMetric, TestState};
pub use self::totals::{ArmTotals, Epoch, STICKY_NOTE, Terms, Totals};
pub use self::versus::Sides;
pub use self::waiting::Waiting;
