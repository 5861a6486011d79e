//! Comments on a draft: its results on the sample, and what to correct where it falls short.

use std::fmt::Write as _;

use abgauge_core::decode::shape::{Path, Paths, Shape};
use abgauge_core::engine::event::{Kind, Reason};
use abgauge_core::engine::outcome::SHELVES;
use abgauge_core::evaluate::Options;

use super::arms::{self, SampleArms};
use super::columns::{Members, SampleColumn, SampleColumns, is_json_text};
use super::draft::{DraftedShape, Trial};
use super::text::{MAX_LISTED, listed, remark, short};
use super::{Proposal, ReadingWay, Unmapped, click_skew_ms, items, views};
use crate::settings::display_ms;
use crate::tools::check::records::refused;

/// Recipes for shapes that cannot be drafted.
const ARMS_APART: &str = "docs/cookbook.md#arms-in-a-separate-event";
const CLICKS_APART: &str = "docs/cookbook.md#clicks-without-a-list-id";
const SHOWN_ITEM: &str = "docs/cookbook.md#clicks-that-name-a-shown-item";
const GA4: &str = "docs/cookbook.md#ga4";
pub(super) const RESHAPE: &str = "docs/cookbook.md#events-of-other-shapes";
/// Maximum number of fields listed with their values.
const MAX_FIELDS: usize = 5;

/// Adds the results of reading the sample with the draft.
pub(super) fn head(text: &mut String, sample: &Unmapped, proposal: &Proposal, options: &Options) {
    let trial = &proposal.trial;
    let n = sample.records.len();
    remark(
        text,
        "Drafted by `abgauge check --suggest` from a sample: review it before you use it.",
    );
    let mut outcome = format!(
        "records: {n}; with it, served lists: {}, clicks: {}, ignored: {}, refused: {}",
        trial.n_lists, trial.n_clicks, trial.n_ignored, trial.n_refused
    );
    if sample.n_more > 0 {
        let _ = write!(outcome, "; further records that were not read: {}", sample.n_more);
    }
    remark(text, &outcome);
    if trial.n_lists > 0 && trial.n_with_arm == 0 {
        remark(text, &no_arm(sample, proposal));
    }
    if trial.n_with_arm > 0 {
        remark(text, &arms(trial));
    }
    if proposal.has_other_arms() {
        remark(
            text,
            "These are not arms, but users, times, ids or JSON text: send experiment and arm with each list, or correct `experiments`.",
        );
    }
    if let Some(further) = further_experiments(sample, proposal) {
        remark(text, &further);
    }
    for alone in alone(proposal) {
        remark(text, &alone);
    }
    if trial.n_lists > 0 && trial.n_clicks > 0 {
        let reported = format!(
            "clicks on a list of the sample: {} of {}, and on an item of it: {}",
            trial.n_of_list, trial.n_clicks, trial.n_on_item
        );
        remark(text, &reported);
        if trial.n_of_list == 0 {
            remark(
                text,
                "No click finds its list: either the sample does not hold a list and its clicks together, or request_id does not link them. Clicks with only the user and the item, or an item that was shown, cannot be linked to a list: send the id of the \
                 list with each of its clicks.",
            );
        } else if trial.n_on_item == 0 {
            remark(
                text,
                "No click is on an item of its list: `item` points to a different kind of id, or ids are written differently.",
            );
        }
        for out_of_time in out_of_time(trial, proposal, options) {
            remark(text, &out_of_time);
        }
    }
    if trial.n_conflicts > 0 {
        remark(
            text,
            &format!(
                "Lists with the request id of another list, but other items: {}: {SHELVES}.",
                trial.n_conflicts
            ),
        );
    }
    for recipe in recipes(sample, proposal) {
        remark(text, &recipe);
    }
    for ((reason, _), (n, first, place)) in &trial.refusals {
        let what = place
            .as_ref()
            .map(|place| format!(": {}", refused(*reason, place)));
        let reported = format!(
            "refused as {}: {n}, {first} first{}",
            reason.name(),
            what.unwrap_or_default()
        );
        remark(text, &reported);
    }
}

