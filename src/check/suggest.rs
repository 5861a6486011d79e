//! `abgauge check --sample FILE --suggest`: the section `[events]` for a file whose records are of no known shape.
//!
//! ```text
//! lines ──▶ Columns ──▶ splits ──▶ a Draft for each ──▶ Trial ──▶ the best one, as TOML
//!           by path     lists and    a field by its        with the
//!                       clicks       name and values       decoder
//! ```
//!
//! Names hint, values decide: the id of a list is what most clicks name, an item what most clicks are on.

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

use self::draft::{Draft, Trial};
use super::form::Form;
use crate::engine::event::Kind;
use crate::ingest::wire::Decoder;
use crate::ingest::wire::shape::Shape;

/// Records that are looked at.
const MAX_RECORDS: usize = 2_000;
/// Bytes of them.
const MAX_BYTES: usize = 32 << 20;

/// A sample, as far as it is looked at.
#[derive(Default)]
pub struct Unmapped {
    /// With the numbers of their lines.
    lines: Vec<(u64, Vec<u8>)>,
    n_bytes: usize,
    n_more: u64,
}

/// What to write under `[events]`.
pub struct Suggestion {
    /// TOML with remarks.
    pub text: String,
    /// Whether it can be used as it is: all records that were looked at can be read with it, lists name arms, and clicks are on items
    /// of their lists.
    pub is_sound: bool,
}

/// How the records can be read.
enum Way {
    Own,
    Preset(&'static str),
    Drafted(Box<Draft>),
    /// Nothing looks like a list or a click.
    None,
}

impl Unmapped {
    /// Adds the record that stands at this line.
    pub fn take(&mut self, line: u64, record: &[u8]) {
        if self.lines.len() == MAX_RECORDS || self.n_bytes + record.len() > MAX_BYTES {
            self.n_more += 1;
            return;
        }
        self.n_bytes += record.len();
        self.lines.push((line, record.to_vec()));
    }

    /// What it is, if it is no file of records.
    fn form(&self) -> Option<Form> {
        Form::of(self.lines.first().map(|(_, line)| &line[..]))
    }

    /// `decoder` has the bounds of the configuration, and our own shape.
    pub fn suggest(&self, decoder: &Decoder, topic_says: Option<Kind>) -> Suggestion {
        let (way, trial) = self
            .known(decoder, topic_says)
            .unwrap_or_else(|| self.drafted(decoder, topic_says));
        Suggestion {
            is_sound: !matches!(way, Way::None) && trial.is_sound(topic_says),
            text: text::text(self, topic_says, &way, &trial),
        }
    }

    /// A shape that needs no draft: ours, or that of a preset.
    fn known(&self, decoder: &Decoder, topic_says: Option<Kind>) -> Option<(Way, Trial)> {
        let own = (Way::Own, Shape::default());
        let presets = Shape::PRESETS.iter();
        let presets = presets.map(|(name, preset)| (Way::Preset(name), preset()));
        let all = [own].into_iter().chain(presets);
        let tried = all.map(|(way, shape)| (way, Trial::of(decoder, &shape, topic_says, &self.lines)));
        tried
            .filter(|(_, trial)| trial.is_sound(topic_says))
            .reduce(better)
    }

    fn drafted(&self, decoder: &Decoder, topic_says: Option<Kind>) -> (Way, Trial) {
        let drafts = views::views(&self.lines).into_iter().flat_map(|view| {
            let columns = view.columns();
            let splits = kinds::splits(&columns, view.events.len(), topic_says);
            let drafts = splits.into_iter().map(|split| {
                let mut draft = draft::draft(&columns, split);
                view.put(&mut draft.shape);
                let mut trial = Trial::of(decoder, &draft.shape, topic_says, &self.lines);
                let served = &mut draft.shape.served;
                if served.gather_ms.is_some() {
                    served.gather_ms = Some(rows::span_ms(&trial.rows));
                    trial = Trial::of(decoder, &draft.shape, topic_says, &self.lines);
                }
                (Way::Drafted(Box::new(draft)), trial)
            });
            drafts.collect::<Vec<_>>()
        });
        let is_seen = |(way, trial): &(Way, Trial)| {
            let sees_some = matches!(way, Way::Drafted(draft) if draft.sees_some());
            sees_some || trial.n_lists + trial.n_clicks > 0
        };
        let best = drafts.filter(is_seen).reduce(better);
        match best {
            Some((Way::Drafted(mut draft), trial)) if draft.split.kind.is_some() && trial.lacks_items() => {
                // A producer that leaves out empty arrays. Where nothing says what a record is, it may as well be no list.
                draft.shape.served.absent_is_empty = true;
                let trial = Trial::of(decoder, &draft.shape, topic_says, &self.lines);
                (Way::Drafted(draft), trial)
            }
            Some(best) => best,
            None => {
                let trial = Trial::of(decoder, &Shape::default(), topic_says, &self.lines);
                (Way::None, trial)
            }
        }
    }
}

/// The first of equals.
fn better(best: (Way, Trial), next: (Way, Trial)) -> (Way, Trial) {
    let score = |(way, trial): &(Way, Trial)| {
        let lacks_items = matches!(way, Way::Drafted(draft) if draft.items.is_none() && draft.row.is_none());
        trial.score(!lacks_items)
    };
    if score(&next) > score(&best) { next } else { best }
}
