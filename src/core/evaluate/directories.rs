//! Fields in the names of directories, as Hive and Spark write them: `day=2025-11-20/country=DE/part-0.parquet`.

use std::borrow::Cow;
use std::path::{Component, Path};

use percent_encoding::percent_decode_str;

/// Value in the name of a directory whose records have no value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the value of a field in the names of the directories around a file, from the innermost that names the field.
pub(super) fn value(file: &Path, field: &str) -> Option<String> {
    let around = file.parent()?.components().rev();
    let mut values = around.filter_map(|component| match component {
        Component::Normal(name) => {
            let (name, value) = name.to_str()?.split_once('=')?;
            (unescaped(name)? == field).then_some(value)
        }
        _ => None,
    });
    let value = values.next().filter(|value| *value != NO_VALUE)?;
    let value = unescaped(value)?;
    (!value.is_empty()).then(|| value.into_owned())
}

/// Decodes `%2F` and the like. `None` if the result is not UTF-8.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_around_a_file_have_fields() {
        for (file, expected) in [
            ("tree/country=DE/day=1/a.jsonl", Some("DE")),
            ("/tree/country=FR/country=DE/a.jsonl", Some("DE")),
            ("country=S%C3%A3o%2FPaulo%20%/a", Some("São/Paulo %")),
            ("c%6funtry=a=b/a", Some("a=b")),
            ("country=__HIVE_DEFAULT_PARTITION__/a", None),
            ("country=/a", None),
            ("country=%ff/a", None),
            // A file, not a directory.
            ("tree/country=DE", None),
            ("tree/country/a", None),
            ("-", None),
        ] {
            assert_eq!(value(Path::new(file), "country").as_deref(), expected, "{file}");
        }
    }
}
