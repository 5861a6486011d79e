//! Placeholder texts that mean that there is no user.

/// Compared without regard to the case of ASCII letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoUser {
    texts: Vec<String>,
    /// A bit for each text, by its length and first byte: most ids need no comparison.
    marks: u64,
}

impl NoUser {
    /// Placeholders that producers write for unknown users.
    pub const USUAL: [&str; 7] = [
        "",
        "0",
        "null",
        "none",
        "undefined",
        "anonymous",
        "00000000-0000-0000-0000-000000000000",
    ];

    pub fn new(texts: Vec<String>) -> NoUser {
        let marks = texts.iter().fold(0, |marks, text| marks | mark(text.as_bytes()));
        NoUser { texts, marks }
    }

    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    #[inline(always)]
    pub fn contains(&self, id: &[u8]) -> bool {
        self.marks & mark(id) != 0 && self.compare(id)
    }

    #[cold]
    #[inline(never)]
    fn compare(&self, id: &[u8]) -> bool {
        self.texts
            .iter()
            .any(|text| text.as_bytes().eq_ignore_ascii_case(id))
    }
}

impl Default for NoUser {
    fn default() -> NoUser {
        NoUser::new(NoUser::USUAL.map(str::to_owned).into())
    }
}

#[inline(always)]
fn mark(id: &[u8]) -> u64 {
    let first = id.first().map_or(0, u8::to_ascii_lowercase);
    1 << (((id.len() as u64 * 5) ^ u64::from(first)) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_whatever_their_case() {
        let no_user = NoUser::default();
        for id in ["", "0", "NULL", "None", "anonymous", NoUser::USUAL[6]] {
            assert!(no_user.contains(id.as_bytes()), "{id}");
        }
        for id in [
            "00",
            "1",
            "nul",
            "anonymous1",
            "u-7",
            "00000000-0000-0000-0000-000000000001",
        ] {
            assert!(!no_user.contains(id.as_bytes()), "{id}");
        }
        assert!(!NoUser::new(Vec::new()).contains(b""));
    }
}
