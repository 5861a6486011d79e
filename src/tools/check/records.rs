//! Reading the records of a file one by one, with the reason for each refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};

use abgauge_core::decode::schema::RawRecord;
use abgauge_core::decode::{DecidingField, Decoder, Explained};
use abgauge_core::engine::event::{Kind, Reason};
use abgauge_core::engine::float_times::FloatTimes;
use abgauge_core::nouns::number_of;
use abgauge_core::table::visible;

use super::file_type::{Form, MAX_LINES};
use super::{CheckFailure, Finding, ResultLevel};

const REFUSED: ResultLevel = ResultLevel::Error(CheckFailure::Data);
/// Maximum records shown per outcome. The others are only counted.
const MAX_SHOWN: u64 = 10;
/// Maximum items and experiments shown per list.
const MAX_NAMES: usize = 10;
/// Maximum bytes kept of each of the first records.
const MAX_FIRST: usize = 1024;
/// Maximum characters shown of a value.
const MAX_CHARS: usize = 80;

/// A sample of records and the results so far.
pub struct Records {
    decoder: Decoder,
    topic_kind: Option<Kind>,
    /// Set if records are rows of a file with our fields as columns. Configured paths do not apply to them.
    are_rows: bool,
    n_records: u64,
    /// Starts of the first records, enough to detect the type of the file.
    first: Vec<Vec<u8>>,
    /// Records that are shown, in the order of the file.
    shown: Vec<Finding>,
    n_of: BTreeMap<SampleOutcome, u64>,
    n_without_arm: u64,
    list_times: FloatTimes,
    click_times: FloatTimes,
    refused: BTreeMap<Reason, u64>,
    /// Remedies that were shown. Each is shown once.
    remedies: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SampleOutcome {
    Served,
    Click,
    Ignored,
    Refused,
}

impl Records {
    /// Creates an empty sample. Records without a type are of the kind `topic_kind`.
    pub fn new(decoder: Decoder, topic_kind: Option<Kind>) -> Records {
        Records {
            decoder,
            topic_kind,
            are_rows: false,
            n_records: 0,
            first: Vec::new(),
            shown: Vec::new(),
            n_of: BTreeMap::new(),
            n_without_arm: 0,
            list_times: FloatTimes::default(),
            click_times: FloatTimes::default(),
            refused: BTreeMap::new(),
            remedies: BTreeSet::new(),
        }
    }

    /// Selects remedies that name columns rather than paths, for rows of a file with our fields as columns.
    pub fn of_rows(self, are_rows: bool) -> Records {
        Records { are_rows, ..self }
    }

    /// Adds the record at this place, such as `line 5`.
    pub fn take<'a>(&mut self, place: &dyn Display, record: impl Into<RawRecord<'a>>) {
        let record = record.into();
        if self.first.len() < MAX_LINES {
            let json = record.to_json();
            self.first.push(json[..json.len().min(MAX_FIRST)].to_vec());
        }
        self.n_records += 1;
        for explained in self.decoder.explain(record, self.topic_kind) {
            self.take_event(place, &explained);
        }
    }

    /// Adds a line that was too long to be read. The reader of the file reports its size and the limit.
    pub fn take_long_line(&mut self) {
        self.n_records += 1;
        *self.refused.entry(Reason::NotJson).or_default() += 1;
        *self.n_of.entry(SampleOutcome::Refused).or_default() += 1;
    }

    fn take_event(&mut self, at: &dyn Display, explained: &Explained) {
        let outcome = match explained {
            Explained::Served { arms, ts_ms, .. } => {
                self.n_without_arm += u64::from(arms.is_empty());
                self.list_times.see(*ts_ms);
                SampleOutcome::Served
            }
            Explained::Click { ts_ms, .. } => {
                self.click_times.see(*ts_ms);
                SampleOutcome::Click
            }
            Explained::Ignored(_) => SampleOutcome::Ignored,
            Explained::Refused { reason, .. } => {
                *self.refused.entry(*reason).or_default() += 1;
                SampleOutcome::Refused
            }
        };
        let n = self.n_of.entry(outcome).or_default();
        *n += 1;
        if *n <= MAX_SHOWN {
            let mut finding = finding(at, explained, self.are_rows);
            if !self.remedies.insert(finding.remedy.clone()) {
                finding.remedy.clear();
            }
            self.shown.push(finding);
        }
    }

