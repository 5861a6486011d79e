//! Formats of p for people, never as a power of ten.

/// Writes p in a sentence: "p = 0.016", "p < 0.001", "p = 1".
pub fn in_words(p: f64) -> String {
    equation("p", p)
}

/// Writes a p of another name in a sentence: "p of harm = 0.016".
pub fn equation(name: &str, p: f64) -> String {
    let words = in_column(p);
    match words.strip_prefix('<') {
        Some(bound) => format!("{name} < {bound}"),
        None => format!("{name} = {words}"),
    }
}

/// Writes p in a column with three digits: "0.016", "<0.001", "1".
pub fn in_column(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".to_owned(),
        p if p >= 0.9995 => "1".to_owned(),
        p => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_digits_of_a_column() {
        let words = [0.0, 0.000_99, 0.001, 0.009_36, 0.016_4, 0.05, 0.83, 1.0].map(in_words);
        let expected = [
            "p < 0.001",
            "p < 0.001",
            "p = 0.001",
            "p = 0.009",
            "p = 0.016",
            "p = 0.050",
            "p = 0.830",
            "p = 1",
        ];
        assert_eq!(words, expected);
        assert_eq!(equation("p of harm", 0.0421), "p of harm = 0.042");
    }

    #[test]
    fn a_column_has_three_digits() {
        let cells = [0.000_9, 0.001, 0.934_2, 0.999_5, 1.0].map(in_column);
        assert_eq!(cells, ["<0.001", "0.001", "0.934", "1", "1"]);
    }
}
