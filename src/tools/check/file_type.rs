//! Detection of file types without records, so that a remedy can be named.

/// File types that are often given instead of JSON Lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Empty,
    Table,
    /// One array with all records.
    Array,
    /// Records that span several lines.
    Spread,
}

impl Form {
    /// Detects the type from the first line. Returns `None` if the line looks like a record.
    pub fn of(first: Option<&[u8]>) -> Option<Form> {
        let Some(line) = first else {
            return Some(Form::Empty);
        };
        match line.trim_ascii() {
            b"{" => Some(Form::Spread),
            [b'[', ..] => Some(Form::Array),
            [b'{', ..] => None,
            line if line.iter().any(|byte| b",;\t".contains(byte)) => Some(Form::Table),
            _ => None,
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Form::Empty => "the sample has no record",
            Form::Table => "the sample looks like a table (CSV), but records are JSON objects",
            Form::Array => "the sample looks like one JSON array, but records are objects, one per line",
            Form::Spread => "the sample looks like JSON over several lines, but a record is one line",
        }
    }

    pub fn remedy(self) -> &'static str {
        match self {
            Form::Empty => "write one JSON object per line",
            Form::Table => "convert a table of lists and a table of clicks to events with `abgauge convert`",
            Form::Array => "write one per line: jq --compact-output '.[]' FILE > events.jsonl",
            Form::Spread => "write one per line: jq --compact-output . FILE > events.jsonl",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_reveals_the_form_of_a_file() {
        for (line, form) in [
            ("{\"type\":\"click\",\"n\":[1,2]}", None),
            ("{\"cut", None),
            ("{", Some(Form::Spread)),
            ("  {  ", Some(Form::Spread)),
            ("[", Some(Form::Array)),
            ("[{\"a\":1},{\"b\":2}]", Some(Form::Array)),
            ("user;item;rank", Some(Form::Table)),
            ("1,2,3", Some(Form::Table)),
            ("null", None),
        ] {
            assert_eq!(Form::of(Some(line.as_bytes())), form, "{line}");
        }
        assert_eq!(Form::of(None), Some(Form::Empty));
    }
}