/// Explains why no list names an arm, as far as the fields of the sample show.
fn no_arm(sample: &Unmapped, proposal: &Proposal) -> String {
    let add = "add experiment and arm to each served list";
    if let ReadingWay::Drafted(draft) = &proposal.way {
        let view = views::of(&sample.records, &proposal.shape);
        let columns = view.columns();
        let lists = &draft.split.lists;
        let others: Members = (0..view.events.len())
            .filter(|number| lists.binary_search(number).is_err())
            .collect();
        let of_arms = |members: &Members| {
            let mut columns = columns.iter().filter(|column| arms::is_of_arms(column));
            let found = columns.find(|column| column.within(members).next().is_some());
            found.map(|column| short(&column.path.to_string()))
        };
        if let Some(path) = of_arms(lists) {
            return format!(
                "No list names an arm: `{path}` has the name of an experiment or arm, but its values cannot be read as such. \
                 Set `experiments` and the settings next to it (docs/events.md), or {add}."
            );
        }
        if let Some(path) = of_arms(&others) {
            return format!(
                "No list names an arm: arms seem to be assigned in a separate event (`{path}`), which is not read. To fix that, {add}; for files, {ARMS_APART} has a recipe."
            );
        }
        if let Some(fields) = possible_arms(&columns, lists, &draft.shape) {
            return format!(
                "No list names an arm. If one of these fields holds the arm, set `arm` to its path and `experiment_name` to a name of your choice: {fields}. \
                 Otherwise {add}."
            );
        }
        if let Some(path) = columns.iter().find_map(|column| {
            let is_text = column.count(lists, is_json_text) > 0;
            is_text.then(|| short(&column.path.to_string()))
        }) {
            return format!(
                "No list names an arm: {add}. If the JSON text in `{path}` names it, {RESHAPE} has a recipe."
            );
        }
    }
    format!(
        "No list names an arm: {add}. If arms are assigned in a separate event, {ARMS_APART} has a recipe for files."
    )
}

/// Lists fields of lists that are not used and have few values.
fn possible_arms(columns: &SampleColumns, lists: &Members, shape: &Shape) -> Option<String> {
    let used = used(shape, Some(Kind::Served));
    let of_one = |column: &SampleColumn| {
        let values = arms::few_values(column, lists)?;
        let values = values.iter().map(|(value, n)| format!("{} {n}", short(value)));
        let path = short(&column.path.to_string());
        (!is_used(&used, &column.path)).then(|| format!("`{path}` ({})", listed(values)))
    };
    let fields: Vec<String> = columns.iter().filter_map(of_one).take(MAX_FIELDS).collect();
    (!fields.is_empty()).then(|| fields.join(", "))
}

/// Names fields that look like further experiments, which the draft does not read.
fn further_experiments(sample: &Unmapped, proposal: &Proposal) -> Option<String> {
    let ReadingWay::Drafted(draft) = &proposal.way else {
        return None;
    };
    let view = views::of(&sample.records, &proposal.shape);
    let columns = view.columns();
    let used = used(&draft.shape, Some(Kind::Served));
    let prefix = draft.shape.served.arms.prefix.as_deref();
    let is_one = |column: &&SampleColumn| {
        arms::is_of_arms(column)
            && !is_used(&used, &column.path)
            && !prefix.is_some_and(|prefix| column.name().starts_with(prefix))
            && arms::few_values(column, &draft.split.lists).is_some()
    };
    let fields = columns.iter().filter(is_one);
    let fields: Vec<String> = fields
        .map(|column| format!("`{}`", short(&column.path.to_string())))
        .collect();
    (!fields.is_empty()).then(|| {
        format!(
            "These fields may also name arms but are not read: {}. If they do, {RESHAPE} has a recipe that puts all experiments into one field.",
            listed(fields.into_iter())
        )
    })
}

