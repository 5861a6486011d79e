//! Detection of file types without records, so that a remedy can be named.

/// Maximum number of lines to look at.
pub(super) const MAX_LINES: usize = 5;

/// File types that are often given instead of JSON Lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Empty,
    Table,
    /// Records that span several lines.
    Spread,
    /// Lines of a log.
    Text,
}

impl Form {
    /// Detects the type from the first lines. Returns `None` if the first one looks like a record.
    pub fn of<'a>(first: impl IntoIterator<Item = &'a [u8]>) -> Option<Form> {
        let mut lines = first.into_iter().map(<[u8]>::trim_ascii).take(MAX_LINES);
        let Some(line) = lines.next() else {
            return Some(Form::Empty);
        };
        let separated = |line: &[u8]| line.iter().filter(|byte| b",;\t".contains(byte)).count();
        match line {
            b"{" => Some(Form::Spread),
            [b'{' | b'[', ..] => None,
            line if separated(line) > 0 && lines.all(|other| separated(other) == separated(line)) => {
                Some(Form::Table)
            }
            line if is_text(line) => Some(Form::Text),
            _ => None,
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Form::Empty => "the sample has no record",
            Form::Table => "the sample looks like a table (CSV) without a first row that names its columns",
            Form::Text => "the sample looks like lines of text, such as a log, but records are JSON objects",
            Form::Spread => "the sample looks like JSON over several lines, but a record is one line",
        }
    }

    pub fn remedy(self) -> &'static str {
        match self {
            Form::Empty => "write one JSON object per line",
            Form::Table => "name them in a first row, such as type,request_id,ts,experiments,items,item",
            Form::Text => "extract events from it: docs/cookbook.md#access-logs has a recipe",
            Form::Spread => "write one per line: jq --compact-output . FILE > events.jsonl",
        }
    }
}

/// Returns true for several words that are not JSON.
fn is_text(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    text.contains(' ') && !is_json && !text.contains(char::is_control)
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
            ("[1,2]", None),
            ("user;item;rank", Some(Form::Table)),
            ("1,2,3", Some(Form::Table)),
            ("null", None),
            ("\"quoted text\"", None),
            ("\0\0\0\0\u{7}{\"a\": 1}", None),
            ("GET /rate/low+tide=5 from 227244", Some(Form::Text)),
        ] {
            assert_eq!(Form::of([line.as_bytes()]), form, "{line}");
        }
        assert_eq!(Form::of([]), Some(Form::Empty));
        // Rows of a table have equally many fields.
        let lines = ["12:00:00,u1,shown: a, b, 12 ms", "12:00:05,u1,GET /a"];
        assert_eq!(Form::of(lines.map(str::as_bytes)), Some(Form::Text));
    }
}