    /// Returns the findings for single records, followed by the totals.
    pub fn findings(self) -> Vec<Finding> {
        let n = |outcome| self.n_of.get(&outcome).copied().unwrap_or(0);
        let n_all: u64 = self.n_of.values().sum();
        let (n_lists, n_clicks, n_refused) = (
            n(SampleOutcome::Served),
            n(SampleOutcome::Click),
            n(SampleOutcome::Refused),
        );
        let several = match n_all == self.n_records {
            true => String::new(),
            false => format!(" with {}", number_of(n_all, "event")),
        };
        let mut summary = format!(
            "records: {}{several}; served lists: {n_lists}, clicks: {n_clicks}, ignored: {}, refused: {n_refused}",
            self.n_records,
            n(SampleOutcome::Ignored)
        );
        if self.n_of.values().any(|n| *n > MAX_SHOWN) {
            let _ = write!(summary, "; the first {MAX_SHOWN} of each are shown");
        }
        // A single readable record proves that the type of the file is right.
        // If all lines are too long, their form is unknown, but the sample is not empty.
        let are_all_long = self.first.is_empty() && self.n_records > 0;
        let form = Form::of(self.first.iter().map(Vec::as_slice));
        let form = form.filter(|_| n_refused == n_all && !are_all_long);
        let n_tombstones = self.refused.get(&Reason::Tombstone).copied().unwrap_or(0);
        // Remedies differ for lines and for rows.
        let fitting = |lines: &'static str, rows: &'static str| if self.are_rows { rows } else { lines };
        let mut findings = self.shown;
        if let Some(form) = form {
            // One error about the file replaces an error for each line.
            findings.clear();
            let remedy = fitting(form.remedy(), "write one row per event");
            findings.push(Finding::new(REFUSED, form.what(), remedy));
            return findings;
        }
        findings.push(if n_refused > 0 {
            let reasons = self
                .refused
                .iter()
                .map(|(reason, n)| format!("{} {n}", reason.name()));
            let reasons = reasons.collect::<Vec<_>>().join(", ");
            let remedy = match n_lists + n_clicks {
                0 if !are_all_long => fitting(
                    "if they have another shape, `--suggest` drafts the section [events] from them",
                    "",
                ),
                _ => "",
            };
            let level = if n_refused > n_tombstones {
                REFUSED
            } else {
                ResultLevel::Note
            };
            Finding::new(level, format!("{summary} ({reasons})"), remedy)
        } else {
            Finding::ok(summary)
        });
        if n_all > 0 && n_lists + n_clicks + n_refused == 0 {
            findings.push(Finding::new(
                REFUSED,
                "no record is a served list or a click",
                fitting(
                    "correct events.type, and `types` under [events.served] and [events.click]; `--suggest` drafts them from this sample",
                    "write \"served\" or \"click\" in the column `type`",
                ),
            ));
        }
        for (times, what) in [(self.list_times, "lists"), (self.click_times, "clicks")] {
            let warning = times.warning(what);
            findings.extend(warning.map(|text| Finding::new(ResultLevel::Warning, text, "")));
        }
        if self.n_without_arm > 0 {
            // `evaluate` gives no numbers either then.
            let (level, named) = match self.n_without_arm == n_lists {
                true => (
                    REFUSED,
                    format!("none of {n_lists} served lists names an experiment"),
                ),
                false => (
                    ResultLevel::Warning,
                    format!(
                        "{} of {n_lists} served lists name no experiment",
                        self.n_without_arm
                    ),
                ),
            };
            findings.push(Finding::new(
                level,
                format!("{named}: they count in no arm"),
                fitting(
                    "send it, correct `experiments` under [events.served], or set `experiment_name` and `arm_name` there",
                    "write it in the column `experiments`",
                ),
            ));
        }
        findings
    }
}

fn finding(at: &dyn Display, explained: &Explained, is_row: bool) -> Finding {
    match explained {
        Explained::Served {
            request_id,
            further_ids,
            user_id,
            ts_ms,
            arms,
            left_out,
            items,
            clicked,
            n_skipped,
            alternatives,
        } => {
            let arms = arms
                .iter()
                .map(|(experiment, arm)| format!("{} = {}", short(experiment), short(arm)));
            let skipped = match n_skipped {
                0 => String::new(),
                n => format!("\nelements that are not items, skipped: {n}"),
            };
            let left_out = match left_out.len() {
                0 => String::new(),
                _ => format!(
                    "\ninvalid arm, left out of: {}",
                    names(left_out.iter().map(|experiment| short(experiment)))
                ),
            };
            let clicked = match clicked.len() {
                0 => String::new(),
                _ => format!("\nclicked: {}", names(clicked.iter().map(|item| short(item)))),
            };
            Finding::ok(format!(
                "{at}: served list {}{} at {}\nexperiments: {}{left_out}\nitems: {}{clicked}{skipped}{}",
                whole(request_id, further_ids),
                of_user(user_id),
                time(*ts_ms),
                names(arms),
                names(items.iter().map(|item| short(item))),
                read_at(alternatives)
            ))
        }
        Explained::Click {
            request_id,
            further_ids,
            user_id,
            ts_ms,
            item,
            alternatives,
        } => Finding::ok(format!(
            "{at}: click on {} of list {}{} at {}{}",
            short(item),
            whole(request_id, further_ids),
            of_user(user_id),
            time(*ts_ms),
            read_at(alternatives)
        )),
        Explained::Ignored(place) => Finding::new(
            ResultLevel::Note,
            format!(
                "{at}: ignored: {}, neither a served list nor a click",
                value_text(place)
            ),
            "",
        ),
        Explained::Refused {
            reason: Reason::Tombstone,
            ..
        } => Finding::new(
            ResultLevel::Note,
            format!("{at}: a tombstone: it has no value"),
            "",
        ),
        Explained::Refused { reason, place } => Finding::new(
            REFUSED,
            match place {
                Some(place) => format!("{at}: refused as {}: {}", reason.name(), refused(*reason, place)),
                None => format!("{at}: refused as {}", reason.name()),
            },
            match is_row {
                true => remedy_in_columns(*reason, place.as_ref()),
                false => remedy(*reason, place.as_ref()),
            },
        ),
    }
}

