//! Building blocks of the bytes of looks: floats, options, maps and names.

use std::collections::BTreeMap;

use super::AsOfError;
use crate::bytes::{Malformed, Reader, Writer, insert_last};

pub fn float(to: &mut Writer, number: f64) {
    to.bytes(&number.to_le_bytes());
}

/// Reads a finite float.
pub fn read_float(from: &mut Reader) -> Result<f64, AsOfError> {
    let number = f64::from_le_bytes(from.array()?);
    number
        .is_finite()
        .then_some(number)
        .ok_or(AsOfError::Malformed(Malformed::Number))
}

/// Writes 0 for none, or 1 and the value.
pub fn option<T>(to: &mut Writer, value: Option<&T>, write: impl FnOnce(&mut Writer, &T)) {
    to.byte(u8::from(value.is_some()));
    if let Some(value) = value {
        write(to, value);
    }
}

pub fn read_option<T>(
    from: &mut Reader,
    read: impl FnOnce(&mut Reader) -> Result<T, AsOfError>,
) -> Result<Option<T>, AsOfError> {
    from.flag()?.then(|| read(from)).transpose()
}

/// Writes the length, then each name with its value.
pub fn map<T>(to: &mut Writer, map: &BTreeMap<String, T>, mut write: impl FnMut(&mut Writer, &T)) {
    to.number(map.len() as u64);
    for (name, value) in map {
        to.text(name);
        write(to, value);
    }
}

pub fn read_map<T>(
    from: &mut Reader,
    mut read: impl FnMut(&mut Reader) -> Result<T, AsOfError>,
) -> Result<BTreeMap<String, T>, AsOfError> {
    let mut all = BTreeMap::new();
    for _ in 0..from.length()? {
        let name = from.text()?.to_owned();
        insert_last(&mut all, name, read(from)?)?;
    }
    Ok(all)
}

pub fn names<'a>(to: &mut Writer, names: impl ExactSizeIterator<Item = &'a String>) {
    to.number(names.len() as u64);
    names.for_each(|name| to.text(name));
}
