//! `abgauge check --suggest`: drafts a section `[events]` for records of unknown shape, from a file or from the topics.
//!
//! ```text
//! lines ──▶ Columns ──▶ splits ──▶ a Draft for each ──▶ Trial ──▶ the best one, ──▶ its numbers ──▶ TOML
//!           by path     lists and    a field by its        with the  corrected         by `evaluate`
//!                       clicks       name and values       decoder
//! ```
//!
//! Names give hints, but values decide: the list ID is the field that most clicks refer to, the item the field that most
//! clicks are on.

mod arms;
mod columns;
mod draft;
mod fields;
mod items;
mod kinds;
mod report;
mod rows;
mod shelves;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod topics;
mod views;
mod words;

use std::fmt::Display;

use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::Kind;
use abgauge_core::engine::outcome::SHELVES;
use abgauge_core::evaluate::{Evaluation, Evaluator, Options};

use self::draft::{DraftedShape, NO_ARM, ReadableSample, Trial};
pub use self::topics::{TopicsSample, of_topics};
use super::file_type::Form;

/// Maximum records to analyze.
const MAX_RECORDS: usize = 2_000;
/// Maximum bytes to analyze.
const MAX_BYTES: usize = 32 << 20;

/// The analyzed part of a sample.
#[derive(Default)]
pub struct Unmapped {
    records: Vec<SampleRecord>,
    n_bytes: usize,
    n_more: u64,
    /// Number of records that are left to later files.
    n_reserved: usize,
    /// Settings that describe the encodings of lists and of clicks, as TOML.
    encodings: [String; 2],
}

/// A record of a sample.
struct SampleRecord {
    /// Line in a file, or place in a topic.
    place: String,
    json: Vec<u8>,
    /// Kind of events in the record's topic. `None` for both.
    topic_kind: Option<Kind>,
}

/// A proposal for the section `[events]`.
pub struct Suggestion {
    /// TOML with comments.
    pub text: String,
    /// The reason why the text cannot be used unchanged. `None` if it reads all analyzed records, lists name arms, and
    /// `evaluate` counts clicks on items of their lists.
    pub fault: Option<String>,
    /// True if the records have our own fields, so a table of them is read by the types of its columns.
    pub has_own_fields: bool,
}

/// A way to read the records.
enum ReadingWay {
    Own,
    Preset(&'static str),
    Drafted(Box<DraftedShape>),
    /// No shape: nothing looks like a list or a click.
    None,
}

/// The best way to read the records, and its results.
struct Proposal {
    way: ReadingWay,
    shape: Shape,
    trial: Trial,
    /// The numbers that `evaluate` would give; `None` if the topic holds one kind of event.
    evaluation: Option<Evaluation>,
}

impl Unmapped {
    /// Leaves an equal share of the records to each of these files, the next one and those after it.
    pub fn begin_file(&mut self, n_files: usize) {
        let n_left = MAX_RECORDS - self.records.len();
        self.n_reserved = n_left - n_left / n_files.max(1);
    }

