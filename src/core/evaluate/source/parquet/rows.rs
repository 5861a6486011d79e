//! Rows whose cells go to the decoder without JSON between. Whatever is unusual in a row, or in the columns of a file, is left to the
//! JSON of the row.

use std::ops::Range;

use super::leaf::{Leaf, NoEntry};
use super::nested::Nested;
use crate::decode::{CellDigits, CellForm, CellPart, CellReader, Decoder};
use crate::engine::event::{Batch, Kind, Position};

/// Columns that hold parts of events.
pub(super) struct RowPlan {
    columns: Vec<PlannedColumn>,
    item_hashes: ItemHashes,
    /// JSON of the row's parts that are read as such, and the place of each.
    json: Vec<u8>,
    json_parts: Vec<(CellPart, Range<usize>)>,
}

struct PlannedColumn {
    part: CellPart,
    /// Index of the field, and of the fields within it that lead to the column.
    field: usize,
    within: Vec<usize>,
}

/// Hashes of the items in the dictionary of a row group, by number, as far as they were needed.
#[derive(Default)]
struct ItemHashes {
    row_group: u64,
    hashes: Vec<Option<u64>>,
}

impl RowPlan {
    /// Returns `None` if the columns of a file can be read only as JSON. `places` are the names that lead to the fields.
    pub(super) fn new(decoder: &Decoder, fields: &[Nested], places: &[Vec<String>]) -> Option<RowPlan> {
        let mut plan = RowPlan {
            columns: Vec::new(),
            item_hashes: ItemHashes::default(),
            json: Vec::new(),
            json_parts: Vec::new(),
        };
        for (index, (field, names)) in fields.iter().zip(places).enumerate() {
            plan.add_field(decoder, fields, index, field, names, &[])?;
        }
        Some(plan)
    }

    fn add(&mut self, part: CellPart, fields: &[Nested], field: usize, within: &[usize]) -> Option<()> {
        let column = PlannedColumn {
            part,
            field,
            within: within.to_vec(),
        };
        let can_be_read = match part.form() {
            CellForm::Single => column.leaf(fields).is_some(),
            CellForm::Items => column.items(fields).is_some(),
            CellForm::Json => true,
        };
        can_be_read.then(|| self.columns.push(column))
    }

    /// Adds the columns of a field, which is the one that `names` and `within` lead to.
    fn add_field(
        &mut self,
        decoder: &Decoder,
        fields: &[Nested],
        index: usize,
        field: &Nested,
        names: &[String],
        within: &[usize],
    ) -> Option<()> {
        if let Some(part) = decoder.part_at(names) {
            return self.add(part, fields, index, within);
        }
        let Nested::Object { fields: inner, .. } = field else {
            return None;
        };
        for (n, (name, field)) in inner.iter().enumerate() {
            let names = [names, &[serde_json::from_slice(name).ok()?]].concat();
            self.add_field(decoder, fields, index, field, &names, &[within, &[n]].concat())?;
        }
        Some(())
    }

    /// Decodes the current row of these fields. Returns false, with the batch unchanged, if its JSON has to be decoded.
    pub(super) fn decode(
        &mut self,
        fields: &mut [Nested],
        decoder: &Decoder,
        kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) -> bool {
        if self.write_json(fields).is_none() {
            return false;
        }
        let RowPlan {
            columns,
            item_hashes,
            json,
            json_parts,
        } = self;
        let Ok(json) = std::str::from_utf8(json) else {
            return false;
        };
        let digits = CellDigits::default();
        decoder.decode_cells(kind, at, &digits, batch, |cells| {
            for (part, place) in json_parts.iter() {
                cells.json(*part, json.get(place.clone())?);
            }
            for column in columns.iter() {
                match column.part.form() {
                    CellForm::Single => take_single(column, fields, cells)?,
                    CellForm::Items => item_hashes.take_items(column.items(fields)?, decoder, cells)?,
                    CellForm::Json => {}
                }
            }
            Some(())
        })
    }

    fn write_json(&mut self, fields: &mut [Nested]) -> Option<()> {
        self.json.clear();
        self.json_parts.clear();
        let of_json = self
            .columns
            .iter()
            .filter(|column| column.part.form() == CellForm::Json);
        for column in of_json {
            let start = self.json.len();
            if column.write(fields, &mut self.json)? {
                self.json_parts.push((column.part, start..self.json.len()));
            }
        }
        Some(())
    }
}

impl PlannedColumn {
    #[inline]
    fn nested<'f>(&self, fields: &'f [Nested]) -> Option<&'f Nested> {
        let mut nested = &fields[self.field];
        for n in &self.within {
            match nested {
                Nested::Object { fields, .. } => nested = &fields[*n].1,
                _ => return None,
            }
        }
        Some(nested)
    }

    /// Returns the column of single cells.
    #[inline]
    fn leaf<'f>(&self, fields: &'f [Nested]) -> Option<&'f Leaf> {
        match self.nested(fields)? {
            Nested::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// Returns the column of the items of a list.
    #[inline]
    fn items<'f>(&self, fields: &'f [Nested]) -> Option<&'f Leaf> {
        match self.nested(fields)? {
            Nested::List { element, .. } => match &**element {
                Nested::Leaf(leaf) => Some(leaf),
                _ => None,
            },
            _ => None,
        }
    }

    /// Writes the row's value as JSON, and returns whether it has one. `None` if its columns do not fit together.
    fn write(&self, fields: &mut [Nested], json: &mut Vec<u8>) -> Option<bool> {
        let mut nested = &mut fields[self.field];
        for n in &self.within {
            match nested {
                Nested::Object { fields, .. } => nested = &mut fields[*n].1,
                _ => return None,
            }
        }
        nested.write_row(json)
    }
}

#[inline]
fn take_single<'a>(
    column: &PlannedColumn,
    fields: &'a [Nested],
    cells: &mut CellReader<'a, '_, '_>,
) -> Option<()> {
    let leaf = column.leaf(fields)?;
    match leaf.first_value() {
        Some(value) => cells.cell(column.part, leaf.cell(value)),
        // A null is an absent field.
        None => Some(()),
    }
}

impl ItemHashes {
    #[inline]
    fn take_items(&mut self, leaf: &Leaf, decoder: &Decoder, cells: &mut CellReader) -> Option<()> {
        let Some(values) = leaf.values() else {
            return match leaf.no_entry()? {
                NoEntry::NoList => Some(()),
                NoEntry::EmptyList => cells.items(std::iter::empty()),
            };
        };
        let Some((numbers, texts)) = leaf.numbered() else {
            return cells.items(values.map(|value| decoder.item_of_cell(leaf.cell(value))));
        };
        if self.row_group != leaf.n_opened() {
            self.row_group = leaf.n_opened();
            self.hashes.clear();
        }
        let hashes = &mut self.hashes;
        cells.items(values.map(|value| {
            let number = numbers[value] as usize;
            if let Some(Some(hash)) = hashes.get(number) {
                return Some(*hash);
            }
            let hash = decoder.item_of_cell(leaf.cell(value))?;
            if texts.is_in_dictionary(numbers[value]) {
                hashes.resize(hashes.len().max(number + 1), None);
                hashes[number] = Some(hash);
            }
            Some(hash)
        }))
    }
}
