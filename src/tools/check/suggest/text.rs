//! Rendering of a draft as TOML, with a comment on each setting that gives the evidence for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::Kind;
use abgauge_core::evaluate::Options;
use abgauge_core::table::visible;

use super::columns::{FieldChoice, Members};
use super::draft::{DraftedShape, Trial};
use super::rows::RowDraft;
use super::{Proposal, ReadingWay, Unmapped, click_skew_ms, report};
use crate::settings::{display_ms, event_settings};

/// Maximum number of values and paths listed.
pub(super) const MAX_LISTED: usize = 12;
/// Maximum characters of a value.
const MAX_CHARS: usize = 60;
/// Sections with the encodings of lists and of clicks.
const SECTIONS: [&str; 2] = ["served", "click"];
/// Remark on a setting without a matching field.
const NONE: &str = "no field fits: correct this path";
const NO_ID: &str =
    "no field is unique to each list: let the recommender create an id, and send it with each click too";
const NO_ITEMS: &str = "no field is an array of ids, or of objects with an id: correct this path";
const NO_TIE: &str = "no field links clicks to lists: send the id of the list with each of its clicks";

pub(super) fn text(
    sample: &Unmapped,
    topic_kind: Option<Kind>,
    proposal: &Proposal,
    options: &Options,
) -> String {
    let (way, trial) = (&proposal.way, &proposal.trial);
    let mut text = String::new();
    if let (ReadingWay::None, Some(form)) = (way, sample.form()) {
        remark(
            &mut text,
            &format!(
                "Nothing is drafted: {}. To fix that, {}.",
                form.what(),
                form.remedy()
            ),
        );
        return text;
    }
    report::head(&mut text, sample, proposal, options);
    match way {
        ReadingWay::Own => {
            let settings = match sample.encodings.iter().all(String::is_empty) {
                true => "no settings",
                false => "no settings but the encoding",
            };
            remark(
                &mut text,
                &format!("The records have our own shape: [events] needs {settings}."),
            );
            encodings(&mut text, sample, &[]);
        }
        ReadingWay::Preset(name) => {
            remark(&mut text, &format!("The records have the shape of {name}."));
            let _ = write!(text, "[events]\npreset = \"{name}\"\n");
            encodings(&mut text, sample, &[]);
        }
        ReadingWay::Drafted(draft) => drafted(&mut text, sample, topic_kind, draft, trial),
        ReadingWay::None => {
            remark(
                &mut text,
                "No record looks like a served list (an array of ids, or of objects with an id) or like a click. If the file holds only one kind, name it: --as served or --as click.",
            );
            report::not_a_list(&mut text, sample, &Shape::default(), &Members::new());
        }
    }
    text
}

/// Adds the encodings of topics whose sections have not been started.
fn encodings(text: &mut String, sample: &Unmapped, started: &[String]) {
    for (section, encoding) in SECTIONS.iter().zip(&sample.encodings) {
        if !encoding.is_empty() && !started.iter().any(|name| name == section) {
            let _ = write!(text, "\n[events.{section}]\n{encoding}");
        }
    }
}