    /// Adds a record, unless the sample is full. `topic_kind` is the kind of events in its topic, `None` for both.
    pub fn take(&mut self, place: impl Display, topic_kind: Option<Kind>, json: &[u8]) {
        if self.records.len() + self.n_reserved >= MAX_RECORDS || self.n_bytes + json.len() > MAX_BYTES {
            self.n_more += 1;
            return;
        }
        self.n_bytes += json.len();
        self.records.push(SampleRecord {
            place: place.to_string(),
            json: json.to_vec(),
            topic_kind,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the type of the file if it does not contain records.
    fn form(&self) -> Option<Form> {
        Form::of(self.records.iter().map(|record| &record.json[..]))
    }

    /// Returns the kind of the topic of all records; `None` if it has both kinds, or the records are from both topics.
    fn topic_kind(&self) -> Option<Kind> {
        let kind = self.records.first()?.topic_kind;
        let is_only = self.records.iter().all(|record| record.topic_kind == kind);
        kind.filter(|_| is_only)
    }

    /// Suggests a section. `options` have the bounds and rules of the configuration.
    pub fn suggest(&self, options: &Options) -> Suggestion {
        let topic_kind = self.topic_kind();
        let sample = ReadableSample {
            records: &self.records,
            decoder: &options.decoder(),
            topic_kind,
            same_list_ms: options.same_list_ms,
        };
        let known = known(&sample).map(|known| self.counted(known, options, topic_kind));
        let proposal = match known {
            Some(known) if known.is_complete() => known,
            known => {
                let drafted = self.counted(drafted(&sample), options, topic_kind);
                match known {
                    Some(known) if drafted.fault(topic_kind).is_some() => known,
                    _ => drafted,
                }
            }
        };
        Suggestion {
            fault: proposal.fault(topic_kind),
            has_own_fields: !matches!(proposal.way, ReadingWay::None) && proposal.shape.has_own_fields(),
            text: text::text(self, topic_kind, &proposal, options),
        }
    }

    /// Counts the sample as `evaluate` would.
    fn counted(
        &self,
        (way, trial): (ReadingWay, Trial),
        options: &Options,
        topic_kind: Option<Kind>,
    ) -> Proposal {
        let shape = way.shape();
        let evaluation = topic_kind.is_none().then(|| {
            let gather_ms = shape.served.gather_ms.unwrap_or(0);
            let mut evaluator = Evaluator::new(&Options {
                same_list_ms: options.same_list_ms.max(gather_ms),
                click_skew_ms: options.click_skew_ms.max(click_skew_ms(&shape).unwrap_or(0)),
                shape: Some(shape.clone()),
                compare: None,
                span_ms: None,
                ..options.clone()
            });
            for (number, record) in (1..).zip(&self.records) {
                evaluator.read_record(record.topic_kind, "sample", number, record.json.as_slice());
            }
            evaluator.finish()
        });
        Proposal {
            way,
            shape,
            trial,
            evaluation,
        }
    }
}

/// Returns the setting `join.click_skew` that a shape needs: a clicked row may be earlier than the first row of its list.
fn click_skew_ms(shape: &Shape) -> Option<i64> {
    let served = &shape.served;
    served.gather_ms.filter(|_| served.clicked.is_some())
}

impl ReadingWay {
    fn shape(&self) -> Shape {
        let preset = |name: &str| Shape::PRESETS.iter().find(|(preset, _)| *preset == name);
        match self {
            ReadingWay::Own | ReadingWay::None => Shape::default(),
            ReadingWay::Preset(name) => preset(name).map_or_else(Shape::default, |(_, shape)| shape()),
            ReadingWay::Drafted(draft) => draft.shape.clone(),
        }
    }
}

impl Proposal {
    /// Returns why it cannot be used unchanged.
    fn fault(&self, topic_kind: Option<Kind>) -> Option<String> {
        if matches!(self.way, ReadingWay::None) {
            return Some("no record looks like a served list or a click".to_owned());
        }
        let of_evaluation = |evaluation: &Evaluation| {
            let is_hitless = evaluation.without_a_hit().is_some();
            let no_hit = is_hitless.then(|| "`evaluate` would count no click".to_owned());
            let conflicts = || evaluation.has_conflicts().then(|| SHELVES.to_owned());
            no_hit.or_else(|| evaluation.unusable()).or_else(conflicts)
        };
        let counted = || self.evaluation.as_ref().and_then(of_evaluation);
        let no_arm = || self.has_other_arms().then(|| NO_ARM.to_owned());
        let outside = || {
            let (flag, n) = self.outside()?;
            Some(format!(
                "{n} lists are not in their experiment (`{flag}`), but their arms would still be counted"
            ))
        };
        let of_arms = || no_arm().or_else(outside);
        let no_list = || {
            self.links_by_chance()
                .then(|| "clicks do not name their list".to_owned())
        };
        let of_trial = self.trial.fault(topic_kind).or_else(no_list);
        of_trial.or_else(of_arms).or_else(counted)
    }

    /// Returns true if the values in the place of arms are something else: a known shape reads whatever is there.
    fn has_other_arms(&self) -> bool {
        self.trial.n_with_arm > 0 && arms::refined(&self.shape.served.arms, &self.trial.arms).is_none()
    }

    /// Returns true if clicks agree with both parts of an id, but not with the items of that list: numbers of lists and of clicks
    /// within a session may be the same.
    fn links_by_chance(&self) -> bool {
        match &self.way {
            ReadingWay::Drafted(draft) => {
                draft.second_id.is_some() && 10 * self.trial.n_on_item < 9 * self.trial.n_clicks
            }
            _ => false,
        }
    }

    /// Returns a flag that excludes lists from their experiment, with their number.
    fn outside(&self) -> Option<&(String, usize)> {
        match &self.way {
            ReadingWay::Drafted(draft) => draft.outside.as_ref(),
            _ => None,
        }
    }

    /// Returns true for a known shape that needs no correction: each experiment is one, and each list has an id of its own.
    fn is_complete(&self) -> bool {
        let arms = &self.shape.served.arms;
        let is_refined = arms::refined(arms, &self.trial.arms).is_some_and(|refined| refined == *arms);
        let has_bad = self.trial.arms.values().any(|arms| arms.n_bad > 0);
        // With a single arm in many lists, the arms may be in another field.
        let n_arms = self.trial.arms.values().map(|arms| arms.n_lists.len()).max();
        let is_alone = n_arms == Some(1) && self.trial.n_lists >= arms::MANY;
        is_refined && !has_bad && !is_alone && self.trial.n_conflicts == 0
    }
}

/// Returns a known shape, ours or a preset, if one reads the sample.
fn known(sample: &ReadableSample) -> Option<(ReadingWay, Trial)> {
    let own = (ReadingWay::Own, Shape::default());
    let presets = Shape::PRESETS.iter();
    let presets = presets.map(|(name, preset)| (ReadingWay::Preset(name), preset()));
    // Our own shape comes first, so it wins a tie.
    let all = [own].into_iter().chain(presets);
    let tried = all.map(|(way, shape)| (way, sample.read(&shape)));
    tried
        .filter(|(_, trial)| trial.is_sound(sample.topic_kind))
        .reduce(better)
}

fn drafted(sample: &ReadableSample) -> (ReadingWay, Trial) {
    let drafts = views::views(sample.records).into_iter().flat_map(|view| {
        let columns = view.columns();
        let splits = kinds::splits(&columns, &view.topic_kinds);
        let drafts = splits.into_iter().map(|split| {
            let mut draft = draft::draft(&columns, split);
            view.put(&mut draft.shape);
            draft.tried(sample)
        });
        drafts.collect::<Vec<_>>()
    });
    let is_seen =
        |(draft, trial): &(DraftedShape, Trial)| draft.sees_some() || trial.n_lists + trial.n_clicks > 0;
    let drafts = drafts
        .filter(is_seen)
        .map(|(draft, trial)| (ReadingWay::Drafted(Box::new(draft)), trial));
    let Some((ReadingWay::Drafted(mut draft), mut trial)) = drafts.reduce(better) else {
        return (ReadingWay::None, sample.read(&Shape::default()));
    };
    let is_kind_known = draft.split.kind.is_some() || draft.split.without.is_none();
    if is_kind_known && trial.lacks_items() {
        // Some producers omit empty arrays. Without a known kind this cannot be assumed: the record may not be a list at all.
        draft.shape.served.absent_is_empty = true;
        trial = sample.read(&draft.shape);
    }
    if trial.n_conflicts > 0 {
        let view = views::of(sample.records, &draft.shape);
        if draft.separate_lists(&view.columns()) {
            trial = sample.read(&draft.shape);
        }
    }
    (ReadingWay::Drafted(draft), trial)
}

/// Returns the better one, and the first of equals.
fn better(best: (ReadingWay, Trial), next: (ReadingWay, Trial)) -> (ReadingWay, Trial) {
    let score = |(way, trial): &(ReadingWay, Trial)| {
        let lacks_items =
            matches!(way, ReadingWay::Drafted(draft) if draft.items.is_none() && draft.row.is_none());
        trial.score(!lacks_items)
    };
    if score(&next) > score(&best) { next } else { best }
}
