//! Formatting of counts with their nouns, for messages.

use std::fmt::Display;

/// Writes a number with its noun: "1 list", "2 lists", "0.5 days".
pub fn number_of(n: impl Display, noun: &str) -> String {
    let n = n.to_string();
    let s = if n == "1" { "" } else { "s" };
    format!("{n} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn a_noun_follows_its_number() {
        assert_eq!(number_of(1, "week"), "1 week");
        assert_eq!(number_of(1.0, "day"), "1 day");
        for n in ["0", "0.5", "11", "1,001"] {
            assert_eq!(number_of(n, "day"), format!("{n} days"));
        }
    }
}
