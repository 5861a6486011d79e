//! Formats of p for people, never as a power of ten.

/// Writes p in a sentence: "p = 0.016", "p = 0.0094", "p < 0.0001".
pub fn in_words(p: f64) -> String {
    match p {
        p if p < 0.0001 => "p < 0.0001".to_owned(),
        p if p < 0.00995 => format!("p = {p:.4}"),
        p => format!("p = {}", in_column(p)),
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
    fn p_values_have_two_digits_and_a_floor_of_one_in_ten_thousand() {
        let words = [0.0, 0.000_099, 0.000_14, 0.001, 0.009_36, 0.009_96, 0.016_4, 0.05].map(in_words);
        let expected = [
            "p < 0.0001",
            "p < 0.0001",
            "p = 0.0001",
            "p = 0.0010",
            "p = 0.0094",
            "p = 0.010",
            "p = 0.016",
            "p = 0.050",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_column_has_three_digits() {
        let cells = [0.000_9, 0.001, 0.934_2, 0.999_5, 1.0].map(in_column);
        assert_eq!(cells, ["<0.001", "0.001", "0.934", "1", "1"]);
    }
}
