//! Authentication by bearer tokens and passwords. Only their hashes are stored.
//!
//! A token is long and random, so comparing its SHA-256 is safe and cheap. A password is neither, so its hash is slow by
//! design. Results of checks are therefore remembered: a scrape every second stays cheap, and a client that repeats a wrong
//! password costs nothing. Passwords are checked one at a time, so guessing takes one core at most. Few clients may wait
//! for a check; the others must retry.

mod credential_cache;
mod queue;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest;
use subtle::{Choice, ConstantTimeEq as _};
use tracing::{debug, warn};

use self::credential_cache::{CredentialCache, Proof};
use self::queue::ClaimQueue;
use super::rate_limit::RateLimit;
use super::server::Peer;
use crate::settings::access::{MAX_ENTRIES, NotAnEntry};
use crate::settings::{Access, TokenHash, UnusableFile, User, files};
use crate::telemetry::{HttpRefusal, Telemetry};

const PROBES: [&str; 2] = ["/healthz", "/readyz"];
const REFUSAL: &str = "a bearer token or a password is required\n";
const TOO_MANY: &str = "too many passwords to check: try again in a second with the same one, which then has priority; tokens need no such check\n";
/// Time that a password waits to be checked.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tokens and passwords that are accepted.
pub struct Credentials {
    tokens: Vec<TokenHash>,
    users: Vec<User>,
    memory: CredentialCache,
}

impl Credentials {
    /// Reads the credentials in the settings and in the files that they name.
    ///
    /// # Errors
    /// A file cannot be read, has a faulty line, or has no entries.
    pub fn read(access: &Access) -> Result<Credentials, UnusableFile> {
        let mut tokens = access.tokens.clone();
        if let Some(path) = &access.tokens_file {
            tokens.extend(entries::<TokenHash>("http.bearer_tokens_file", path)?);
        }
        let mut users = access.users.clone();
        if let Some(path) = &access.users_file {
            users.extend(entries::<User>("http.basic_passwords_file", path)?);
        }
        Ok(Credentials {
            tokens,
            memory: CredentialCache::new(users.len()),
            users,
        })
    }

    fn has_token(&self, token: &[u8]) -> bool {
        let hash = digest::digest(&digest::SHA256, token);
        // All hashes are compared, so that the time taken reveals nothing.
        let found = |found: Choice, known: &TokenHash| found | known.0.ct_eq(hash.as_ref());
        self.tokens.iter().fold(Choice::from(0), found).into()
    }

    /// Checks a password. This takes as long for an unknown name as for a known one: an unknown name is checked against the
    /// hash of an existing user, always the same one.
    fn check(&self, claim: &Password, proof: Proof) -> bool {
        let known = self.users.iter().position(|user| user.name == claim.name);
        let index = known.unwrap_or_else(|| self.placeholder(&claim.name));
        let fits = bcrypt::verify(&claim.password, &self.users[index].hash).unwrap_or(false);
        let is_right = fits && known.is_some();
        match is_right {
            true => self.memory.is_right(index, proof),
            false => self.memory.is_wrong(&proof),
        }
        is_right
    }

    fn placeholder(&self, name: &str) -> usize {
        (self.memory.number_of(name) % self.users.len() as u64) as usize
    }
}

/// Returns the entries of a file, without empty lines.
fn entries<T>(setting: &'static str, path: &std::path::Path) -> Result<Vec<T>, UnusableFile>
where
    T: std::str::FromStr<Err = NotAnEntry>,
{
    let name = path.display();
    let unusable = |message: String, remedy: &str| UnusableFile {
        setting,
        message,
        remedy: remedy.to_owned(),
    };
    let bytes = files::read_for(setting, path)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| unusable(format!("{name} is not UTF-8 text"), "write one hash per line"))?;
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
            "write one per line, or remove the setting",
        )),
        n if n > MAX_ENTRIES => Err(unusable(
            format!("{name} holds {n} hashes"),
            "write at most 1000 of them",
        )),
        _ => Ok(entries),
    }
}

/// Credentials in a request.
enum PresentedCredentials {
    Token(Vec<u8>),
    Password(Password),
}

struct Password {
    name: String,
    password: Vec<u8>,
}

impl PresentedCredentials {
    /// Parses the header. Returns `None` if it is missing or unreadable.
    fn of(headers: &HeaderMap) -> Option<PresentedCredentials> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let border = value.iter().position(|byte| *byte == b' ')?;
        let (scheme, value) = (&value[..border], value[border..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return Some(PresentedCredentials::Token(value.to_vec()));
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let both = BASE64_STANDARD.decode(value).ok()?;
        // A name has no colon, so the first one ends it. The password may contain others (RFC 7617, 2).
        let border = both.iter().position(|byte| *byte == b':')?;
        Some(PresentedCredentials::Password(Password {
            name: String::from_utf8(both[..border].to_vec()).ok()?,
            password: both[border + 1..].to_vec(),
        }))
    }
}

/// Layer in front of the routes that checks credentials.
pub struct Gate {
    credentials: RwLock<Arc<Credentials>>,
    open_probes: bool,
    telemetry: Arc<Telemetry>,
    /// Queue for password checks, one at a time.
    queue: ClaimQueue,
    reported_wrong: RateLimit,
    reported_too_many: RateLimit,
}

/// Result of checking a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimVerdict {
    Right,
    Wrong,
    /// Claim left unchecked, because too many arrive.
    Unchecked,
}