/// Lists the arms of each experiment with their lists.
fn arms(trial: &Trial) -> String {
    let of_one = |(experiment, arms): (&String, &SampleArms)| {
        let arms = arms.n_lists.iter().map(|(arm, n)| format!("{} {n}", short(arm)));
        format!("{}: {}", short(experiment), listed(arms))
    };
    let experiments: Vec<String> = trial.arms.iter().map(of_one).collect();
    let n_more = experiments.len().saturating_sub(MAX_LISTED);
    let more = if n_more > 0 {
        format!("; and {n_more} more experiments")
    } else {
        String::new()
    };
    format!(
        "arms with their lists: {}{more}",
        experiments[..experiments.len().min(MAX_LISTED)].join("; ")
    )
}

/// Reports experiments with a single arm left after `not_in`.
fn alone(proposal: &Proposal) -> Vec<String> {
    let not_in = &proposal.shape.served.arms.not_in;
    let values = not_in.iter().map(|value| format!("\"{}\"", short(value)));
    let values = listed(values);
    let experiments = proposal.trial.arms.iter();
    let experiments = experiments.filter(|(_, arms)| !not_in.is_empty() && arms.n_lists.len() == 1);
    let alone = experiments.map(|(experiment, _)| {
        format!(
            "Only one arm of {} remains. If {values} means the control, remove it from not_in.",
            short(experiment)
        )
    });
    alone.collect()
}

/// Names shapes that cannot be drafted, with a recipe.
fn recipes(sample: &Unmapped, proposal: &Proposal) -> Vec<String> {
    let ReadingWay::Drafted(draft) = &proposal.way else {
        return Vec::new();
    };
    let mut recipes = Vec::new();
    let has_reason = |reasons: &[Reason]| {
        let mut refusals = proposal.trial.refusals.keys();
        refusals.any(|(reason, _)| reasons.contains(reason))
    };
    if has_reason(&[Reason::TsSeconds, Reason::TsMicros]) {
        recipes.push(format!(
            "Lists and clicks have times in different units: send one unit. For files, {RESHAPE} has a recipe."
        ));
    }
    if let Some((flag, n)) = proposal.outside() {
        let flag = short(flag);
        recipes.push(format!(
            "{n} lists are not in their experiment (`{flag}`), and no setting can exclude them: omit the arm when you send them. For files, {RESHAPE} has a recipe."
        ));
    }
    let has_both = !draft.split.lists.is_empty() && !draft.clicks.is_empty();
    let view = views::of(&sample.records, &proposal.shape);
    if view
        .columns()
        .iter()
        .any(|column| column.name() == "event_params")
    {
        recipes.push(format!(
            "The records look like rows of GA4's export to BigQuery: {GA4} has a recipe."
        ));
    } else if view.columns().iter().any(|column| column.name() == "data_base64") {
        recipes.push(format!(
            "The data of these CloudEvents is binary (`data_base64`): send it as JSON in `data`. For files, {RESHAPE} has a recipe."
        ));
    } else if let Some(path) = draft.shown_item.as_ref().filter(|_| has_both) {
        recipes.push(format!(
            "Clicks name a shown item (`{}`), not their list: send the id of the list with each of them; for files, {SHOWN_ITEM} has a recipe.",
            short(&path.to_string())
        ));
    } else if has_both && (draft.requests.iter().any(Option::is_none) || proposal.links_by_chance()) {
        recipes.push(format!(
            "Clicks do not name their list: let the recommender create an id of each list, and send it with the list and with its clicks; for \
             files, {CLICKS_APART} has a recipe."
        ));
    }
    recipes
}

