//! Account of the lines that were read: the number of lines by outcome and cause.

use std::collections::BTreeMap;

use crate::engine::event::{Reason, Side};
use crate::engine::outcome::{ClickResult, Outcome};
use crate::evaluate::Evaluation;
use crate::table::visible;

/// Account of all lines. Every line read has one outcome, and every accepted click one result.
#[derive(serde::Serialize)]
pub(super) struct Account {
    /// Lines by outcome; `read` is the number of all lines.
    records: BTreeMap<&'static str, u64>,
    /// Lines that could not be read, by reason.
    invalid_records: BTreeMap<&'static str, u64>,
    lists_without_experiment: u64,
    click_results: BTreeMap<&'static str, u64>,
    /// True if nothing that should be counted is missing.
    exact: bool,
}

impl Evaluation {
    pub(super) fn account(&self) -> Account {
        let outcomes = Outcome::OF_EVENTS.map(|outcome| (outcome.name(), self.n_of(outcome)));
        let reasons = self.unreadable.iter();
        let results = ClickResult::ALL.map(|result| (result.name(), self.counts.result(result)));
        Account {
            records: outcomes.into_iter().chain([("read", self.n_read())]).collect(),
            invalid_records: reasons.map(|(reason, lines)| (reason.name(), lines.n)).collect(),
            lists_without_experiment: self.n_lists_without_arm,
            click_results: results.into(),
            exact: self.losses().is_empty(),
        }
    }

    /// Returns the number of events with this outcome.
    pub(super) fn n_of(&self, outcome: Outcome) -> u64 {
        self.counts.n_of(outcome)
    }

    /// Returns the number of lines that are not blank.
    fn n_read(&self) -> u64 {
        Side::BOTH.map(|side| self.counts.records(side)).iter().sum()
    }

    /// Returns the uncounted lines that should have counted, by cause. The numbers are not exact if there are any. No line of a
    /// file should be late or from the future, but if one is, it is reported.
    pub fn losses(&self) -> Vec<String> {
        let shed = "lines shed because lists and clicks reached --max-state";
        let causes = [
            (shed, self.n_of(Outcome::Shed)),
            (
                "lines shed in groups of --by because lists and clicks reached --max-state",
                self.by.as_ref().map_or(0, |by| by.n_shed),
            ),
            ("lines refused as late", self.n_of(Outcome::Late)),
            ("lines refused as of the future", self.n_of(Outcome::Future)),
            ("lines refused as after_settled", self.n_of(Outcome::AfterSettled)),
            ("lines refused as replayed", self.n_of(Outcome::Replayed)),
            ("lines left out as skipped", self.n_of(Outcome::Skipped)),
            (
                "clicks left undecided",
                self.counts.result(ClickResult::Undecided),
            ),
        ];
        let causes = causes.into_iter().filter(|(_, n)| *n > 0);
        let losses = causes.map(|(what, n)| format!("{what}: {n}; the numbers are not exact"));
        let is_exact = self.exact && self.by.as_ref().is_none_or(|by| by.is_exact);
        let overflow = (!is_exact).then(|| "a sum has overflowed 64 bits: the numbers are wrong".to_owned());
        losses.chain(overflow).collect()
    }

    /// Reports clicks if none of them is on an item of its list. Then the field that ties clicks to lists is not the
    /// intended one, and no hit ratio is meaningful.
    pub fn without_a_hit(&self) -> Option<String> {
        let n_clicks: u64 = ClickResult::ALL
            .map(|result| self.counts.result(result))
            .iter()
            .sum();
        let has_hits = self.counts.result(ClickResult::Matched) > 0;
        if has_hits || self.n_lists == 0 {
            return None;
        }
        if n_clicks == 0 && self.n_refused_clicks > 0 {
            return Some(format!(
                "clicks: {}, but none can be read: `abgauge check --sample FILE` shows the error of each",
                self.n_refused_clicks
            ));
        }
        (n_clicks > 0).then(|| {
            format!(
                "clicks: {n_clicks}, but none is on an item of its list: the request ids or the items of clicks do not match the lists, or clicks come later than `attribution`; `abgauge check --sample FILE --suggest` shows what links them"
            )
        })
    }

