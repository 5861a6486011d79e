//! Numerator and denominator of a metric's value, and their names.

use serde::{Serialize, Serializer};

/// Numerator and denominator of a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parts {
    #[serde(serialize_with = "number")]
    pub numerator: f64,
    #[serde(serialize_with = "number")]
    pub denominator: f64,
}

/// Names of both parts, in the plural.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartNames {
    pub numerator: String,
    pub denominator: String,
}

impl Parts {
    /// Returns numerator ÷ denominator.
    pub fn value(self) -> f64 {
        self.numerator / self.denominator
    }
}

/// Writes a count without a decimal point, and any other sum with all its digits.
fn number<S: Serializer>(sum: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *sum as i64 {
        count if count as f64 == *sum => count.serialize(serializer),
        _ => sum.serialize(serializer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_integers_and_sums_to_their_last_digit() {
        let text = |numerator, denominator| {
            let parts = Parts {
                numerator,
                denominator,
            };
            serde_json::to_string(&parts).expect("JSON")
        };
        assert_eq!(text(29_000.0, 4.0), r#"{"numerator":29000,"denominator":4}"#);
        assert_eq!(
            text(1.0 / 3.0, 1e300),
            r#"{"numerator":0.3333333333333333,"denominator":1e+300}"#
        );
    }
}