/// Returns a line for each field with alternative paths: the path that was read, or the paths tried in vain.
fn read_at(alternatives: &[DecidingField]) -> String {
    let mut lines = String::new();
    for place in alternatives {
        let found = match place.value.as_deref() {
            None | Some("null") => "nothing",
            Some(_) => "read",
        };
        let _ = write!(
            lines,
            "\nevents.{}: {found} at {}",
            place.setting,
            either(&place.paths)
        );
    }
    lines
}

/// Joins paths in backticks: `` `ts` or `timestamp` ``.
fn either(paths: &[String]) -> String {
    let mut paths: Vec<String> = paths.iter().map(|path| format!("`{}`", short(path))).collect();
    let last = paths.pop().unwrap_or_default();
    match paths.is_empty() {
        true => last,
        false => format!("{} or {last}", paths.join(", ")),
    }
}

/// Joins all parts of an ID: `r-1 / top`, or `r-1 / any` if a click does not name the second part.
fn whole(request_id: &str, further_ids: &[Option<String>]) -> String {
    let mut whole = short(request_id);
    for part in further_ids {
        let part = part.as_deref().map_or_else(|| "any".to_owned(), short);
        let _ = write!(whole, " / {part}");
    }
    whole
}

fn of_user(user_id: &Option<String>) -> String {
    user_id
        .as_ref()
        .map(|user| format!(" of user {}", short(user)))
        .unwrap_or_default()
}

fn time(ts_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ts_ms).map_or_else(|_| ts_ms.to_string(), |time| time.to_string())
}

fn names(all: impl ExactSizeIterator<Item = String>) -> String {
    let n_more = all.len().saturating_sub(MAX_NAMES);
    let mut shown: Vec<String> = all.take(MAX_NAMES).collect();
    if shown.is_empty() {
        return "none".to_owned();
    }
    shown.extend((n_more > 0).then(|| format!("and {n_more} more")));
    shown.join(", ")
}

/// Describes the value that made its record invalid.
pub(super) fn refused(reason: Reason, place: &DecidingField) -> String {
    match (reason, &place.value) {
        (Reason::WrongType, None) if !place.paths.is_empty() => format!(
            "the path to {}{} passes through a value that is neither an object nor a list of one element",
            either(&place.paths),
            place
                .within
                .iter()
                .map(|within| format!(" in {}", short(within)))
                .collect::<String>()
        ),
        _ => value_text(place),
    }
}

/// Describes the value of a field.
fn value_text(
    DecidingField {
        paths, value, within, ..
    }: &DecidingField,
) -> String {
    let (within, of) = match within {
        Some(within) => (format!(" in {}", short(within)), short(within)),
        None => Default::default(),
    };
    match (paths.is_empty(), value) {
        (true, Some(value)) if !of.is_empty() => format!("{of} is {}", short(value)),
        (true, _) => "no field has its type".to_owned(),
        (false, Some(value)) => format!("{} is {}{within}", either(paths), short(value)),
        (false, None) => format!("there is no {}{within}", either(paths)),
    }
}

/// Truncates text and makes control characters visible, for a terminal.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    visible(&short)
}