    /// Returns true if so many copies have other items or arms that several lists seem to share each request id.
    pub fn has_conflicts(&self) -> bool {
        self.counts.conflicting_lists as f64 > self.max_duplicate_share * self.n_lists as f64
    }

    /// Returns why the numbers cannot be used; `None` if they can. `--suggest` exits by the same rule.
    pub fn unusable(&self) -> Option<String> {
        self.nothing()
            .or_else(|| self.losses().into_iter().next())
            .or_else(|| self.without_a_hit())
    }

    /// Returns whether all unreadable lines have this reason.
    fn is_only(&self, reason: Reason) -> bool {
        self.unreadable.keys().all(|other| *other == reason)
    }

    /// Returns why --where selects no list.
    fn unselected_because(&self) -> String {
        if let Some(absent) = self.filters.iter().find(|filter| filter.found.is_none()) {
            return format!("none has the field {}: correct the path", absent.field);
        }
        let others = self.filters.iter().filter_map(|filter| {
            let found = filter.found.as_ref().filter(|found| **found != filter.wanted)?;
            Some(format!("{} in {}", visible(found), filter.field))
        });
        let others: Vec<String> = others.collect();
        format!(
            "they have other values, such as {}; --by with the same field shows all its values",
            others.join(" and ")
        )
    }

    /// Returns why there is no number to show, and what was expected instead. `None` if there is one.
    pub fn nothing(&self) -> Option<String> {
        if !self.is_empty() {
            return None;
        }
        if self.n_lists == 0 && self.n_unselected > 0 {
            return Some(format!(
                "no served list was selected: --where leaves out all {} of them, because {}",
                self.n_unselected,
                self.unselected_because()
            ));
        }
        if self.n_lists == 0 && !self.refused_lists.is_empty() {
            let reasons = self.refused_lists.iter();
            let reasons: Vec<String> = reasons
                .map(|(reason, n)| format!("{} {n}", reason.name()))
                .collect();
            return Some(format!(
                "no served list can be read: all were refused ({}): `abgauge check --sample FILE` shows the error and the fix \
                 of each; add --as served if they have no \"type\"",
                reasons.join(", ")
            ));
        }
        // The first cause that applies explains the rest.
        let reported = match () {
            () if self.n_read() == 0 => {
                "no event was found: a line is expected to be a JSON object such as {\"type\":\"served\",\
                 \"request_id\":\"r-1\",\"ts\":1763596800000,\"experiments\":{\"ranker\":\"neural\"},\"items\":[\"i1\",\"i2\"]}"
            }
            () if self.n_of(Outcome::Invalid) == self.n_read() && self.is_only(Reason::MissingField) => {
                "no line can be read as an event: `abgauge check --sample FILE` shows the field that each lacks; if lists and \
                 clicks are in separate files without \"type\", name them: --lists FILE --clicks FILE; for JSON of another shape \
                 add --suggest to the check, which drafts the section [events] of a --config"
            }
            () if self.n_of(Outcome::Invalid) == self.n_read() => {
                "no line can be read as an event: `abgauge check --sample FILE` shows the error of each; for JSON of \
                 another shape add --suggest, which drafts the section [events] of a --config"
            }
            () if self.n_lists == 0 => {
                "no served list was found: lines with \"type\":\"served\" are expected; for JSON of another \
                 shape `abgauge check --sample FILE --suggest` drafts the section [events] of a --config"
            }
            () if self.n_lists == self.n_lists_without_arm => {
                "no served list names an experiment: \"experiments\":{\"NAME\":\"ARM\"} is expected in each, or for JSON experiment_name \
                 and arm_name under [events.served]"
            }
            () => "no served list was counted",
        };
        Some(reported.to_owned())
    }
}
