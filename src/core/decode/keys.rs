//! Known keys of records.

/// Key with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKey {
    RequestId,
    Ts,
    Items,
    Item,
    UserId,
    Experiments,
    Type,
}

const ALL: [FieldKey; 7] = [
    FieldKey::RequestId,
    FieldKey::Ts,
    FieldKey::Items,
    FieldKey::Item,
    FieldKey::UserId,
    FieldKey::Experiments,
    FieldKey::Type,
];

impl FieldKey {
    /// Returns the usual spelling, including the colon.
    #[inline(always)]
    pub fn spelling(self) -> &'static [u8] {
        match self {
            FieldKey::RequestId => b"\"request_id\":",
            FieldKey::Ts => b"\"ts\":",
            FieldKey::Items => b"\"items\":",
            FieldKey::Item => b"\"item\":",
            FieldKey::UserId => b"\"user_id\":",
            FieldKey::Experiments => b"\"experiments\":",
            FieldKey::Type => b"\"type\":",
        }
    }

    /// Returns whether a key has this name.
    pub fn is_name(name: &[u8]) -> bool {
        let mut names = ALL.iter().map(|key| &key.spelling()[1..key.spelling().len() - 2]);
        names.any(|known| known == name)
    }

    /// Returns a bit that no other key has.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_in_name_and_bit() {
        for name in [
            "request_id",
            "ts",
            "items",
            "item",
            "user_id",
            "experiments",
            "type",
        ] {
            let spelling = format!("\"{name}\":");
            let is_spelt_so = |key: &&FieldKey| key.spelling() == spelling.as_bytes();
            assert_eq!(ALL.iter().filter(is_spelt_so).count(), 1, "{name}");
            assert!(FieldKey::is_name(name.as_bytes()));
            assert!(!FieldKey::is_name(&name.as_bytes()[1..]));
        }
        assert_eq!(
            ALL.map(FieldKey::bit)
                .iter()
                .fold(0, |all, bit| all ^ bit)
                .count_ones(),
            7
        );
        assert!(!FieldKey::is_name(b"sku"));
    }
}
