//! Who may ask: bearer tokens and passwords, of which only hashes are known.
//!
//! A token is long and random, so its SHA-256 is as good as itself and cheap to compare. A password is neither: its hash
//! is slow by intent. So that a scrape each second stays cheap, the last good proof of each user is remembered, under a key
//! of this process; and one password is checked at a time, so that guessing takes a core at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, rand};
use subtle::{Choice, ConstantTimeEq as _};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::files::{self, Unusable};
use super::server::Peer;
use crate::config::access::{MAX_ENTRIES, NotAnEntry};
use crate::config::{Access, TokenHash, User};
use crate::telemetry::{HttpRefusal, Telemetry};

const PROBES: [&str; 2] = ["/healthz", "/readyz"];
const REFUSAL: &str = "a bearer token or a password is asked for here\n";
/// Refusals are logged once in this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// Everybody who may ask.
pub struct Credentials {
    tokens: Vec<TokenHash>,
    users: Vec<User>,
    /// Of this process alone: what is remembered is worth nothing elsewhere.
    key: hmac::Key,
    /// By user, the proof of the last password that was right.
    proven: Mutex<Vec<Option<Proof>>>,
}

type Proof = [u8; 32];

impl Credentials {
    /// Those of the settings, and of the files that they name.
    ///
    /// # Errors
    /// A file that cannot be read, has a faulty line, or none.
    pub fn read(access: &Access) -> Result<Credentials, Unusable> {
        let mut tokens = access.tokens.clone();
        if let Some(path) = &access.tokens_file {
            tokens.extend(entries::<TokenHash>("http.bearer_tokens_file", path)?);
        }
        let mut users = access.users.clone();
        if let Some(path) = &access.users_file {
            users.extend(entries::<User>("http.basic_passwords_file", path)?);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        Ok(Credentials {
            tokens,
            proven: Mutex::new(vec![None; users.len()]),
            users,
            key: key.expect("the system has random numbers"),
        })
    }

    fn has_token(&self, token: &[u8]) -> bool {
        let hash = digest::digest(&digest::SHA256, token);
        // All of them, so that the time tells nothing.
        let found = |found: Choice, known: &TokenHash| found | known.0.ct_eq(hash.as_ref());
        self.tokens.iter().fold(Choice::from(0), found).into()
    }

    /// What stands for a name and its password in the memory of this process.
    fn proof(&self, claim: &Password) -> Proof {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&(claim.name.len() as u64).to_le_bytes());
        context.update(claim.name.as_bytes());
        context.update(&claim.password);
        let mut proof = [0; 32];
        proof.copy_from_slice(context.sign().as_ref());
        proof
    }

    fn is_proven(&self, proof: &Proof) -> bool {
        let found = |found: Choice, known: &Proof| found | known.ct_eq(proof);
        let proven = self.proven();
        proven.iter().flatten().fold(Choice::from(0), found).into()
    }

    /// Slow, whether there is such a user or not: a stranger is held against the hash of one whom there is, always of the
    /// same.
    fn is_right(&self, claim: &Password, proof: Proof) -> bool {
        if self.users.is_empty() {
            return false;
        }
        let known = self.users.iter().position(|user| user.name == claim.name);
        let index = known.unwrap_or_else(|| self.stand_in(&claim.name));
        let fits = bcrypt::verify(&claim.password, &self.users[index].hash).unwrap_or(false);
        let is_right = fits && known.is_some();
        if is_right {
            self.proven()[index] = Some(proof);
        }
        is_right
    }

    fn stand_in(&self, name: &str) -> usize {
        let tag = hmac::sign(&self.key, name.as_bytes());
        let number = tag
            .as_ref()
            .first_chunk()
            .map_or(0, |head| u64::from_le_bytes(*head));
        (number % self.users.len() as u64) as usize
    }

    fn proven(&self) -> MutexGuard<'_, Vec<Option<Proof>>> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a file that hold something.
fn entries<T>(setting: &'static str, path: &std::path::Path) -> Result<Vec<T>, Unusable>
where
    T: std::str::FromStr<Err = NotAnEntry>,
{
    let name = path.display();
    let unusable = |message: String, remedy: &str| Unusable {
        setting,
        message,
        remedy: remedy.to_owned(),
    };
    let bytes = files::read(setting, path)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| unusable(format!("{name} is no text in UTF-8"), "write one hash a line"))?;
    let mut entries = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line.parse().map_err(|NotAnEntry { message, remedy }| {
            unusable(format!("{name}, line {}: it {message}", n + 1), remedy)
        })?;
        entries.push(entry);
    }
    match entries.len() {
        0 => Err(unusable(
            format!("{name} holds no hash"),
            "write one a line, or leave the setting out",
        )),
        n if n > MAX_ENTRIES => Err(unusable(
            format!("{name} holds {n} hashes"),
            "write at most 1000 of them",
        )),
        _ => Ok(entries),
    }
}

