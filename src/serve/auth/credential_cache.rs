//! Memory of earlier password checks: passwords found right or wrong, and passwords left unchecked.
//!
//! Passwords themselves are never stored. A name and its password are represented by a hash under a key of this process,
//! which reveals nothing elsewhere. The memory is cleared when the credentials are reloaded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::{hmac, rand};
use subtle::{Choice, ConstantTimeEq as _};

/// Maximum number of wrong passwords remembered: 128 KiB.
const N_WRONG: usize = 1 << 14;
/// Maximum number of unchecked passwords remembered: 1 MiB. In a flood of a thousand per second, an entry survives for a
/// minute with a probability of about one half.
const N_UNCHECKED: usize = 1 << 17;

/// Keyed hash of a name and its password.
pub(super) type Proof = [u8; 32];

pub(super) struct CredentialCache {
    /// Key unique to this process, so that remembered proofs are useless elsewhere.
    key: hmac::Key,
    /// Last right proof of each user.
    right: Mutex<Vec<Option<Proof>>>,
    wrong: Mutex<Tags>,
    unchecked: Mutex<Tags>,
}

impl CredentialCache {
    /// Creates an empty memory for `n_users` users.
    pub fn new(n_users: usize) -> CredentialCache {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        CredentialCache {
            key: key.expect("the system has random numbers"),
            right: Mutex::new(vec![None; n_users]),
            wrong: Mutex::new(Tags::new(N_WRONG)),
            unchecked: Mutex::new(Tags::new(N_UNCHECKED)),
        }
    }

    pub fn proof(&self, name: &str, password: &[u8]) -> Proof {
        let mut context = hmac::Context::with_key(&self.key);
        // Without the length, name `a` with password `bc` would have the proof of name `ab` with password `c`.
        context.update(&(name.len() as u64).to_le_bytes());
        context.update(name.as_bytes());
        context.update(password);
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        proof
    }

    /// Returns a fixed number for this name.
    pub fn number_of(&self, name: &str) -> u64 {
        let tag = hmac::sign(&self.key, name.as_bytes());
        tag.as_ref()
            .first_chunk()
            .map_or(0, |head| u64::from_le_bytes(*head))
    }

    /// Returns whether the password is right, if known.
    pub fn verdict(&self, proof: &Proof) -> Option<bool> {
        // All known proofs are compared in constant time, so that the time taken does not reveal which one is close.
        let found = |found: Choice, known: &Proof| found | known.ct_eq(proof);
        let is_right = lock(&self.right).iter().flatten().fold(Choice::from(0), found);
        if is_right.into() {
            return Some(true);
        }
        lock(&self.wrong).has(proof).then_some(false)
    }

    pub fn is_right(&self, user: usize, proof: Proof) {
        lock(&self.right)[user] = Some(proof);
    }

    pub fn is_wrong(&self, proof: &Proof) {
        lock(&self.wrong).insert(proof);
    }

    pub fn was_left_unchecked(&self, proof: &Proof) -> bool {
        lock(&self.unchecked).has(proof)
    }

    pub fn is_left_unchecked(&self, proof: &Proof) {
        lock(&self.unchecked).insert(proof);
    }
}

/// Recent proofs, 64 bits of each. A newer one may overwrite an older one.
struct Tags(Box<[u64]>);

impl Tags {
    fn new(n: usize) -> Tags {
        Tags(vec![0; n].into())
    }

    fn insert(&mut self, proof: &Proof) {
        let (place, tag) = self.place(proof);
        self.0[place] = tag;
    }

    fn has(&self, proof: &Proof) -> bool {
        let (place, tag) = self.place(proof);
        self.0[place] == tag
    }

    fn place(&self, proof: &Proof) -> (usize, u64) {
        let word = |n: usize| {
            proof[n..]
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        // An empty place holds 0, so a tag must not be 0.
        ((word(0) % self.0.len() as u64) as usize, word(8) | 1)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
