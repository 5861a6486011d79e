//! Files that cannot be read: damaged ones, and columns of other types.

use std::collections::BTreeSet;

use super::*;

#[test]
fn reports_a_column_of_the_wrong_type_with_the_accepted_types() {
    let ids = "strings, integers, UUIDs or DECIMALs of up to 38 digits";
    let items = "lists of strings, integers, UUIDs or DECIMALs of up to 38 digits, or strings of JSON arrays";
    for (column, stored, written, may_hold) in [
        ("item", Values::Double(vec![1.0]), "REQUIRED DOUBLE item", ids),
        ("item", Values::Bool(vec![true]), "REQUIRED BOOLEAN item", ids),
        (
            "item",
            Values::Int64(vec![1]),
            "REQUIRED INT64 item (TIMESTAMP(MILLIS,true))",
            ids,
        ),
        (
            "user_id",
            Values::Int32(vec![1]),
            "REQUIRED INT32 user_id (DATE)",
            ids,
        ),
        (
            "user_id",
            Values::Fixed(vec![FixedLenByteArray::from(vec![0; 17])]),
            "REQUIRED FIXED_LEN_BYTE_ARRAY (17) user_id (DECIMAL(39,0))",
            ids,
        ),
        (
            "user_id",
            Values::Fixed(vec![FixedLenByteArray::from(vec![0; 16])]),
            "REQUIRED FIXED_LEN_BYTE_ARRAY (16) user_id",
            ids,
        ),
        (
            "items",
            Values::Int32(vec![1]),
            "REQUIRED group items { REQUIRED INT32 first; }",
            items,
        ),
        (
            "experiments",
            Values::Int32(vec![1]),
            "REQUIRED group experiments { REQUIRED INT32 e; }",
            "maps of strings to strings, structs of strings, or strings of JSON",
        ),
    ] {
        let schema = written.replace("BYTE_ARRAY (", "BYTE_ARRAY(");
        let schema = if schema.ends_with('}') {
            schema
        } else {
            schema + ";"
        };
        check_refused(
            &schema,
            stored,
            &format!("column {column} is `{written}`: write {may_hold}"),
        );
    }
}

#[test]
fn rejects_times_of_other_types() {
    for column in [
        "REQUIRED FLOAT ts",
        "REQUIRED INT32 ts (DATE)",
        "REQUIRED INT32 ts (TIME(MILLIS,true))",
        "REQUIRED FIXED_LEN_BYTE_ARRAY (16) ts (UUID)",
    ] {
        let columns = format!(
            "required binary type; required binary request_id; {};",
            column.replace("BYTE_ARRAY (", "BYTE_ARRAY(")
        );
        let stored = [texts(["click"; 0]), texts([""; 0])].map(Values::required);
        let error = records(file(&columns, &stored, 0, WriterProperties::default())).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "column ts is `{column}`: write timestamps, 64-bit integers or doubles of epoch milliseconds, or strings \
                 of RFC 3339"
            )
        );
    }
}

#[test]
fn rejects_duplicate_column_names() {
    let stored = [click(), vec![texts(["i"]).required(), texts(["j"]).required()]].concat();
    let columns = format!("{CLICK} required binary item; required binary item;");
    let file = file(&columns, &stored, 1, WriterProperties::default());
    let reported = "it has several columns item: give each its own name";
    assert_eq!(records(file).unwrap_err().to_string(), reported);
}

#[test]
fn rejects_a_file_without_a_required_column() {
    let columns = "required binary type; required binary request_id;";
    let stored = [texts(["click"]), texts(["r"])].map(Values::required);
    let error = records(file(columns, &stored, 1, WriterProperties::default())).unwrap_err();
    let times = "timestamps, 64-bit integers or doubles of epoch milliseconds, or strings of RFC 3339";
    assert_eq!(error.to_string(), format!("it has no column ts: {times}"));
    let stored = [Values::required(texts(["r"]))];
    let file = file(
        "required binary request_id;",
        &stored,
        1,
        WriterProperties::default(),
    );
    let error = records(file).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "name it with --lists FILE or --clicks FILE, or check it with --as served or --as click"
        ),
        "{error}"
    );
}

/// Returns the bytes of a small file.
fn click_file() -> Vec<u8> {
    let mut whole = Vec::new();
    let mut written = file(CLICK, &click(), 1, WriterProperties::default());
    written.seek(SeekFrom::Start(0)).unwrap();
    written.read_to_end(&mut whole).unwrap();
    whole
}

fn outcome(content: &[u8]) -> Result<usize, String> {
    let file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &file, content).unwrap();
    let records = records(file).map_err(|error| format!("{error:#}"));
    records.map(|records| records.len())
}

#[test]
fn rejects_a_truncated_file() {
    let whole = click_file();
    assert_eq!(outcome(&whole), Ok(1));
    for end in 4..whole.len() {
        let error = outcome(&whole[..end]).unwrap_err();
        assert!(error.contains("ends early"), "{end}: {error}");
    }
}

/// The Parquet reader panics on some of these files.
#[test]
fn a_damaged_file_yields_its_rows_or_an_error() {
    let whole = click_file();
    let mut errors = BTreeSet::new();
    for (at, byte) in (4..whole.len()).flat_map(|at| [(at, 0x00), (at, 0x08), (at, 0xff)]) {
        let mut damaged = whole.clone();
        damaged[at] = byte;
        match outcome(&damaged) {
            Ok(n_rows) => assert_eq!(n_rows, 1, "byte {at} is {byte:#x}"),
            Err(error) => _ = errors.insert(error),
        }
    }
    // One of the damaged bytes is the codec of a column.
    for reported in [
        "it is damaged: its parts do not fit together",
        "column type is compressed with brotli: write it with snappy, zstd, gzip, lz4 or none",
    ] {
        assert!(errors.contains(reported), "{reported}: {errors:#?}");
    }
}

/// The reader would allocate memory for that many entries before it finds that they are missing.
#[test]
fn rejects_a_dictionary_that_claims_too_many_entries() {
    let mut damaged = click_file();
    let entries = b"\x4c\x15\x02";
    let place = damaged.windows(3).position(|bytes| bytes == entries);
    damaged[place.expect("a dictionary of one") + 2] = 0x7e;
    let error = outcome(&damaged).unwrap_err();
    assert!(error.contains("a page says that it has more than"), "{error}");
}
