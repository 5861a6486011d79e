//! What each column may hold, and what becomes of it.

use super::*;

#[test]
fn ids_are_strings_or_integers() {
    for (column, stored, expected) in [
        ("binary item (STRING)", texts(["i"]), r#""i""#),
        ("binary item", texts(["i"]), r#""i""#),
        ("binary item (ENUM)", texts(["i"]), r#""i""#),
        ("binary item (STRING)", texts(["\"\\\n\u{e9}"]), r#""\"\\\né""#),
        ("int32 item", Values::Int32(vec![-5]), "-5"),
        ("int32 item (INTEGER(8,true))", Values::Int32(vec![5]), "5"),
        ("int32 item (UINT_32)", Values::Int32(vec![-1]), "4294967295"),
        (
            "int64 item",
            Values::Int64(vec![i64::MIN]),
            "-9223372036854775808",
        ),
        (
            "int64 item (INTEGER(64,false))",
            Values::Int64(vec![-1]),
            "18446744073709551615",
        ),
    ] {
        check(
            &format!("required {column};"),
            &[stored.required()],
            &format!(r#","item":{expected}"#),
        );
    }
}

#[test]
fn text_that_is_no_utf_8_makes_a_record_that_is_none() {
    let file = file(
        "required binary type; required binary request_id; required int64 ts;",
        &[
            texts([b"click"]).required(),
            texts([b"\xff\""]).required(),
            Values::Int64(vec![1]).required(),
        ],
        1,
        WriterProperties::default(),
    );
    let mut is_text = None;
    read(file, &|_| {}, &mut |_, record| {
        is_text = Some(std::str::from_utf8(record).is_ok())
    })
    .unwrap();
    assert_eq!(is_text, Some(false));
}

#[test]
fn times_of_any_unit_become_milliseconds() {
    for (column, stored, expected) in [
        (
            "int64 ts",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MILLIS)",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MICROS)",
            Values::Int64(vec![1_763_596_800_123_999]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP(MILLIS,false))",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        ("int64 ts (TIMESTAMP(MICROS,true))", Values::Int64(vec![-1]), "-1"),
        (
            "int64 ts (TIMESTAMP(NANOS,true))",
            Values::Int64(vec![1_763_596_800_123_999_999]),
            "1763596800123",
        ),
        (
            "binary ts (STRING)",
            texts(["2025-11-20T00:00:00Z"]),
            r#""2025-11-20T00:00:00Z""#,
        ),
    ] {
        check_time(&format!("required {column};"), stored, expected);
    }
    // Nanoseconds of the day in 64 bits, then the Julian day: 2025-11-20, one second after midnight.
    let mut second = Int96::new();
    second.set_data(1_000_000_000, 0, 2_461_000);
    check_time("required int96 ts;", Values::Int96(vec![second]), "1763596801000");
}

#[test]
fn lists_are_null_or_empty_or_hold_strings_integers_or_nulls() {
    let column = "optional group items (LIST) { repeated group list { optional binary element (STRING); } }";
    for (values, definition, repetition, expected) in [
        (&[][..], &[0][..], &[0][..], ""),
        (&[], &[1], &[0], r#","items":[]"#),
        (&[], &[2], &[0], r#","items":[null]"#),
        (&["a"], &[3], &[0], r#","items":["a"]"#),
        (&["a", "b"], &[3, 2, 3], &[0, 1, 1], r#","items":["a",null,"b"]"#),
    ] {
        check(column, &[texts(values).stored(definition, repetition)], expected);
    }
    let integers = "required group items (LIST) { repeated group list { required int64 element; } }";
    check(
        integers,
        &[Values::Int64(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![]).stored(&[0], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn experiments_may_be_a_map() {
    for column in [
        "optional group experiments (MAP) { repeated group key_value {
            required binary key (STRING); optional binary value (STRING); } }",
        "optional group experiments (LIST) { repeated group list { required group element {
            required binary key (STRING); optional binary value (STRING); } } }",
    ] {
        let stored = |keys: &[&str], values: &[&str], key: &[i16], value: &[i16], repetition: &[i16]| {
            [
                texts(keys).stored(key, repetition),
                texts(values).stored(value, repetition),
            ]
        };
        check(column, &stored(&[], &[], &[0], &[0], &[0]), "");
        check(
            column,
            &stored(&[], &[], &[1], &[1], &[0]),
            r#","experiments":{}"#,
        );
        check(
            column,
            &stored(&["e", "f", "g"], &["a", "b"], &[2, 2, 2], &[3, 2, 3], &[0, 1, 1]),
            r#","experiments":{"e":"a","g":"b"}"#,
        );
    }
}

#[test]
fn experiments_may_be_a_struct() {
    let column = "optional group experiments { optional binary e (STRING); optional binary f\"g (STRING); }";
    let stored = |values: [&[&str]; 2], definition: [i16; 2]| {
        [0, 1].map(|field| texts(values[field]).stored(&[definition[field]], &[]))
    };
    check(column, &stored([&[], &[]], [0, 0]), r#","experiments":{}"#);
    check(
        column,
        &stored([&[], &["b"]], [1, 2]),
        r#","experiments":{"f\"g":"b"}"#,
    );
    check(
        column,
        &stored([&["a"], &["b"]], [2, 2]),
        r#","experiments":{"e":"a","f\"g":"b"}"#,
    );
}

#[test]
fn experiments_may_be_json_and_what_is_none_is_a_string() {
    let column = "required binary experiments (JSON);";
    check(
        column,
        &[texts([r#"{"e": "a"}"#]).required()],
        r#","experiments":{"e": "a"}"#,
    );
    check(
        column,
        &[texts([r#"{},"ts":2"#]).required()],
        r#","experiments":"{},\"ts\":2""#,
    );
    check(column, &[texts([""]).required()], r#","experiments":"""#);
}

#[test]
fn nulls_and_columns_of_nulls_are_absent() {
    check(
        "optional binary user_id (STRING);",
        &[texts([""; 0]).stored(&[0], &[])],
        "",
    );
    for name in ["user_id", "experiments", "items", "item"] {
        let nulls = Values::Int32(vec![]).stored(&[0], &[]);
        check(&format!("optional int32 {name} (UNKNOWN);"), &[nulls], "");
    }
    let empty = "optional group items (LIST) { repeated group list { optional int32 element (UNKNOWN); } }";
    check(
        empty,
        &[Values::Int32(vec![]).stored(&[1], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn other_columns_are_not_looked_at() {
    let column = "required double score; required group deep { required binary item (STRING); }";
    check(
        column,
        &[Values::Double(vec![0.5]).required(), texts(["i"]).required()],
        "",
    );
}

#[test]
fn rows_are_counted_through_row_groups_and_all_bytes_are_told() {
    let file = file(CLICK, &click(), 3, WriterProperties::default());
    let n_bytes = file.metadata().unwrap().len();
    let n_told = Cell::new(0);
    let mut numbers = Vec::new();
    read(file, &|n| n_told.set(n_told.get() + n), &mut |number, _| {
        numbers.push(number)
    })
    .unwrap();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(n_told.get(), n_bytes);
}

#[test]
fn a_file_without_rows_has_no_records() {
    assert_eq!(
        records(file(CLICK, &click(), 0, WriterProperties::default())).unwrap(),
        []
    );
}
