//! Path to a field, such as `"ctx.exp.name"`.

use std::fmt;

/// Names that lead to a field, from the outside in.
///
/// They are written with dots between them. A name that contains a dot or a quote is quoted, single or double:
/// `attributes.'ab.arm'`. A path that begins with `^.` starts at the record around the event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    names: Vec<String>,
    is_outer: bool,
}

/// Prefix of a path that starts at the surrounding record.
const OUTER: &str = "^.";

/// Bound on the names of a path: deeper fields take longer to find.
const MAX_NAMES: usize = 16;
/// Bound on the bytes of a path's text.
const MAX_BYTES: usize = 512;

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// Description of the mistake in the text.
    pub fn parse(text: &str) -> Result<Path, &'static str> {
        if text.is_empty() {
            return Err("is empty");
        }
        if text.len() > MAX_BYTES {
            return Err("is longer than 512 bytes");
        }
        let inner = text.strip_prefix(OUTER);
        let mut names = Vec::new();
        let mut rest = Some(inner.unwrap_or(text));
        while let Some(text) = rest {
            let (name, behind) = first_name(text)?;
            names.push(name.to_owned());
            rest = behind;
        }
        if names.len() > MAX_NAMES {
            return Err("has more than 16 names");
        }
        Ok(Path {
            names,
            is_outer: inner.is_some(),
        })
    }

    /// Returns the path of these names; `None` if it cannot be written as text.
    pub fn of(names: &[&str]) -> Option<Path> {
        let path = Path::of_names(names);
        // A name with both kinds of quotes has no text, and a path with too many names is refused.
        (Path::parse(&path.to_string()).as_ref() == Ok(&path)).then_some(path)
    }

    pub(super) fn of_names(names: &[&str]) -> Path {
        Path {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            is_outer: false,
        }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the same path, starting at the surrounding record.
    pub fn around(&self) -> Path {
        Path {
            names: self.names.clone(),
            is_outer: true,
        }
    }

    /// Returns true if the path starts at the surrounding record.
    pub fn is_outer(&self) -> bool {
        self.is_outer
    }
}

/// Returns the first name, and the text after its dot if there is one.
fn first_name(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (name, behind) = text[1..]
            .split_once(quote)
            .ok_or("has a quote that is not closed")?;
        return match behind.strip_prefix('.') {
            Some(rest) => Ok((name, Some(rest))),
            None if behind.is_empty() => Ok((name, None)),
            None => Err("has something between a quote and the next dot"),
        };
    }
    let (name, rest) = match text.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    match name {
        "" => Err("has an empty name"),
        _ if name.contains(['"', '\'']) => Err("has a quote within a name"),
        _ => Ok((name, rest)),
    }
}

/// Writes text that can be parsed again, unless a name contains both quotes.
impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if self.is_outer {
            out.write_str(OUTER)?;
        }
        for (n, name) in self.names.iter().enumerate() {
            let dot = if n > 0 { "." } else { "" };
            match name {
                _ if name.contains('"') => write!(out, "{dot}'{name}'")?,
                _ if name.is_empty() || name == "^" || name.contains(['.', '\'']) => {
                    write!(out, "{dot}\"{name}\"")?
                }
                _ => write!(out, "{dot}{name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parse_to_names_and_print_as_written() {
        for (text, names) in [
            ("ts", &["ts"][..]),
            ("ctx.exp.name", &["ctx", "exp", "name"]),
            ("a.\"b.c\".d", &["a", "b.c", "d"]),
            ("\"it's\"", &["it's"]),
            ("'say \"x\"'.y", &["say \"x\"", "y"]),
            ("\"\".é é", &["", "é é"]),
            ("^.userId", &["userId"]),
            ("\"^\".userId", &["^", "userId"]),
        ] {
            let path = Path::parse(text).expect(text);
            assert_eq!(path.names(), names, "{text}");
            assert_eq!(path.to_string(), text);
        }
        assert_eq!(
            Path::parse("'a'.\"b\"").map(|path| path.to_string()),
            Ok("a.b".to_owned())
        );
    }

    #[test]
    fn malformed_paths_are_refused_with_a_reason() {
        for (text, fault) in [
            ("", "is empty"),
            (".", "empty name"),
            ("a.", "empty name"),
            ("a..b", "empty name"),
            ("\"a", "not closed"),
            ("\"a\"b", "between a quote and the next dot"),
            ("a\"b\"", "quote within a name"),
        ] {
            let error = Path::parse(text).expect_err(text);
            assert!(error.contains(fault), "{text}: {error}");
        }
        assert_eq!(Path::of(&["a.b", "c"]), Path::parse("\"a.b\".c").ok());
        assert_eq!(Path::of(&["it's", "\""]), Path::parse("\"it's\".'\"'").ok());
        assert_eq!(Path::of(&["it's \""]), None);
        assert_eq!(Path::of(&["a"; 17]), None);
        assert!(Path::parse(&["a"; 16].join(".")).is_ok());
        assert!(Path::parse(&["a"; 17].join(".")).is_err());
        assert!(Path::parse(&"a".repeat(512)).is_ok());
        assert!(Path::parse(&"a".repeat(513)).is_err());
    }
}
