use std::cell::Cell;
use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

const EVENTS: &str = "{\"type\":\"served\"}\n{\"type\":\"click\"}\n";

/// Creates a file whose name does not reveal its format.
fn file(content: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events");
    std::fs::write(&path, content).unwrap();
    (dir, path)
}

fn records(path: &Path) -> anyhow::Result<Vec<(u64, String)>> {
    let mut records = Vec::new();
    read(path, &EventFields::default(), &|_| {}, |number, record| {
        records.push((number, String::from_utf8_lossy(record.bytes).into_owned()));
    })?;
    Ok(records)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

/// Returns a skippable frame of zstd.
fn skipped_frame() -> Vec<u8> {
    [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], &b"any"[..]].concat()
}

#[track_caller]
fn check(content: &[u8], expected: &[(u64, &str)]) {
    let (_dir, path) = file(content);
    let found = records(&path).unwrap();
    let found: Vec<(u64, &str)> = found
        .iter()
        .map(|(number, record)| (*number, &**record))
        .collect();
    assert_eq!(found, expected);
}

/// Checks that the error names the file and contains all of these texts.
#[track_caller]
fn check_refused(content: &[u8], reported: &[&str]) {
    let (_dir, path) = file(content);
    let error = format!("{:#}", records(&path).expect_err("it cannot be read"));
    for reported in [&path.to_string_lossy()]
        .into_iter()
        .map(|name| &**name)
        .chain(reported.iter().copied())
    {
        assert!(error.contains(reported), "{reported}: {error}");
    }
}

#[test]
fn records_do_not_depend_on_compression() {
    let (first, second) = EVENTS.split_at(7);
    let (first, second) = (first.as_bytes(), second.as_bytes());
    for content in [
        EVENTS.as_bytes().to_vec(),
        gzip(EVENTS.as_bytes()),
        [gzip(first), gzip(b""), gzip(second)].concat(),
        zstd(EVENTS.as_bytes()),
        [zstd(first), zstd(b""), zstd(second)].concat(),
        [
            skipped_frame(),
            zstd(first),
            skipped_frame(),
            zstd(second),
            skipped_frame(),
        ]
        .concat(),
    ] {
        check(
            &content,
            &[(1, r#"{"type":"served"}"#), (2, r#"{"type":"click"}"#)],
        );
    }
}

#[test]
fn skips_a_compressed_byte_order_mark() {
    for content in [gzip(b"\xEF\xBB\xBF{}\r\n"), zstd(b"\xEF\xBB\xBF{}\r\n")] {
        check(&content, &[(1, "{}")]);
    }
}

/// `zstd --long` writes such.
#[test]
fn reads_a_zstd_frame_with_a_large_window() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(b"{}").unwrap();
    check(&encoder.finish().unwrap(), &[(1, "{}")]);
}

#[test]
fn an_empty_file_has_no_records() {
    for content in [vec![], gzip(b""), zstd(b""), skipped_frame()] {
        check(&content, &[]);
    }
}

#[test]
fn rejects_a_truncated_file() {
    let [first, second] = EVENTS.split_inclusive('\n').collect::<Vec<_>>()[..] else {
        panic!("two lines");
    };
    for (packing, parts) in [
        ("gzip", [first, second].map(|part| gzip(part.as_bytes()))),
        ("zstd", [first, second].map(|part| zstd(part.as_bytes()))),
    ] {
        let whole = parts.concat();
        for end in (4..whole.len()).filter(|end| *end != parts[0].len()) {
            check_refused(
                &whole[..end],
                &[&format!("it ends early: its {packing} is truncated")],
            );
        }
    }
}

#[test]
fn rejects_a_damaged_file() {
    let mut packed = gzip(EVENTS.as_bytes());
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    check_refused(&packed, &["unpack gzip"]);
    check_refused(
        &[gzip(b"{}\n"), b"more than one".to_vec()].concat(),
        &["unpack gzip"],
    );
    check_refused(
        &[zstd(b"{}\n"), b"more than one".to_vec()].concat(),
        &["unpack zstd"],
    );
}

#[test]
fn names_unsupported_formats() {
    for (content, name) in [
        (&b"\xfd7zXZ\0"[..], "xz"),
        (b"BZh91AY", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"PK\x03\x04", "zip"),
        (b"ARROW1\0\0", "Arrow (Feather)"),
        (b"ORC", "ORC"),
        (b"PARE", "encrypted Parquet"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
        (b"\xfe\xff\0{\0}", "UTF-16"),
    ] {
        check_refused(
            content,
            &[&format!("its format is not supported ({name}): write JSON lines")],
        );
        check_refused(
            &gzip(content),
            &[&format!("it is {name} within gzip: decompress the gzip first")],
        );
    }
    check_refused(&zstd(b"PAR1"), &["it is Parquet within zstd"]);
    check_refused(&gzip(b"Obj\x01"), &["it is Avro within gzip"]);
    check_refused(&gzip(&gzip(EVENTS.as_bytes())), &["it is gzip within gzip"]);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_names_the_missing_feature() {
    check_refused(b"PAR1", &["build with the feature `parquet`"]);
}

#[test]
fn reports_a_path_that_is_not_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().to_string_lossy();
    let error = format!("{:#}", records(dir.path()).unwrap_err());
    assert_eq!(
        error,
        format!("open {name}: it is a directory: name the files in it")
    );

    let absent = dir.path().join("absent");
    let error = format!("{:#}", records(&absent).unwrap_err());
    assert!(
        error.starts_with(&format!("open {name}/absent: No such file")),
        "{error}"
    );
}

#[test]
fn reports_progress_in_bytes_on_disk() {
    let many = EVENTS.repeat(100_000);
    for content in [
        b"{}".to_vec(),
        many.clone().into_bytes(),
        gzip(many.as_bytes()),
        zstd(many.as_bytes()),
    ] {
        let (_dir, path) = file(&content);
        let n_reported = Cell::new(0);
        read(
            &path,
            &EventFields::default(),
            &|n| n_reported.set(n_reported.get() + n),
            |_, _| {},
        )
        .unwrap();
        assert_eq!(n_reported.get(), content.len() as u64);
        assert_eq!(total_bytes(&[path.clone(), path]), Some(2 * content.len() as u64));
    }
}

#[test]
fn the_size_of_standard_input_is_unknown() {
    let (_dir, path) = file(b"{}");
    assert_eq!(total_bytes(&[path, PathBuf::from("-")]), None);
}

/// Random bytes were called a table where they had a comma in their first line.
#[test]
fn rejects_bytes_that_are_not_text_and_lists_accepted_formats() {
    let mut random = 7_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    for n in [40, 512, 5000] {
        let bytes: Vec<u8> = (0..n).map(|_| next()).collect();
        for content in [bytes, vec![0; n]] {
            let reported = "its format is not supported (binary data): write JSON lines or CSV, plain or in gzip or zstd, \
                            Avro, or Parquet";
            check_refused(&content, &[reported]);
        }
    }
    // A schema registry's prefix, Latin-1 and a cut character are faults of records.
    let long = format!("{{\"item\":\"{}", "\u{e9}".repeat(400));
    for content in [
        &b"\0\0\0\0\xc8{\"type\":\"click\",\"item\":\"i1\"}"[..],
        b"{\"item\":\"caf\xe9 d'\xe9t\xe9\"}",
        long.as_bytes(),
    ] {
        check(content, &[(1, &String::from_utf8_lossy(content))]);
    }
}