/// Adds a paragraph of comments, wrapped to a readable width.
pub(super) fn remark(text: &mut String, words: &str) {
    const WIDTH: usize = 118;
    let mut line = String::from("#");
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.len() > 1 {
            let _ = writeln!(text, "{line}");
            line = "#".to_owned();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
}

/// Remarks by setting.
#[derive(Default)]
struct SettingRemarks(BTreeMap<&'static str, String>);

impl SettingRemarks {
    fn add(&mut self, setting: &'static str, note: String) {
        self.0.insert(setting, note);
    }

    /// Adds the evidence for a field, or `none`.
    fn field(
        &mut self,
        setting: &'static str,
        choice: &Option<FieldChoice>,
        members: &Members,
        whose: &str,
        none: &str,
    ) {
        let n = members.len();
        let note = match choice {
            Some(FieldChoice {
                n: n_read, others, ..
            }) => {
                let others: Vec<String> = others
                    .iter()
                    .map(|(path, n)| format!("`{}` ({n})", short(&path.to_string())))
                    .collect();
                let others = match others.is_empty() {
                    true => String::new(),
                    false => format!("; other candidates: {}", others.join(", ")),
                };
                format!("can be read in {n_read} of {n} {whose}{others}")
            }
            None => none.to_owned(),
        };
        self.add(setting, note);
    }

    fn time(
        &mut self,
        setting: &'static str,
        choice: &Option<FieldChoice>,
        unread: &Option<String>,
        members: &Members,
        whose: &str,
    ) {
        match unread {
            None => self.field(setting, choice, members, whose, NONE),
            Some(value) => self.add(
                setting,
                format!(
                    "no field can be read as a time; this one has the name but contains {}: send epoch milliseconds, or RFC 3339 text with \
                     its offset, such as 2025-11-20T00:00:00+01:00 (with the colon); for files, {} has a recipe",
                    short(value),
                    report::RESHAPE
                ),
            ),
        }
    }
}

fn notes(draft: &DraftedShape, trial: &Trial) -> SettingRemarks {
    let mut notes = SettingRemarks::default();
    let (split, lists, clicks) = (&draft.split, &draft.split.lists, &draft.clicks);
    if split.kind.is_some() {
        let values = split
            .counts
            .iter()
            .map(|(value, n)| format!("\"{}\" {n}", short(value)));
        notes.add("type", format!("its values: {}", listed(values)));
    }
    if split.without.is_some() {
        notes.add("without_type", "type of records without such a field".to_owned());
    }
    if draft.times.zone.is_some() {
        let note =
            "some times are text without a zone, read as UTC here: correct it if they have another zone";
        notes.add("ts_zone", note.to_owned());
    }
    if !lists.is_empty() {
        notes.field("served.request_id", &draft.requests[0], lists, "lists", NO_ID);
        if !draft.shape.served.further_ids.is_empty() {
            let note = match draft.second_id {
                Some(_) => "neither field alone is unique to a list; both together are",
                None => {
                    "lists with the same id differ in the second field: they are the shelves or pages of one view"
                }
            };
            notes.add("served.request_id", note.to_owned());
        }
        notes.time(
            "served.ts",
            &draft.times.served,
            &draft.times.unread[0],
            lists,
            "lists",
        );
        if draft.users[0].is_some() {
            notes.field("served.user_id", &draft.users[0], lists, "lists", NONE);
        }
        of_items(&mut notes, draft, trial);
        of_arms(&mut notes, draft, trial);
    }
    if !clicks.is_empty() {
        notes.field("click.request_id", &draft.requests[1], clicks, "clicks", NO_TIE);
        notes.time(
            "click.ts",
            &draft.times.click,
            &draft.times.unread[1],
            clicks,
            "clicks",
        );
        notes.field("click.item", &draft.item, clicks, "clicks", NONE);
        if draft.users[1].is_some() {
            notes.field("click.user_id", &draft.users[1], clicks, "clicks", NONE);
        }
    }
    notes
}

fn of_items(notes: &mut SettingRemarks, draft: &DraftedShape, trial: &Trial) {
    let n_lists = draft.split.lists.len();
    of_clicked(notes, draft);
    if let Some(row) = &draft.row {
        return of_row(notes, row, trial);
    }
    let Some(items) = &draft.items else {
        return notes.add("served.items", NO_ITEMS.to_owned());
    };
    let mut note = format!("can be read in {} of {n_lists} lists", items.n_read);
    if let Some(position) = items.position.as_ref().filter(|_| items.is_in_order) {
        let path = short(&position.to_string());
        let _ = write!(
            note,
            "; `{path}` has the same order as the array, and is not needed"
        );
    }
    notes.add("served.items", note);
    if draft.shape.served.position.is_some() {
        notes.add("served.position", "not all arrays are in this order".to_owned());
    }
    if draft.shape.served.absent_is_empty {
        let note = "some lists have none: treated as empty lists, since some producers omit empty arrays";
        notes.add("served.no_items", note.to_owned());
    }
    if items.n_others > 0 {
        let note = format!(
            "elements that are not items: {}",
            trial.n_skipped.max(items.n_others as u64)
        );
        notes.add("served.skip_others", note);
    }
}

fn of_row(notes: &mut SettingRemarks, row: &RowDraft, trial: &Trial) {
    let n_rows = trial.rows.len();
    let of_lists = format!("records of one shown item: {n_rows}, of {} lists", trial.n_lists);
    notes.add("served.items", of_lists);
    notes.add(
        "served.gather",
        "the shortest of some spans that keeps the records of each list together; no longer than [join] same_list".to_owned(),
    );
    if row.position.is_some() {
        notes.add("served.position", "items of a list rank by it".to_owned());
    }
}

fn of_clicked(notes: &mut SettingRemarks, draft: &DraftedShape) {
    let served = &draft.shape.served;
    let in_list = "lists have their clicks within them; both topics must then be the same";
    for (key, is_drafted) in [
        ("served.clicked", served.clicked.is_some()),
        ("served.clicked_items", served.clicked_items.is_some()),
    ] {
        if is_drafted {
            notes.add(key, in_list.to_owned());
        }
    }
}

fn of_arms(notes: &mut SettingRemarks, draft: &DraftedShape, trial: &Trial) {
    let (n, n_lists) = (trial.n_with_arm, trial.n_lists);
    let arms = &draft.shape.served.arms;
    let note = match n {
        _ if !draft.has_arms => "no field looks like the name of an experiment or an arm, so lists count in none; to count all of them in one, set experiment_name and arm_name"
            .to_owned(),
        n if n < n_lists => format!(
            "names an arm in {n} of {n_lists} lists; set experiment_name and arm_name if the others should count too"
        ),
        n if n > 0 => format!("names an arm in {n} of {n_lists} lists"),
        _ => "no list can be read yet, so these fields are a guess".to_owned(),
    };
    notes.add("served.experiments", note);
    if !arms.only.is_empty() {
        let note = "the other names are not experiments: their values are users, times, ids, JSON text or other attributes";
        notes.add("served.only", note.to_owned());
    }
    if !arms.not_in.is_empty() {
        notes.add(
            "served.not_in",
            "lists with these values are not in the experiment".to_owned(),
        );
    }
    if draft.shape.served.arms.experiment_name.is_some() {
        let note = "the experiment of these arms: give it a name";
        notes.add("served.experiment_name", note.to_owned());
    }
}

fn drafted(
    text: &mut String,
    sample: &Unmapped,
    topic_kind: Option<Kind>,
    draft: &DraftedShape,
    trial: &Trial,
) {
    let notes = notes(draft, trial);
    report::unused(text, sample, topic_kind, draft);
    let served = &draft.shape.served;
    let has_clicks = served.clicked.is_some() || served.clicked_items.is_some();
    for (kind, is_absent, name) in [
        (Kind::Served, draft.split.lists.is_empty(), "served list"),
        (Kind::Click, draft.clicks.is_empty() && !has_clicks, "click"),
    ] {
        if is_absent && topic_kind.is_none_or(|says| says == kind) {
            remark(
                text,
                &format!(
                    "No record looks like a {name}: write that section by hand. If no field has the type of a record, draft from a file of each \
                     kind (--as served, --as click), or add the type: {} has a recipe.",
                    report::RESHAPE
                ),
            );
        }
    }
    if let Some(row) = &draft.row {
        remark(
            text,
            &format!(
                "Records show one item each: many share `{}`, each with a different `{}`. Those that share it within the span of `gather` \
                 are read as one list. If lists are marked in another way, docs/cookbook.md has a recipe for jq.",
                short(&row.request.path.to_string()),
                short(&row.item.to_string())
            ),
        );
    }
    if draft.items.is_none() && draft.row.is_none() && topic_kind != Some(Kind::Click) {
        report::not_a_list(text, sample, &draft.shape, &draft.clicks);
    }
    if !draft.split.lists.is_empty() && draft.users[0].is_none() {
        remark(
            text,
            "No field of the lists looks like the user: intervals treat each list as a separate user. If there is one, set user_id.",
        );
    }
    let settings = event_settings(&draft.shape, |setting| notes.0.contains_key(setting));
    if let Some(skew_ms) = click_skew_ms(&draft.shape) {
        let _ = writeln!(text, "\n[join]");
        // A clicked item may come in a record with an earlier time than the first record of its list.
        remark(
            text,
            "clicks have the times of their records: at least `gather`; merge it into [join] of your settings",
        );
        let _ = writeln!(text, "click_skew = \"{}\"", display_ms(skew_ms));
    }
    let mut started: Vec<String> = Vec::new();
    for (setting, value) in settings {
        let (of, name) = setting.split_once('.').unwrap_or(("", &setting));
        // A topic with one kind of event needs no settings for the other.
        let is_of_other = match topic_kind {
            Some(Kind::Served) => of == "click",
            Some(Kind::Click) => of == "served",
            None => false,
        };
        if is_of_other {
            continue;
        }
        // Settings have the order of the sample file, so each section starts only once.
        if started.last().is_none_or(|section| section != of) {
            let dot = if of.is_empty() { "" } else { "." };
            let _ = write!(text, "\n[events{dot}{of}]\n");
            let encodings = SECTIONS.iter().zip(&sample.encodings);
            let encoding = encodings.filter(|(section, _)| **section == of);
            text.extend(encoding.map(|(_, encoding)| encoding.as_str()));
            started.push(of.to_owned());
        }
        if let Some(note) = notes.0.get(setting.as_str()) {
            remark(text, note);
        }
        let _ = writeln!(text, "{name} = {value}");
    }
    encodings(text, sample, &started);
}

pub(super) fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let n_more = all.len().saturating_sub(MAX_LISTED);
    let mut shown = all;
    shown.truncate(MAX_LISTED);
    if n_more > 0 {
        shown.push(format!("and {n_more} more"));
    }
    shown.join(", ")
}

/// Truncates text to fit a one-line comment.
pub(super) fn short(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    visible(&short)
}
