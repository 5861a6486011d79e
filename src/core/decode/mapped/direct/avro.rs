//! Fast path through records of Avro.

use super::super::super::avro::{AvroBytes, AvroField, AvroObject, AvroSchema, AvroType, TypeId};
use super::super::super::hash::Hashes;
use super::super::super::range;
use super::{
    ArmsBy, Direct, DirectReader, EventPart, Found, Leads, Place, item_of, part_of_text, part_of_value,
};
use crate::engine::event::{Body, Kind};

/// Places of a record's fields, so that their names need not be compared in each record.
#[derive(Debug)]
pub(in super::super::super) struct AvroPlan(Vec<Option<usize>>);

impl AvroPlan {
    /// Returns `None` if the schema has several types of records.
    fn new(direct: &Direct, schema: &AvroSchema) -> Option<AvroPlan> {
        let AvroType::Record(fields) = schema.of(schema.root()) else {
            return None;
        };
        let index = |field: &AvroField| direct.record.iter().position(|place| place.is_of(field));
        Some(AvroPlan(fields.iter().map(index).collect()))
    }

    #[inline(always)]
    fn placed<'a, 'p>(
        &'p self,
        direct: &'p Direct,
        fields: &'a [AvroField],
    ) -> impl Iterator<Item = (&'a AvroField, Option<&'p Place>)> + use<'a, 'p> {
        let places = self.0.iter().map(|index| Some(&direct.record[(*index)?]));
        fields.iter().zip(places)
    }
}

impl Place {
    #[inline(always)]
    fn is_of(&self, field: &AvroField) -> bool {
        self.hash == field.hash && self.name == field.name
    }
}

impl Direct {
    /// Reads a record of Avro.
    pub fn avro(
        &self,
        schema: &AvroSchema,
        payload: &[u8],
        topic_kind: Option<Kind>,
        reader: &mut DirectReader,
    ) -> Option<Body> {
        let mut found = Found::default();
        let (fields, mut bytes) = AvroObject::of_payload(schema, payload).ok()?.fields()?;
        let plan = schema.plans().of_shape(self.id, || AvroPlan::new(self, schema));
        match plan {
            Some(plan) => self.avro_record(plan.placed(self, fields), &mut bytes, &mut found, reader)?,
            None => self.avro_record(placed(&self.record, fields), &mut bytes, &mut found, reader)?,
        }
        match bytes.is_at_end() {
            true => found.body(topic_kind, ArmsBy::Key, reader),
            false => None,
        }
    }

    fn avro_record<'a, 'p>(
        &self,
        fields: impl Iterator<Item = (&'a AvroField, Option<&'p Place>)>,
        bytes: &mut AvroBytes<'a>,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        for (field, place) in fields {
            let Some(place) = place else {
                bytes.pass(field.of)?;
                continue;
            };
            let id = bytes.within_unions(field.of)?;
            match (&place.leads, bytes.type_of(id)) {
                (Leads::Below(_), AvroType::Null) => {}
                (Leads::Below(places), AvroType::Record(fields)) => {
                    bytes.enter()?;
                    self.avro_record(placed(places, fields), bytes, found, reader)?;
                    bytes.leave();
                }
                (Leads::Below(_), _) => return None,
                (Leads::To(part, _), AvroType::Null) if part.may_be_null() => {}
                (Leads::To(EventPart::Items, _), AvroType::Array(of)) => {
                    let start = reader.batch.items.len();
                    self.avro_items(*of, bytes, reader)?;
                    found.items = Some(range(start, reader.batch.items.len()));
                }
                (Leads::To(part, of), AvroType::Text) => {
                    part_of_text(*part, *of, bytes.sized()?, found, reader)?;
                }
                (Leads::To(part, of), _) => part_of_value(*part, *of, bytes.value(id)?, found, reader)?,
            }
        }
        Some(())
    }

    #[inline(never)]
    fn avro_items(&self, of: TypeId, bytes: &mut AvroBytes, reader: &mut DirectReader) -> Option<()> {
        let hash = reader.hash;
        let items = &mut reader.batch.items;
        let most = items.len() + reader.max_items;
        let mut own = *bytes;
        if let AvroType::Text = own.type_of(of) {
            loop {
                let n = own.block()?;
                if n == 0 {
                    break;
                }
                let block = own;
                for _ in 0..n {
                    items.push(hash.checked_item(own.sized()?)?);
                }
                if items.len() > most {
                    return None;
                }
                // Short lengths are ASCII too, so one look at the whole block is enough for most lists.
                if !block.before(&own).is_ascii() {
                    block.check_texts(n)?;
                }
            }
        } else {
            let mut n_left = 0;
            own.enter()?;
            while own.has_next(Some(of), &mut n_left)? {
                let id = own.within_unions(of)?;
                let item = match own.type_of(id) {
                    AvroType::Record(fields) => avro_item(&self.item, fields, &mut own, &hash)?,
                    _ => item_of(own.value(id)?, &hash)?,
                };
                items.push(item);
                if items.len() > most {
                    return None;
                }
            }
            own.leave();
        }
        *bytes = own;
        Some(())
    }
}

/// Returns each field of a record with its place.
#[inline(always)]
fn placed<'a, 'p>(
    places: &'p [Place],
    fields: &'a [AvroField],
) -> impl Iterator<Item = (&'a AvroField, Option<&'p Place>)> + use<'a, 'p> {
    fields.iter().map(move |field| (field, place_of(places, field)))
}

#[inline(always)]
fn place_of<'p>(places: &'p [Place], field: &AvroField) -> Option<&'p Place> {
    places.iter().find(|place| place.is_of(field))
}

/// Returns the hash of an item that is a record.
fn avro_item(places: &[Place], fields: &[AvroField], bytes: &mut AvroBytes, hash: &Hashes) -> Option<u64> {
    let mut item = None;
    for field in fields {
        match place_of(places, field) {
            None => bytes.pass(field.of)?,
            Some(Place {
                leads: Leads::To(..), ..
            }) => item = Some(item_of(bytes.value(field.of)?, hash)?),
            Some(_) => return None,
        }
    }
    item
}
