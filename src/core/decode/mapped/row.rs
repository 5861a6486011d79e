//! A record of one shown item, of a list that is gathered: its item, position and click flag are read from the record itself.

use std::ops::Range;

use super::super::shape::{Paths, ServedShape};
use super::super::value::{Text, Value};
use super::super::{json, range};
use super::items::is_true;
use super::tree::{Tree, find_in_both};
use super::{Field, Mapped, MappedFields, Problem, Sink};
use crate::engine::event::Reason;

/// Locates the position of an item, and whether it was clicked.
#[derive(Debug, Clone)]
pub(super) struct InRow {
    /// Paths within an event, and within the record around it.
    trees: [Tree<2>; 2],
    has_position: bool,
    says_clicked: bool,
}

impl InRow {
    /// `None` if records are whole lists.
    pub fn new(shape: &ServedShape) -> Option<InRow> {
        shape.gather_ms?;
        let tree = |is_outer| {
            let paths = [&shape.position, &shape.clicked];
            let paths = paths.map(|paths| paths.as_ref()?.that_are(is_outer));
            Tree::new(paths.each_ref().map(Option::as_ref))
        };
        Some(InRow {
            trees: [tree(false), tree(true)],
            has_position: shape.position.is_some(),
            says_clicked: shape.clicked.is_some(),
        })
    }
}

impl Mapped {
    /// Reads the one item of a record. Returns its range in the batch; a list of no item has an empty one.
    pub(super) fn row(
        &self,
        row: &InRow,
        fields: &MappedFields,
        sink: &mut Sink,
    ) -> Result<Range<u32>, Problem> {
        let start = sink.batch.items.len();
        let item = match self.shape.served.absent_is_empty {
            true => fields.unless_null(Field::Items),
            false => fields.required(Field::Items).map(Some),
        };
        let Some(item) = item.map_err(Problem::of(Field::Items))? else {
            // A row without an item marks an empty list.
            return Ok(range(start, start));
        };
        let item = item.only_text().id().map_err(Problem::of(Field::Items))?;
        let found = find_in_both(&row.trees, fields.objects);
        let [position, clicked] = found.map_err(Problem::of_record)?;
        let position = match row.has_position {
            true => position.required().and_then(position_of),
            false => Ok(0),
        };
        let position = position.map_err(Problem::of(Field::Position))?;
        let is_clicked = row.says_clicked && is_true(clicked).map_err(Problem::of(Field::Clicked))?;
        sink.item(&item);
        // Positions have the indices of their items, and other items may come before.
        sink.batch.positions.resize(start, 0);
        sink.batch.positions.push(position);
        if is_clicked {
            sink.click(&item);
        }
        Ok(range(start, start + 1))
    }

    /// The paths of a field of a row, and its value.
    pub(super) fn value_in_row<'a>(
        &self,
        field: Field,
        fields: &MappedFields<'a>,
    ) -> Option<(&Paths, Option<Value<'a>>)> {
        let row = self.in_row.as_ref()?;
        let [position, clicked] = find_in_both(&row.trees, fields.objects).ok()?;
        let (paths, found) = match field {
            Field::Position => (self.shape.served.position.as_ref()?, position),
            Field::Clicked => (self.shape.served.clicked.as_ref()?, clicked),
            _ => return None,
        };
        Some((paths, found.required().ok()))
    }
}

/// Reads a position, quoted or not.
fn position_of(value: Value) -> Result<i64, Reason> {
    let text = match value.only_text() {
        Value::Json(raw) => json::integer(raw.trim_matches('"')).map(Text::Borrowed),
        value => value.text_or_integer(),
    };
    text?.parse().map_err(|_| Reason::Number)
}
