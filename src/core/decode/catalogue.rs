//! Reader of catalogues: one JSON object per line, `{"item":"i1","aspects":["a3"],"users":12,"of_users":200}`.

use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Decoder, MAX_ID_BYTES};
use crate::metrics::catalogue::{Catalogue, NewItem};

/// Bound on the bytes of a line.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Reason why a catalogue cannot be read.
#[derive(Debug)]
pub struct CatalogueError {
    /// Number of the line, counted from 1.
    pub line: u64,
    pub message: String,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for CatalogueError {}

/// Line of a catalogue. Unknown fields are ignored.
#[derive(Deserialize)]
struct CatalogueLine<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
    aspects: Option<Vec<Aspect>>,
    users: Option<u64>,
    of_users: Option<u64>,
}

/// Name of an aspect, or a number used as its name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Aspect {
    Name(String),
    Number(i64),
}

impl Aspect {
    fn into_name(self) -> String {
        match self {
            Aspect::Name(name) => name,
            Aspect::Number(number) => number.to_string(),
        }
    }
}

/// Reads the items of a catalogue. `decoder` hashes them like the items of events. Blank lines are skipped. Items of
/// `previous` keep their places.
///
/// # Errors
/// First line that cannot be read, is not such an object, or contradicts an earlier line.
pub fn read(
    mut input: impl BufRead,
    decoder: &Decoder,
    previous: Option<&Catalogue>,
) -> Result<Catalogue, CatalogueError> {
    let mut items = Vec::new();
    let mut lines: HashMap<String, u64> = HashMap::new();
    let mut n_users: Option<u64> = None;
    let mut bytes = Vec::new();
    for line in 1.. {
        let error = |message: String| CatalogueError { line, message };
        bytes.clear();
        // One byte beyond the bound shows that a line is too long, without reading all of it.
        let mut limited = std::io::Read::take(&mut input, MAX_LINE_BYTES as u64 + 1);
        let n = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|failure| error(failure.to_string()))?;
        if n == 0 {
            break;
        }
        if n > MAX_LINE_BYTES {
            return Err(error(format!("is longer than {MAX_LINE_BYTES} bytes")));
        }
        // Some programs write a byte order mark at the start of a file.
        let text = bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .filter(|_| line == 1)
            .unwrap_or(&bytes);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let written: CatalogueLine = serde_json::from_slice(text).map_err(|problem| {
            let form = r#"write {"item":"i1","aspects":["a3"],"users":12,"of_users":200}"#;
            let problem = problem.to_string();
            // The line number in the message counts within this object, not within the file.
            let problem = problem.split(" at line ").next().unwrap_or_default();
            error(format!("{problem}; {form}"))
        })?;
        let users = written.users.unwrap_or(0);
        let (id, hash) = decoder.item(written.item).ok_or_else(|| {
            error(format!(
                "item must be a string of 1 to {MAX_ID_BYTES} bytes or an integer"
            ))
        })?;
        if let Some(of_users) = written.of_users {
            if users > of_users {
                return Err(error(format!(
                    "users is {}, more than of_users ({of_users})",
                    users
                )));
            }
            if *n_users.get_or_insert(of_users) != of_users {
                let before = n_users.unwrap_or(0);
                return Err(error(format!(
                    "of_users is {of_users}, but {before} in earlier lines: it must be the same in all lines"
                )));
            }
        } else if users > 0 {
            return Err(error(
                "users needs of_users too: the number of all users".to_owned(),
            ));
        }
        if let Some(first) = lines.insert(id.clone(), line) {
            return Err(error(format!("item {id:?} is already in line {first}")));
        }
        items.push(NewItem {
            id,
            hash,
            aspects: written
                .aspects
                .into_iter()
                .flatten()
                .map(Aspect::into_name)
                .collect(),
            users,
        });
    }
    if items.is_empty() {
        let message = "the file has no items".to_owned();
        return Err(CatalogueError { line: 1, message });
    }
    Ok(Catalogue::new(items, n_users.unwrap_or(0), previous))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Catalogue, String> {
        let decoder = Decoder::new(0, 10, 100);
        super::read(text.as_bytes(), &decoder, None).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_items_with_and_without_aspects_and_shares() {
        let text = "\u{feff}{\"item\":\"a\",\"aspects\":[\"x\"],\"users\":1,\"of_users\":4}\r\n\n{\"item\":5,\"price\":{},\"aspects\":null,\"users\":null,\"of_users\":null}\n{\"item\":\"b\",\"aspects\":[7]}";
        let catalogue = read(text).expect("it can be read");
        let decoder = Decoder::new(0, 10, 100);
        let look_up = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).expect("JSON");
            let (place, shares) = catalogue.look_up(decoder.item(raw).expect("an id").1);
            (place, shares.popularity, shares.surprisal)
        };
        assert_eq!(look_up("\"a\""), (0, 0.25, 2.0));
        assert_eq!(look_up("5"), (1, 0.0, 2.0));
        assert_eq!(look_up("\"5\""), (1, 0.0, 2.0));
    }

    #[test]
    fn a_faulty_line_is_named_with_its_remedy() {
        let good = "{\"item\":\"a\",\"users\":1,\"of_users\":4}\n";
        for (bad, says) in [
            ("[]", &["line 2", "\"of_users\":200"][..]),
            ("{}", &["line 2", "missing field `item`"]),
            ("{\"item\":\"a\"}", &["line 2", "already in line 1"]),
            ("{\"item\":\"\"}", &["line 2", "1 to 2048 bytes"]),
            ("{\"item\":1.5}", &["line 2", "integer"]),
            (
                "{\"item\":\"b\",\"users\":5,\"of_users\":4}",
                &["more than of_users"],
            ),
            ("{\"item\":\"b\",\"users\":1}", &["needs of_users"]),
            (
                "{\"item\":\"b\",\"of_users\":5}",
                &["of_users is 5", "4 in earlier lines"],
            ),
        ] {
            let error = read(&format!("{good}{bad}\n")).expect_err(bad);
            for word in says {
                assert!(error.contains(word), "{bad}: {error}");
            }
        }
        assert!(read("\n \n").expect_err("empty").contains("no item"));
    }
}
