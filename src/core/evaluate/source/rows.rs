//! Rows of CSV as JSON records. Cells are text, except those that hold a JSON object or array; an empty cell is an absent field.

use std::cell::Cell;
use std::io::Read;

use serde::de::IgnoredAny;

use super::array::BoundedElements;
use super::columns::{EventFields, Layout, placed};
use super::table;
use crate::decode::schema::RawRecord;

/// Calls back with the record of each row and the number of its line.
///
/// # Errors
/// Fails if it cannot be read to its end, or has no column with the id of a list or click.
pub(super) fn each(
    input: impl Read,
    fields: &EventFields,
    record: &mut dyn FnMut(u64, RawRecord),
) -> anyhow::Result<()> {
    let n_bytes = Cell::new(0);
    // Text in quotes may have any number of lines.
    let mut reader = table::reader(BoundedElements {
        input,
        n_bytes: &n_bytes,
        too_long: "a row has 64 MiB or more: a quote in it is not closed",
    })?;
    let header = table::header(&mut reader)?;
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    let columns = placed(&names, fields)?;
    let layout = Layout::of(columns.iter().map(|column| column.names.as_slice()))?;
    let (mut row, mut json) = (csv::StringRecord::new(), Vec::new());
    while reader.read_record(&mut row).map_err(table::in_words)? {
        n_bytes.set(0);
        json.clear();
        layout.write(&mut json, &mut |column, out| {
            let cell = row.get(columns[column].index).unwrap_or_default();
            write_cell(cell, out);
            !cell.is_empty()
        });
        let line = row.position().map_or(0, csv::Position::line);
        record(line, json.as_slice().into());
    }
    Ok(())
}

/// Writes text as JSON.
pub(super) fn write_cell(text: &str, out: &mut Vec<u8>) {
    match is_json(text) {
        true => out.extend_from_slice(text.as_bytes()),
        false => serde_json::to_writer(out, text).expect("memory takes any text"),
    }
}

/// Returns whether text is a JSON object or array.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns whether a file is CSV by its first bytes: several names in the first line, and no JSON in the second.
pub(super) fn is_csv(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_start_matches('\u{feff}').split('\n');
    let header = lines.next().unwrap_or_default().trim_end();
    let delimiter = char::from(table::delimiter(header.as_bytes()));
    let cells: Vec<&str> = header
        .split(delimiter)
        .map(|cell| cell.trim().trim_matches('"'))
        .collect();
    let is_json = lines
        .next()
        .is_some_and(|line| line.trim_start().starts_with('{'));
    cells.len() > 1 && cells.into_iter().all(is_name) && !is_json
}

/// Returns whether a cell may be the name of a column. That of a pandas index is empty.
fn is_name(cell: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.$#@ ".contains(c);
    cell.chars().all(is_of_name) && cell.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::shape::{Path, Shape};
    use crate::engine::event::Kind;

    fn records(text: &str, fields: &EventFields) -> anyhow::Result<Vec<(u64, String)>> {
        let mut records = Vec::new();
        each(text.as_bytes(), fields, &mut |line, record| {
            records.push((line, String::from_utf8_lossy(record.bytes).into_owned()));
        })?;
        Ok(records)
    }

    #[test]
    fn a_first_row_of_names_makes_csv() {
        for text in [
            "type,request_id,ts\nserved,r,5",
            "\u{feff}\"type\";\"request id\"\r\n",
            ",a\n0,1",
            "@timestamp\ta.b",
        ] {
            assert!(is_csv(text.as_bytes()), "{text}");
        }
        for text in [
            "type\nserved",
            "1,2,3\n4,5,6",
            "12:00:00,u1,shown: a\n",
            "noise, and\n{\"type\":\"click\"}",
            "\"a, b\": 1",
            "",
        ] {
            assert!(!is_csv(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn cells_are_text_json_or_absent() {
        let text = "ts,request_id,items,price,item\n5,\"a\"\"b\",\"[\"\"i\"\",7]\",9,\n6,r,[oops,,[1]\n";
        let expected = [
            (2, r#"{"ts":"5","request_id":"a\"b","items":["i",7]}"#),
            (3, r#"{"ts":"6","request_id":"r","items":"[oops","item":[1]}"#),
        ];
        let expected = expected.map(|(line, json)| (line, json.to_owned()));
        assert_eq!(records(text, &EventFields::default()).expect("rows"), expected);
    }

    #[test]
    fn a_quote_that_is_not_closed_ends_with_an_error() {
        let endless = b"request_id,ts\n\"1\n".chain(std::io::repeat(b'\n'));
        let error = each(endless, &EventFields::default(), &mut |_, _| {}).expect_err("it has no end");
        assert!(
            format!("{error:#}").contains("a row has 64 MiB or more"),
            "{error:#}"
        );
    }

    #[test]
    fn further_fields_and_nested_columns_are_read() {
        let further = [Path::parse("ctx.device").expect("a path")];
        let fields = EventFields {
            further: &further,
            ..EventFields::default()
        };
        let text = "request_id,ctx.device,experiments.e\nr,ios,a\n";
        let expected = r#"{"request_id":"r","ctx":{"device":"ios"},"experiments":{"e":"a"}}"#;
        assert_eq!(records(text, &fields).expect("rows"), [(2, expected.to_owned())]);
    }

    #[test]
    fn a_table_without_ids_is_refused_with_its_columns() {
        let error = records("user_id,item_id\n1,2\n", &EventFields::default()).expect_err("no id");
        let reported =
            "it has no column request_id, which links clicks to lists: its columns are user_id, item_id;";
        assert!(error.to_string().starts_with(reported), "{error}");
        let mut shape = Shape::default();
        shape.served.request_id = Path::parse("rec").expect("a path").into();
        let of_kind = |kind| EventFields {
            shape: Some(&shape),
            kind: Some(kind),
            ..EventFields::default()
        };
        assert!(records("rec,ts\n", &of_kind(Kind::Served)).is_ok());
        assert!(records("rec,ts\n", &of_kind(Kind::Click)).is_err());
        let several = records("request_id,experiments,experiments.e\n", &EventFields::default());
        let several = several.expect_err("two columns").to_string();
        assert!(several.contains("several columns for experiments.e"), "{several}");
    }
}
