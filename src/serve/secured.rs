//! Layers between the network and the routes: TLS, the accepted hosts, and access control. Their files are reloaded at run
//! time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use ring::digest;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::auth::{Credentials, Gate};
use super::hosts::Hosts;
use super::tls::{Doubt, Tls, TlsIdentity};
use crate::clock::Clock;
use crate::settings::{self, UnusableFile, files};
use crate::telemetry::Telemetry;

/// Interval between checks for changed files.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Layers configured by `[http]`.
pub struct Secured {
    http: settings::Http,
    telemetry: Arc<Telemetry>,
    tls: Option<Tls>,
    hosts: Arc<Hosts>,
    gate: Option<Arc<Gate>>,
    identity: Option<TlsIdentity>,
    /// Last doubt about the certificate that was logged.
    reported: Option<Doubt>,
    /// Fingerprints of the files when last read.
    seen: Vec<Option<Fingerprint>>,
}

type Fingerprint = [u8; 32];

impl Secured {
    /// Reads all files, and warns if the certificate has expired.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(
        http: &settings::Http,
        clock: &Clock,
        telemetry: Arc<Telemetry>,
    ) -> Result<Secured, UnusableFile> {
        // Fingerprints are taken first, so that a change during the read triggers another read.
        let seen = fingerprints(http);
        let (identity, credentials) = read(http)?;
        let mut secured = Secured {
            http: http.clone(),
            tls: identity.as_ref().map(Tls::new),
            hosts: Arc::new(Hosts::new(http, Arc::clone(&telemetry))),
            gate: credentials.map(|credentials| {
                let open_probes = http.access.open_probes;
                Arc::new(Gate::new(credentials, open_probes, Arc::clone(&telemetry)))
            }),
            telemetry,
            identity,
            reported: None,
            seen,
        };
        secured.report_expiry();
        secured.report_doubt(clock.now_ms());
        Ok(secured)
    }

    /// Returns the URL scheme of the server.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    pub fn acceptor(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(Tls::acceptor)
    }

    /// Wraps the router in access control, if configured, and in the check of hosts.
    pub fn guard(&self, router: Router) -> Router {
        self.hosts.before(match &self.gate {
            Some(gate) => gate.before(router),
            None => router,
        })
    }

    /// Returns whether TLS or access control is configured, so that there are files or hashes to reload.
    pub fn is_closed(&self) -> bool {
        self.tls.is_some() || self.gate.is_some()
    }

    /// Re-reads the files when they change or when `asked` gets new settings for the same layers, until `shutdown`. Faulty
    /// files leave the previous ones in use.
    pub async fn keep_up(
        mut self,
        clock: Clock,
        mut asked: watch::Receiver<settings::Http>,
        shutdown: CancellationToken,
    ) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        loop {
            let is_asked = tokio::select! {
                () = shutdown.cancelled() => return,
                // Once the sender is gone, this branch is skipped and only the clock triggers a check.
                Ok(()) = asked.changed() => true,
                _ = tick.tick() => false,
            };
            if is_asked {
                self.http = asked.borrow_and_update().clone();
            }
            let (http, last) = (self.http.clone(), self.seen.clone());
            let look = tokio::task::spawn_blocking(move || {
                let seen = fingerprints(&http);
                // New settings are applied even if no file has changed, because they can contain hashes themselves.
                let read = (is_asked || seen != last).then(|| read(&http));
                (seen, read)
            });
            if let Ok((seen, Some(read))) = look.await {
                // Remembered even if the files are faulty, so that an error is logged once per change and not at each
                // check.
                self.seen = seen;
                self.take(read);
            }
            self.report_doubt(clock.now_ms());
        }
    }

    fn take(&mut self, read: Result<(Option<TlsIdentity>, Option<Credentials>), UnusableFile>) {
        match read {
            Ok((identity, credentials)) => {
                // Layers are fixed at startup. A reload only replaces the certificate and credentials in them.
                if let (Some(tls), Some(identity)) = (&self.tls, &identity) {
                    tls.replace(identity);
                    info!("reloaded the certificate: it is {identity}");
                }
                if let (Some(gate), Some(credentials)) = (&self.gate, credentials) {
                    gate.replace(credentials);
                    info!("reloaded the credentials");
                }
                self.identity = identity;
                self.report_expiry();
            }
            Err(UnusableFile {
                setting,
                message,
                remedy,
            }) => error!("{setting}: {message}; the previous file stays in use: {remedy}"),
        }
    }

    fn report_expiry(&self) {
        let expires_ms = self.identity.as_ref().map(TlsIdentity::expires_ms);
        self.telemetry.set_certificate_expiry(expires_ms);
    }

    /// Warns if a new doubt about the certificate's validity has come up.
    fn report_doubt(&mut self, now_ms: i64) {
        let Some(identity) = &self.identity else {
            return;
        };
        let doubt = identity.doubt(now_ms);
        if let Some(doubt) = doubt.filter(|_| doubt != self.reported) {
            warn!("{}", identity.say(doubt));
        }
        self.reported = doubt;
    }
}

/// Reads the files of `[http]`: the certificate if TLS is configured, and credentials if access is restricted.
///
/// # Errors
/// A file cannot be used.
pub fn read(http: &settings::Http) -> Result<(Option<TlsIdentity>, Option<Credentials>), UnusableFile> {
    let identity = http.tls.as_ref().map(TlsIdentity::read).transpose()?;
    let is_guarded = !http.access.is_open();
    let credentials = is_guarded.then(|| Credentials::read(&http.access)).transpose()?;
    Ok((identity, credentials))
}

/// Returns the SHA-256 of each file, or none for a file that cannot be read.
fn fingerprints(http: &settings::Http) -> Vec<Option<Fingerprint>> {
    let tls = http.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
    let access = [&http.access.tokens_file, &http.access.users_file];
    tls.chain(access.into_iter().flatten())
        .map(|path| fingerprint(path))
        .collect()
}

fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let bytes = files::read(path).ok()?;
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, &bytes).as_ref());
    Some(fingerprint)
}
