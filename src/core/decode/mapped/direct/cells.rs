//! Records whose fields are cells of a table, given one by one, without text between.

use std::cell::OnceCell;

use super::super::super::value::{InlineText, Value};
use super::super::super::{ArenaEnds, Decoder, range};
use super::{ArmsBy, DirectReader, EventPart, Found, Leads, part_of_value, set};
use crate::engine::event::{Batch, Body, Kind, Position};

/// Value of a cell that is not null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// UTF-8, which is checked only when it is read.
    Text(&'a [u8]),
    Integer(i64),
    /// Unix ms.
    Time(i64),
    /// Value that only its JSON describes.
    Other,
}

/// Part of an event that the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPart {
    part: EventPart,
    of: [bool; 2],
}

/// Form in which the cells of a part are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellForm {
    /// A [`Cell`].
    Single,
    /// A list of them.
    Items,
    /// JSON.
    Json,
}

impl CellPart {
    pub fn form(self) -> CellForm {
        match self.part {
            EventPart::Items => CellForm::Items,
            EventPart::Experiments | EventPart::Experiment | EventPart::Arm => CellForm::Json,
            EventPart::Kind
            | EventPart::Action
            | EventPart::Id
            | EventPart::User
            | EventPart::Time
            | EventPart::Item => CellForm::Single,
        }
    }
}

/// Digits of a row's ids that are numbers.
#[derive(Debug, Default)]
pub struct CellDigits([OnceCell<InlineText>; 2]);

/// Record that is read cell by cell.
pub struct CellReader<'a, 'r, 'b> {
    found: Found<'a>,
    digits: &'a CellDigits,
    reader: DirectReader<'r, 'b>,
    is_own_shape: bool,
}

impl Decoder {
    /// Returns the part of an event to which these names lead; `None` if they lead elsewhere, or the shape has no fast path.
    pub fn part_at(&self, names: &[String]) -> Option<CellPart> {
        let mut places = &self.mapped.direct.as_ref()?.record;
        let (last, above) = names.split_last()?;
        for name in above {
            match &places.iter().find(|place| place.name == *name)?.leads {
                Leads::Below(below) => places = below,
                Leads::To(..) => return None,
            }
        }
        match &places.iter().find(|place| place.name == *last)?.leads {
            Leads::To(part, of) => Some(CellPart { part: *part, of: *of }),
            Leads::Below(_) => None,
        }
    }

    /// Returns the hash of an item; `None` if only its JSON can be read.
    #[inline]
    pub fn item_of_cell(&self, cell: Cell) -> Option<u64> {
        super::item_of(cell.value()?, &self.hash)
    }

    /// Appends the event of a record whose cells `fill` gives. Returns false, with the batch unchanged, if its JSON has to be
    /// decoded: for anything unusual, and for arms that the batch does not remember yet.
    pub fn decode_cells<'a>(
        &self,
        topic_kind: Option<Kind>,
        at: Position,
        digits: &'a CellDigits,
        batch: &mut Batch,
        fill: impl FnOnce(&mut CellReader<'a, '_, '_>) -> Option<()>,
    ) -> bool {
        let before = ArenaEnds::of(batch);
        let mut cells = CellReader {
            found: Found::default(),
            digits,
            reader: self.direct_reader(0, batch),
            is_own_shape: self.is_own_shape,
        };
        let body = fill(&mut cells).and_then(|()| cells.body(topic_kind));
        match body {
            Some(body) => {
                before.append(body, at, batch);
                true
            }
            None => {
                before.cut(batch);
                false
            }
        }
    }
}

impl<'a> CellReader<'a, '_, '_> {
    /// Takes a cell. `None` if only its JSON can be read.
    #[inline]
    pub fn cell(&mut self, part: CellPart, cell: Cell<'a>) -> Option<()> {
        let CellPart { part, of } = part;
        match (part, cell) {
            (EventPart::Id, Cell::Integer(number)) => {
                set(&mut self.found.ids, of, self.digits.of(0, number)?)
            }
            (EventPart::User, Cell::Integer(number)) => {
                set(&mut self.found.users, of, self.digits.of(1, number)?);
            }
            (part, cell) => part_of_value(part, of, cell.value()?, &mut self.found, &self.reader)?,
        }
        Some(())
    }

    /// Takes a value as JSON.
    pub fn json(&mut self, part: CellPart, json: &'a str) {
        let value = Some(Value::Json(json));
        match part.part {
            EventPart::Experiments => self.found.experiments = value,
            EventPart::Experiment => self.found.experiment = value,
            EventPart::Arm => self.found.arm = value,
            _ => {}
        }
    }

    /// Takes the hashes of a list's items. `None` if there are too many, or one is not an item.
    #[inline]
    pub fn items(&mut self, hashes: impl ExactSizeIterator<Item = Option<u64>>) -> Option<()> {
        if hashes.len() > self.reader.max_items {
            return None;
        }
        let items = &mut self.reader.batch.items;
        let start = items.len();
        for hash in hashes {
            items.push(hash?);
        }
        self.found.items = Some(range(start, items.len()));
        Some(())
    }

    fn body(&self, topic_kind: Option<Kind>) -> Option<Body> {
        let arms_by = match self.is_own_shape {
            true => ArmsBy::Object,
            false => ArmsBy::Key,
        };
        self.found.body(topic_kind, arms_by, &self.reader)
    }
}

impl<'a> Cell<'a> {
    #[inline]
    fn value(self) -> Option<Value<'a>> {
        match self {
            Cell::Text(text) => Some(Value::Text(text)),
            Cell::Integer(number) => Some(Value::Integer(number)),
            Cell::Time(ms) => Some(Value::Time(ms)),
            Cell::Other => None,
        }
    }
}

impl CellDigits {
    /// Returns the digits of a number; `None` if there is another one in this place.
    fn of(&self, place: usize, number: i64) -> Option<&[u8]> {
        let digits = &self.0[place];
        digits.set(InlineText::of(format_args!("{number}"))).ok()?;
        digits.get().map(|digits| digits.as_bytes())
    }
}