/// Reports clicks on items of their lists that come too early or too late to count.
fn out_of_time(trial: &Trial, proposal: &Proposal, options: &Options) -> Vec<String> {
    let skew_ms = options
        .click_skew_ms
        .max(click_skew_ms(&proposal.shape).unwrap_or(0));
    let n = trial.delays_ms.len();
    let n_early = trial
        .delays_ms
        .iter()
        .filter(|delay_ms| **delay_ms < -skew_ms)
        .count();
    let n_late = trial
        .delays_ms
        .iter()
        .filter(|delay_ms| **delay_ms > options.attribution_ms)
        .count();
    let [first_ms, last_ms] =
        [trial.delays_ms.iter().min(), trial.delays_ms.iter().max()].map(|ms| ms.copied().unwrap_or(0));
    let minutes = |ms: i64| display_ms((ms + 59_999) / 60_000 * 60_000);
    let early = format!(
        "Clicks that do not count because they come before their list: {n_early} of {n}, up to {} before it. If the clock that stamps the clicks may be slow, set click_skew under [join], now {}.",
        minutes(-first_ms),
        display_ms(skew_ms)
    );
    let late = format!(
        "Clicks that do not count because they come too late: {n_late} of {n}, up to {} after their list. If they should count, raise attribution under [join], now {}.",
        minutes(last_ms),
        display_ms(options.attribution_ms)
    );
    let both = [(n_early, early), (n_late, late)].into_iter();
    both.filter(|(n, _)| *n > 0).map(|(_, text)| text).collect()
}

/// Explains why records that may be lists cannot be read as lists. Clicks are left out.
pub(super) fn not_a_list(text: &mut String, sample: &Unmapped, shape: &Shape, clicks: &Members) {
    let view = views::of(&sample.records, shape);
    // Members are in ascending order.
    let others = (0..view.events.len()).filter(|number| clicks.binary_search(number).is_err());
    if let Some(why) = items::why_not(&view.columns(), &others.collect()) {
        let recipe = match why.ends_with(items::IS_TEXT) {
            true => format!(" For files, {RESHAPE} has a recipe."),
            false => String::new(),
        };
        remark(text, &format!("Not read as a list: {why}.{recipe}"));
    }
}

/// Returns true if a draft reads a field itself, one around it, or one inside it.
fn is_used(used: &[&Path], path: &Path) -> bool {
    let touches = |used: &&Path| {
        let n = used.names().len().min(path.names().len());
        used.is_outer() == path.is_outer() && used.names()[..n] == path.names()[..n]
    };
    used.iter().any(touches)
}

/// Lists the fields that the draft does not use.
pub(super) fn unused(text: &mut String, sample: &Unmapped, topic_kind: Option<Kind>, draft: &DraftedShape) {
    let view = views::of(&sample.records, &draft.shape);
    let columns = view.columns();
    let used = used(&draft.shape, topic_kind);
    let prefix = draft.shape.served.arms.prefix.as_deref();
    let is_plain = |path: &Path| {
        let column = columns.get(path);
        column.is_some_and(|column| column.values.values().any(|value| !value.is_object()))
    };
    let unused: Vec<String> = columns
        .iter()
        .filter(|column| !prefix.is_some_and(|prefix| column.name().starts_with(prefix)))
        .filter(|column| !is_used(&used, &column.path) && is_plain(&column.path))
        .map(|column| format!("`{}`", short(&column.path.to_string())))
        .collect();
    if !unused.is_empty() {
        remark(text, &format!("unused fields: {}", listed(unused.into_iter())));
    }
}

fn used(shape: &Shape, topic_kind: Option<Kind>) -> Vec<&Path> {
    let (served, click, arms) = (&shape.served, &shape.click, &shape.served.arms);
    // With `experiments`, the other paths start at its value and not at the record.
    let in_record = arms.experiments.is_none();
    let of_list = [
        Some(&served.request_id),
        served.user_id.as_ref(),
        Some(&served.ts),
        Some(&served.items),
        served.position.as_ref().filter(|_| served.gather_ms.is_some()),
        served.clicked_items.as_ref(),
        arms.experiments.as_ref(),
        arms.experiment.as_ref().filter(|_| in_record),
        arms.arm.as_ref().filter(|_| in_record),
    ];
    let of_click = [
        click.action.as_ref(),
        Some(&click.request_id),
        click.user_id.as_ref(),
        Some(&click.ts),
        Some(&click.item),
    ];
    let lists = of_list.into_iter().filter(|_| topic_kind != Some(Kind::Click));
    let clicks = of_click.into_iter().filter(|_| topic_kind != Some(Kind::Served));
    lists
        .chain(clicks)
        .chain([shape.kind.as_ref()])
        .flatten()
        .flat_map(Paths::iter)
        .chain(&served.further_ids)
        .collect()
}
