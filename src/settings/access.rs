//! Access to the HTTP server: hashes of tokens and passwords, never the secrets themselves.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::properties::kind_of;

/// Credentials with access. If there are none, access is open. `Debug` shows no hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub tokens: Vec<TokenHash>,
    /// File with more tokens, one per line.
    pub tokens_file: Option<PathBuf>,
    pub users: Vec<User>,
    /// File with more users, one per line.
    pub users_file: Option<PathBuf>,
    /// True if `/healthz` and `/readyz` need no credentials.
    pub open_probes: bool,
}

impl Access {
    /// Returns whether all requests are allowed without credentials.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
            && self.users.is_empty()
            && self.tokens_file.is_none()
            && self.users_file.is_none()
    }

    /// Takes over the credentials of a new configuration. Returns false if access is open before or after: that needs a restart.
    pub(super) fn take_over(&mut self, new: &Access) -> bool {
        let are_guarded = !self.is_open() && !new.is_open();
        if are_guarded {
            *self = Access {
                // This setting is not read from a file, so it waits for a restart.
                open_probes: self.open_probes,
                ..new.clone()
            };
        }
        are_guarded
    }
}

/// SHA-256 of a token. Tokens are long and random, so a fast hash is as good as a slow one.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

/// Name and bcrypt hash of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// Name, without a colon (required by HTTP).
    pub name: String,
    /// Hash, such as `$2b$12$…`, with a cost from 10 to 14.
    pub hash: String,
}

/// Maximum number of tokens, and of users.
pub const MAX_ENTRIES: usize = 1_000;

/// Allowed bcrypt costs. Each doubles the work: from a tenth of a second to a second and a half on one core.
pub const COSTS: std::ops::RangeInclusive<u32> = 10..=14;

/// Regular expression of a name and a hash with one of these costs.
pub(super) const NAME_AND_HASH: &str = "^[^:]+:\\$2[aby]\\$(10|11|12|13|14)\\$[./A-Za-z0-9]{53}$";

/// Error: a text is not a valid entry. The text is never included, because it may be a secret that should have been hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnEntry {
    pub message: &'static str,
    pub remedy: &'static str,
}

impl FromStr for TokenHash {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<TokenHash, NotAnEntry> {
        let wrong = NotAnEntry {
            message: "is not the SHA-256 of a token: 64 hexadecimal digits",
            remedy: "write the output of `abgauge hash token` for the token",
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
            let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
                return Err(wrong);
            };
            *byte = high << 4 | low;
        }
        Ok(TokenHash(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for User {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<User, NotAnEntry> {
        let refused = |message| {
            Err(NotAnEntry {
                message,
                remedy: "write NAME:HASH, as `abgauge hash password --user NAME` and `htpasswd -nB -C 12 NAME` print it",
            })
        };
        let Some((name, hash)) = text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            return refused("has no name and colon before the hash");
        };
        let Some(cost) = bcrypt_cost(hash) else {
            return refused("has no bcrypt hash after the name");
        };
        if !COSTS.contains(&cost) {
            return refused("has a bcrypt hash with a cost outside 10 to 14");
        }
        Ok(User {
            name: name.to_owned(),
            hash: hash.to_owned(),
        })
    }
}

/// Returns the cost of a hash such as `$2b$12$` and 53 characters of salt and hash.
fn bcrypt_cost(hash: &str) -> Option<u32> {
    let rest = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .find_map(|kind| hash.strip_prefix(kind))?;
    let (cost, digits) = rest.split_once('$')?;
    let is_digit = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'/');
    // A malformed hash would otherwise only show as a password that never fits.
    let is_whole = cost.len() == 2 && digits.len() == 53 && digits.bytes().all(is_digit);
    cost.parse().ok().filter(|_| is_whole)
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("User").field(&self.name).finish()
    }
}

/// List of texts. No `Debug`, and no error quotes a value: it may be a secret that should have been hashed.
#[derive(Default, Serialize)]
pub(super) struct HashList(pub Vec<String>);

impl<'de> Deserialize<'de> for HashList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |value: &toml::Value| {
            de::Error::custom(format!(
                "{} is not a list of hashes, expected a list of hashes in quotes",
                kind_of(value)
            ))
        };
        let text = |value| match value {
            toml::Value::String(text) => Ok(text),
            other => Err(wrong(&other)),
        };
        match toml::Value::deserialize(deserializer)? {
            toml::Value::Array(values) => values
                .into_iter()
                .map(text)
                .collect::<Result<_, _>>()
                .map(HashList),
            other => Err(wrong(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$2y$10$abcdefghijklmnopqrstuuu7NtNcXHnHdcVlnhAqfbVRe3oTRNvjq";

    #[test]
    fn a_token_hash_is_64_hexadecimal_digits() {
        let hash: TokenHash = "00ff".repeat(16).parse().expect("64 digits");
        assert_eq!(hash.0[..4], [0x00, 0xff, 0x00, 0xff]);
        assert_eq!(hash.to_string(), "00ff".repeat(16));
        for bad in [
            "",
            "00",
            &"0".repeat(63),
            &"0".repeat(65),
            &"g".repeat(64),
            &"é".repeat(32),
        ] {
            assert!(bad.parse::<TokenHash>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_user_is_a_name_and_a_bcrypt_hash_of_limited_cost() {
        let user: User = format!("scraper:{HASH}").parse().expect("a line of htpasswd");
        assert_eq!((user.name.as_str(), user.hash.as_str()), ("scraper", HASH));
        let cheap = HASH.replace("$10$", "$05$");
        let dear = HASH.replace("$10$", "$31$");
        let bad = [
            "scraper:hunter2".to_owned(),
            format!(":{HASH}"),
            HASH.to_owned(),
            format!("scraper:{cheap}"),
            format!("scraper:{dear}"),
            format!("scraper:{HASH}x"),
            "scraper:$apr1$salt$hash".to_owned(),
        ];
        for bad in bad {
            let error = bad.parse::<User>().expect_err(&bad);
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn debug_output_hides_hashes() {
        let user: User = format!("scraper:{HASH}").parse().expect("a line of htpasswd");
        let token = TokenHash([0xab; 32]);
        let shown = format!("{user:?} {token:?}");
        assert!(!shown.contains("$2y$") && !shown.contains("abab"), "{shown}");
    }
}
