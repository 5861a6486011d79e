//! The keys of records that mean something, recognised as they are most often written.

/// A known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    RequestId,
    Ts,
    Items,
    Item,
    UserId,
    Experiments,
    Type,
}

impl Key {
    /// The key that this text begins with, closing quote and colon included, and their length. None does not say that
    /// there is none: the key may be written otherwise, or the text may end soon.
    ///
    /// Comparing a word or two takes the place of finding the string's end, comparing and passing the colon.
    #[inline(always)]
    pub fn at_start_of(text: &[u8]) -> Option<(Key, usize)> {
        let start = u64::from_le_bytes(*text.first_chunk()?);
        let starts_with = |spelt: &[u8]| start & mask(spelt.len()) == word(spelt);
        // A longer one goes on so.
        let goes_on = |spelt: &[u8]| text[8..].starts_with(spelt);
        // The order is that of most events.
        if starts_with(b"request_") && goes_on(b"id\":") {
            Some((Key::RequestId, 12))
        } else if starts_with(b"ts\":") {
            Some((Key::Ts, 4))
        } else if starts_with(b"items\":") {
            Some((Key::Items, 7))
        } else if starts_with(b"item\":") {
            Some((Key::Item, 6))
        } else if starts_with(b"user_id\"") && goes_on(b":") {
            Some((Key::UserId, 9))
        } else if starts_with(b"experime") && goes_on(b"nts\":") {
            Some((Key::Experiments, 13))
        } else if starts_with(b"type\":") {
            Some((Key::Type, 6))
        } else {
            None
        }
    }

    /// The key of this name.
    pub fn named(name: &[u8]) -> Option<Key> {
        match name {
            b"request_id" => Some(Key::RequestId),
            b"ts" => Some(Key::Ts),
            b"items" => Some(Key::Items),
            b"item" => Some(Key::Item),
            b"user_id" => Some(Key::UserId),
            b"experiments" => Some(Key::Experiments),
            b"type" => Some(Key::Type),
            _ => None,
        }
    }

    /// One bit of its own.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The bits of so many first bytes, at most eight.
const fn mask(n_bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * n_bytes)
}

/// At most eight bytes as the low ones of a word.
const fn word(bytes: &[u8]) -> u64 {
    let (mut word, mut i) = (0, 0);
    while i < bytes.len() {
        word |= (bytes[i] as u64) << (8 * i);
        i += 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_at_the_start_of_text_is_the_one_that_its_name_says() {
        let names = [
            "request_id",
            "ts",
            "items",
            "item",
            "user_id",
            "experiments",
            "type",
        ];
        for name in names {
            let text = format!("{name}\":[1,2,3,4]");
            let n = name.len() + 2;
            for end in 0..text.len() {
                let expected = (end >= n.max(8)).then(|| (Key::named(name.as_bytes()).unwrap(), n));
                assert_eq!(Key::at_start_of(&text.as_bytes()[..end]), expected, "{text}");
            }
            for wrong in 0..n {
                let mut text = text.clone().into_bytes();
                text[wrong] ^= 1;
                assert_eq!(Key::at_start_of(&text), None, "{name}");
            }
        }
        let bits = names.map(|name| Key::named(name.as_bytes()).unwrap().bit());
        assert_eq!(bits.iter().fold(0, |all, bit| all ^ bit).count_ones(), 7);
        assert_eq!(Key::named(b"sku"), None);
    }
}
