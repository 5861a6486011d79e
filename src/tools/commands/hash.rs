//! `abgauge hash`: hashes a token or a password for the configuration.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;

use anyhow::Context as _;
use console::Term;
use ring::digest;

use super::{misuse, print};
use crate::settings::TokenHash;
use crate::tools::cli::{HashArgs, HashedSecret};

/// Cost of bcrypt: a quarter of a second on one core, negligible for a login, but expensive for a million guesses.
const COST: u32 = 12;
/// Minimum characters of a token. Its hash is fast, so a shorter one could be guessed.
const MIN_TOKEN: usize = 32;
/// Maximum bytes that bcrypt uses.
const MAX_PASSWORD: usize = 72;
/// Maximum bytes of standard input. No secret is longer.
const MAX_INPUT: u64 = 4096;

/// Reads the secret from standard input and prints its hash.
///
/// # Errors
/// Standard input or output cannot be used.
pub fn hash(args: &HashArgs) -> anyhow::Result<ExitCode> {
    let hashed = match &args.secret {
        HashedSecret::Token => token(&read("token")?),
        HashedSecret::Password { user } => password(user, &read("password")?)?,
    };
    match hashed {
        Ok(entry) => {
            print(&(entry + "\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(wrong) => Ok(misuse("hash", wrong)),
    }
}

/// Reads one line, without echo on a terminal.
fn read(what: &str) -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        let terminal = Term::stderr();
        terminal.write_str(&format!("{what}: "))?;
        return terminal
            .read_secure_line()
            .with_context(|| format!("read the {what}"));
    }
    let mut text = String::new();
    io::stdin()
        .lock()
        // An endless input must not fill the memory.
        .take(MAX_INPUT)
        .read_to_string(&mut text)
        .with_context(|| format!("read the {what} from standard input"))?;
    // Only the line break is removed, because spaces may belong to a password.
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn token(token: &str) -> Result<String, &'static str> {
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token is one line of visible ASCII characters");
    }
    if token.len() < MIN_TOKEN {
        return Err(
            "a token needs at least 32 characters, because its hash is fast to compute; `openssl rand -hex 32` creates one",
        );
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    Ok(TokenHash(hash).to_string())
}

fn password(user: &str, password: &str) -> anyhow::Result<Result<String, &'static str>> {
    if user.is_empty() || user.contains(|c: char| c == ':' || c.is_control()) {
        return Ok(Err("a user name must not be empty, and must not contain a colon"));
    }
    if password.is_empty() || password.contains(char::is_control) {
        return Ok(Err("a password is one line of standard input"));
    }
    if password.len() > MAX_PASSWORD {
        return Ok(Err("a password has at most 72 bytes: bcrypt ignores the rest"));
    }
    let hash = bcrypt::hash(password, COST).context("hash the password")?;
    Ok(Ok(format!("{user}:{hash}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::User;

    #[test]
    fn a_long_token_becomes_its_sha_256() {
        // The expected value comes from: printf %s 0123456789abcdef0123456789abcdef | sha256sum
        assert_eq!(
            token(&"0123456789abcdef".repeat(2)),
            Ok("3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9".to_owned())
        );
        for bad in ["", "hunter2", &"two words".repeat(9), &"é".repeat(40)] {
            assert!(token(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_becomes_a_valid_configuration_entry() {
        let entry = password("scraper", "hunter2").expect("hashes").expect("is sound");
        let user: User = entry.parse().expect("an entry");
        assert_eq!(user.name, "scraper");
        assert!(bcrypt::verify("hunter2", &user.hash).expect("a hash"));
        for (user, bad) in [
            ("", "x"),
            ("a:b", "x"),
            ("a", ""),
            ("a", "x\ny"),
            ("a", &*"x".repeat(73)),
        ] {
            assert!(password(user, bad).expect("hashes").is_err(), "{user} {bad}");
        }
    }
}