/// What a request says of who asks.
enum Claim {
    Token(Vec<u8>),
    Password(Password),
}

struct Password {
    name: String,
    password: Vec<u8>,
}

impl Claim {
    /// `None`: there is no such header, or it cannot be understood.
    fn of(headers: &HeaderMap) -> Option<Claim> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let border = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, value) = (&value[..border], value[border..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(Claim::Token(value.to_vec()));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let both = BASE64_STANDARD.decode(value).ok()?;
        let border = both.iter().position(|byte| *byte == b':')?;
        Some(Claim::Password(Password {
            name: String::from_utf8(both[..border].to_vec()).ok()?,
            password: both[border + 1..].to_vec(),
        }))
    }
}

/// Stands before the routes.
pub struct Gate {
    credentials: RwLock<Arc<Credentials>>,
    open_probes: bool,
    telemetry: Arc<Telemetry>,
    /// One password at a time.
    checking: Arc<Semaphore>,
    refusals: Mutex<Refusals>,
}

#[derive(Default)]
struct Refusals {
    logged: Option<Instant>,
    n_silent: u64,
}

impl Gate {
    pub fn new(credentials: Credentials, open_probes: bool, telemetry: Arc<Telemetry>) -> Gate {
        Gate {
            credentials: RwLock::new(Arc::new(credentials)),
            open_probes,
            telemetry,
            checking: Arc::new(Semaphore::new(1)),
            refusals: Mutex::default(),
        }
    }

    /// From now on these may ask, and no others.
    pub fn replace(&self, credentials: Credentials) {
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(credentials);
    }

    /// The router behind the gate.
    pub fn before(self: &Arc<Gate>, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::clone(self), ask))
    }

    fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.credentials.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn admits(&self, claim: Claim) -> bool {
        let credentials = self.credentials();
        match claim {
            Claim::Token(token) => credentials.has_token(&token),
            Claim::Password(password) => self.is_right(credentials, password).await,
        }
    }

    async fn is_right(&self, credentials: Arc<Credentials>, claim: Password) -> bool {
        let proof = credentials.proof(&claim);
        if credentials.is_proven(&proof) {
            return true;
        }
        let turn = Arc::clone(&self.checking).acquire_owned().await;
        let turn = turn.expect("the semaphore is never closed");
        // Who waited beside us may have proven the same.
        if credentials.is_proven(&proof) {
            return true;
        }
        let check = tokio::task::spawn_blocking(move || {
            // Kept to the end, also where the client has gone meanwhile.
            let _turn = turn;
            credentials.is_right(&claim, proof)
        });
        check.await.unwrap_or(false)
    }

    /// What is wrong with a request's credentials is the operator's to know, once a minute.
    fn note_refusal(&self, peer: Option<&Peer>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.logged.is_some_and(|logged| logged.elapsed() < LOG_AGAIN) {
            refusals.n_silent += 1;
            return;
        }
        let unlogged_before = std::mem::take(&mut refusals.n_silent);
        refusals.logged = Some(Instant::now());
        let peer = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
        warn!(
            peer,
            unlogged_before, "refused a request with a wrong token or password"
        );
    }

    fn refuse(&self, reason: HttpRefusal) -> Response {
        self.telemetry.refused_http(reason);
        let mut response = (StatusCode::UNAUTHORIZED, REFUSAL).into_response();
        let headers = response.headers_mut();
        let credentials = self.credentials();
        if !credentials.users.is_empty() {
            let basic = HeaderValue::from_static("Basic realm=\"abgauge\", charset=\"UTF-8\"");
            headers.append(header::WWW_AUTHENTICATE, basic);
        }
        if !credentials.tokens.is_empty() {
            let bearer = HeaderValue::from_static("Bearer realm=\"abgauge\"");
            headers.append(header::WWW_AUTHENTICATE, bearer);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }
}

async fn ask(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if gate.open_probes && PROBES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let Some(claim) = Claim::of(request.headers()) else {
        debug!("asked for credentials");
        return gate.refuse(HttpRefusal::NoCredentials);
    };
    if gate.admits(claim).await {
        return next.run(request).await;
    }
    gate.note_refusal(request.extensions().get());
    gate.refuse(HttpRefusal::WrongCredentials)
}

#[cfg(test)]
mod tests;