/// Returns the remedy for a row: the value to write in its column. Paths under `[events]` do not apply to it.
fn remedy_in_columns(reason: Reason, place: Option<&DecidingField>) -> String {
    let column = place.and_then(|place| place.setting.rsplit('.').next());
    match (reason, column.unwrap_or_default()) {
        (Reason::NotJson, "") => {
            "write strings in UTF-8, and JSON in them nested at most 126 levels deep".into()
        }
        (Reason::MissingField, "type") => "write \"served\" or \"click\" in this column".into(),
        (Reason::MissingField, _) => "write it in this column: a null is an absent field".into(),
        (Reason::WrongType, "items") => {
            "write a list of strings or integers, or one as JSON text such as [\"i5\",\"i9\"]".into()
        }
        (Reason::WrongType, "experiments") => {
            "write a map or a struct of strings, or JSON text such as {\"ranker\":\"neural\"}".into()
        }
        (Reason::WrongType, "ts") => "write a timestamp, a number, or text".into(),
        (Reason::WrongType, _) => "write a string or an integer".into(),
        (Reason::WrongTopic, _) => "read the file without --as: its column `type` has the type of each row".into(),
        (Reason::Number, "ts") => {
            "write whole milliseconds, or timestamps; or set events.ts_unit, which cuts fractions off".into()
        }
        (Reason::TsSeconds, _) => "if they are numbers, set events.ts_unit = \"s\"; if they are timestamps, correct their unit".into(),
        (Reason::TsMicros, _) => "if they are numbers, set events.ts_unit = \"us\" or \"ns\"; if they are timestamps, correct their unit".into(),
        (Reason::TooManyExperiments, _) => {
            "write the experiments that chose the list, or raise join.max_experiments".into()
        }
        _ => remedy(reason, place),
    }
}

/// Returns the remedy: the value to send, or the setting to change under `[events]`.
fn remedy(reason: Reason, place: Option<&DecidingField>) -> String {
    let setting = place.map_or("", |place| place.setting);
    let is = |end: &str| setting.ends_with(end);
    match reason {
        Reason::NotJson if place.is_some() => {
            "send text that is Unicode, without halves of surrogate pairs, and each experiment once".into()
        }
        Reason::NotJson => "send one JSON object in UTF-8, each field once, nested at most 127 levels deep; records in Avro or \
                            Protobuf are checked in their topic: abgauge check --connect"
            .into(),
        Reason::Malformed => "write records whose bytes fit the schema of their file".into(),
        Reason::UnknownSchema => "register the schema, or correct [registry] and [schemas]".into(),
        Reason::Tombstone => String::new(),
        Reason::MissingField if is("type") => "send it; or declare the type of the sample's topic, with --as served or --as click; or correct events.type or set events.without_type"
            .into(),
        Reason::MissingField if is("item_id") => "send it, or correct events.served.item_id, the path to it; if such elements are rows of items, set events.served.rows and row_items; if they are not items, set events.served.skip_others = true"
            .into(),
        Reason::MissingField if is("items") => "send it, or correct events.served.items, the path to it; if the producer omits empty arrays, set events.served.no_items = \"empty\""
            .into(),
        Reason::MissingField => format!("send it, or correct events.{setting}, the path to it"),
        Reason::WrongType if place.is_none() => {
            "send one JSON object; if the record is JSON text in quotes, set events.nested = \".\"".into()
        }
        Reason::WrongType if is("items") => "send an array of texts or integers; for objects with an id set \
                                             events.served.item_id, the path to it; for arrays of arrays \
                                             events.served.rows; to skip elements that are not items events.served.skip_others"
            .into(),
        Reason::WrongType if is("experiments") => {
            "send an object of texts, experiment → arm; for an array of objects set events.served.experiment and \
             events.served.arm, the paths to both in each of them; for texts such as ranker:neural events.served.arm_separator"
                .into()
        }
        Reason::WrongType if is("ts") => "send a number or text; a path leads through objects, and through arrays of one".into(),
        Reason::WrongType if is("type") || is("action") || is("arm") || is("experiment") => {
            format!("send text, or correct events.{setting}, the path to it")
        }
        Reason::WrongType => format!(
            "send text or an integer, or correct events.{setting}: a path leads through objects, and through arrays of one"
        ),
        Reason::WrongTopic => "send it to the topic of its kind, or correct events.type; a sample of one topic for both is \
                               read without --as"
            .into(),
        Reason::Number => "send an integer of at most 20 digits, or text".into(),
        Reason::TsSeconds => "set events.ts_unit = \"s\", or send milliseconds".into(),
        Reason::TsMicros => "set events.ts_unit = \"us\" or \"ns\", or send milliseconds".into(),
        Reason::TsRange => "send epoch milliseconds, or text with its zone such as 2025-11-20T00:00:00Z, from 2001 to 2286; if numbers have another unit, set events.ts_unit; if text has no zone, events.ts_zone"
            .into(),
        Reason::IdLength => "send ids and items of 1 to 2048 bytes".into(),
        Reason::TooManyItems => "send shorter lists, or raise join.max_items".into(),
        Reason::TooManyExperiments => "send the experiments that chose the list, or raise join.max_experiments; if they are mixed with other attributes, set events.served.only"
            .into(),
    }
}
