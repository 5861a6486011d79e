//! Placeholder texts that mean that there is no user.

/// Set of placeholders, compared without regard to the case of ASCII letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoUser {
    texts: Vec<String>,
    /// Bits for the first and last bytes of the texts, by length. Because of them, most ids need no comparison.
    marks: [u32; MAX_MARKED],
}

/// Length from which texts are always compared.
const MAX_MARKED: usize = 64;

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
        let mut marks = [0; MAX_MARKED];
        for text in &texts {
            if let Some(marks) = marks.get_mut(text.len()) {
                *marks |= mark(text.as_bytes());
            }
        }
        NoUser { texts, marks }
    }

    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    #[inline(always)]
    pub fn contains(&self, id: &[u8]) -> bool {
        // Long ids have no marks, so all bits are set and they are always compared.
        let marks = self.marks.get(id.len()).copied().unwrap_or(u32::MAX);
        marks & mark(id) != 0 && self.compare(id)
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

/// Returns one bit, which does not depend on the case of letters.
#[inline(always)]
fn mark(id: &[u8]) -> u32 {
    // This bit distinguishes upper from lower case. Other bytes may coincide, which only costs a comparison.
    let [first, last] =
        [id.first(), id.last()].map(|byte| u32::from(byte.copied().unwrap_or_default() | 0x20));
    1 << (((3 * first) ^ last) & 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_in_any_case() {
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