impl From<bool> for ClaimVerdict {
    fn from(is_right: bool) -> ClaimVerdict {
        match is_right {
            true => ClaimVerdict::Right,
            false => ClaimVerdict::Wrong,
        }
    }
}

impl Gate {
    pub fn new(credentials: Credentials, open_probes: bool, telemetry: Arc<Telemetry>) -> Gate {
        Gate {
            credentials: RwLock::new(Arc::new(credentials)),
            open_probes,
            telemetry,
            queue: ClaimQueue::default(),
            reported_wrong: RateLimit::default(),
            reported_too_many: RateLimit::default(),
        }
    }

    /// Replaces the accepted credentials.
    pub fn replace(&self, credentials: Credentials) {
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(credentials);
    }

    /// Returns the router behind the gate.
    pub fn before(self: &Arc<Gate>, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::clone(self), ask))
    }

    fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.credentials.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn judge(&self, claim: PresentedCredentials, peer: Option<&Peer>) -> ClaimVerdict {
        let credentials = self.credentials();
        match claim {
            PresentedCredentials::Token(token) => credentials.has_token(&token).into(),
            // Without users there is no hash that could stand in for an unknown name.
            PresentedCredentials::Password(_) if credentials.users.is_empty() => ClaimVerdict::Wrong,
            PresentedCredentials::Password(password) => {
                self.judge_password(credentials, password, peer).await
            }
        }
    }

    async fn judge_password(
        &self,
        credentials: Arc<Credentials>,
        claim: Password,
        peer: Option<&Peer>,
    ) -> ClaimVerdict {
        let memory = &credentials.memory;
        let proof = memory.proof(&claim.name, &claim.password);
        if let Some(is_right) = memory.verdict(&proof) {
            return is_right.into();
        }
        let came_before = memory.was_left_unchecked(&proof);
        let claimant = self.queue.claimant(peer, &claim.name, came_before);
        let Ok(Some(turn)) = tokio::time::timeout(PATIENCE, self.queue.turn(claimant)).await else {
            memory.is_left_unchecked(&proof);
            return ClaimVerdict::Unchecked;
        };
        // Another waiting client may have sent the same password.
        if let Some(is_right) = memory.verdict(&proof) {
            return is_right.into();
        }
        // A check keeps a core busy for a tenth of a second or more, which would stall other connections.
        let check = tokio::task::spawn_blocking(move || {
            let is_right = credentials.check(&claim, proof);
            if !is_right {
                turn.failed();
            }
            // The turn ends with the check, even if the client has disconnected. Otherwise checks would run in parallel.
            drop(turn);
            is_right
        });
        check.await.unwrap_or(false).into()
    }

    /// Logs wrong credentials for the operator. The response does not reveal what was wrong with them.
    fn report_wrong(&self, peer: Option<&Peer>) {
        if let Some(unlogged_before) = self.reported_wrong.n_unlogged() {
            let peer = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
            warn!(
                peer,
                unlogged_before, "refused a request with a wrong token or password"
            );
        }
    }

    fn report_too_many(&self, peer: Option<&Peer>) {
        if let Some(unlogged_before) = self.reported_too_many.n_unlogged() {
            let peer = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
            warn!(
                peer,
                unlogged_before,
                "did not check a password, because too many arrive: a client that tries the same one again has priority; bearer tokens (http.bearer_tokens) need no such check"
            );
        }
    }

    fn refuse(&self, reason: HttpRefusal) -> Response {
        self.telemetry.count_http_refusal(reason);
        let mut response = (StatusCode::UNAUTHORIZED, REFUSAL).into_response();
        let headers = response.headers_mut();
        let credentials = self.credentials();
        if !credentials.users.is_empty() {
            let basic = HeaderValue::from_static("Basic realm=\"abgauge\", charset=\"UTF-8\"");
            headers.append(header::WWW_AUTHENTICATE, basic);
        }
        if !credentials.tokens.is_empty() {
            let bearer = HeaderValue::from_static("Bearer realm=\"abgauge\"");
            // Appended, because both schemes must be offered if both are configured.
            headers.append(header::WWW_AUTHENTICATE, bearer);
        }
        guarded(response)
    }

    fn send_away(&self) -> Response {
        self.telemetry.count_http_refusal(HttpRefusal::TooManyPasswords);
        let mut response = (StatusCode::TOO_MANY_REQUESTS, TOO_MANY).into_response();
        let again = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, again);
        guarded(response)
    }
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    // A cache must not repeat the refusal to a client that has credentials.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

async fn ask(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if gate.open_probes && PROBES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let Some(claim) = PresentedCredentials::of(request.headers()) else {
        debug!("asked for credentials");
        return gate.refuse(HttpRefusal::NoCredentials);
    };
    let peer = request.extensions().get::<Peer>().copied();
    match gate.judge(claim, peer.as_ref()).await {
        ClaimVerdict::Right => next.run(request).await,
        ClaimVerdict::Wrong => {
            gate.report_wrong(peer.as_ref());
            gate.refuse(HttpRefusal::WrongCredentials)
        }
        ClaimVerdict::Unchecked => {
            gate.report_too_many(peer.as_ref());
            gate.send_away()
        }
    }
}

#[cfg(test)]
mod tests;
