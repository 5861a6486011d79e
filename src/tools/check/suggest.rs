//! `abgauge check --sample FILE --suggest`: drafts a section `[events]` for a file with records of unknown shape.
//!
//! ```text
//! lines ──▶ Columns ──▶ splits ──▶ a Draft for each ──▶ Trial ──▶ the best one, as TOML
//!           by path     lists and    a field by its        with the
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
mod rows;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod views;
mod words;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::Kind;

use self::draft::{DraftedShape, Trial};
use super::file_type::Form;

/// Maximum records to analyze.
const MAX_RECORDS: usize = 2_000;
/// Maximum bytes to analyze.
const MAX_BYTES: usize = 32 << 20;

/// The analyzed part of a sample.
#[derive(Default)]
pub struct Unmapped {
    /// Records with their line numbers.
    lines: Vec<(u64, Vec<u8>)>,
    n_bytes: usize,
    n_more: u64,
}

/// A proposal for the section `[events]`.
pub struct Suggestion {
    /// TOML with comments.
    pub text: String,
    /// Set if the text can be used unchanged: it reads all analyzed records, lists name arms, and clicks are on items of
    /// their lists.
    pub is_sound: bool,
}

/// A way to read the records.
enum ReadingWay {
    Own,
    Preset(&'static str),
    Drafted(Box<DraftedShape>),
    /// No shape: nothing looks like a list or a click.
    None,
}

impl Unmapped {
    /// Adds the record on this line.
    pub fn take(&mut self, line: u64, record: &[u8]) {
        if self.lines.len() == MAX_RECORDS || self.n_bytes + record.len() > MAX_BYTES {
            self.n_more += 1;
            return;
        }
        self.n_bytes += record.len();
        self.lines.push((line, record.to_vec()));
    }

    /// Returns the type of the file if it does not contain records.
    fn form(&self) -> Option<Form> {
        Form::of(self.lines.first().map(|(_, line)| &line[..]))
    }

    /// Suggests a section. `decoder` has the bounds of the configuration and our own shape.
    pub fn suggest(&self, decoder: &Decoder, topic_kind: Option<Kind>) -> Suggestion {
        let (way, trial) = self
            .known(decoder, topic_kind)
            .unwrap_or_else(|| self.drafted(decoder, topic_kind));
        Suggestion {
            is_sound: !matches!(way, ReadingWay::None) && trial.is_sound(topic_kind),
            text: text::text(self, topic_kind, &way, &trial),
        }
    }

    /// Returns a known shape, ours or a preset, if one reads the sample.
    fn known(&self, decoder: &Decoder, topic_kind: Option<Kind>) -> Option<(ReadingWay, Trial)> {
        let own = (ReadingWay::Own, Shape::default());
        let presets = Shape::PRESETS.iter();
        let presets = presets.map(|(name, preset)| (ReadingWay::Preset(name), preset()));
        // Our own shape comes first, so it wins a tie.
        let all = [own].into_iter().chain(presets);
        let tried = all.map(|(way, shape)| (way, Trial::of(decoder, &shape, topic_kind, &self.lines)));
        tried
            .filter(|(_, trial)| trial.is_sound(topic_kind))
            .reduce(better)
    }

    fn drafted(&self, decoder: &Decoder, topic_kind: Option<Kind>) -> (ReadingWay, Trial) {
        let drafts = views::views(&self.lines).into_iter().flat_map(|view| {
            let columns = view.columns();
            let splits = kinds::splits(&columns, view.events.len(), topic_kind);
            let drafts = splits.into_iter().map(|split| {
                let mut draft = draft::draft(&columns, split);
                view.put(&mut draft.shape);
                let mut trial = Trial::of(decoder, &draft.shape, topic_kind, &self.lines);
                let served = &mut draft.shape.served;
                if served.gather_ms.is_some() {
                    // The first trial collected the times of the records. The second uses the span that fits them.
                    served.gather_ms = Some(rows::span_ms(&trial.rows));
                    trial = Trial::of(decoder, &draft.shape, topic_kind, &self.lines);
                }
                (ReadingWay::Drafted(Box::new(draft)), trial)
            });
            drafts.collect::<Vec<_>>()
        });
        let is_seen = |(way, trial): &(ReadingWay, Trial)| {
            let sees_some = matches!(way, ReadingWay::Drafted(draft) if draft.sees_some());
            sees_some || trial.n_lists + trial.n_clicks > 0
        };
        let best = drafts.filter(is_seen).reduce(better);
        match best {
            Some((ReadingWay::Drafted(mut draft), trial))
                if draft.split.kind.is_some() && trial.lacks_items() =>
            {
                // Some producers omit empty arrays. Without a kind field this cannot be assumed: the record may not be a list
                // at all.
                draft.shape.served.absent_is_empty = true;
                let trial = Trial::of(decoder, &draft.shape, topic_kind, &self.lines);
                (ReadingWay::Drafted(draft), trial)
            }
            Some(best) => best,
            None => {
                let trial = Trial::of(decoder, &Shape::default(), topic_kind, &self.lines);
                (ReadingWay::None, trial)
            }
        }
    }
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
