//! Tells whoever `[webhook]` names when the state of an arm changes, by a POST of its verdict: at least once.
//!
//! ```text
//! Published ──▶ Outbox: what changed, an arm once ──▶ Post, an arm each ──▶ 2xx: told
//!     every second, once ready        ▲───────── back off ──┘ else: to its end
//! ```
//! Where state is stored, all instances of a group take the same looks, and the one that owns the first partition tells. Whoever takes
//! that over tells the last change of each arm again, for the one before may not have come to it.
//!
//! It reads the last look as others do, so that no look and no record ever waits for it. What is not told yet lives in
//! memory: a start knows nothing of what was told before it, and tells each arm's first known state anew, unless nothing
//! follows from that.

mod outbox;
mod pace;
mod post;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::outbox::{Notice, Outbox};
use self::post::Post;
use crate::config::{self, UnusableFile};
use crate::looks::Published;
use crate::telemetry::{Telemetry, Warning, WebhookResult};

/// How often the last look is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Attempts that are made at the same time: one that hangs holds up no other arm.
const AT_ONCE: usize = 16;

/// After so long without an answer of success an operator is told.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Whether this process is to tell.
pub type Speaks = Box<dyn Fn() -> bool + Send + Sync>;

/// Tells changes until it is stopped.
pub struct Webhook {
    looks: Arc<Published>,
    telemetry: Arc<Telemetry>,
    outbox: Outbox,
    post: Arc<Post>,
    attempts: FuturesUnordered<BoxFuture<'static, (Notice, anyhow::Result<()>)>>,
    /// None: it always is.
    speaks: Option<Speaks>,
    look_every: Duration,
    patience: Duration,
}

/// Reads the files that `[webhook]` names.
///
/// # Errors
/// One that cannot be used.
pub fn check(webhook: &config::Webhook) -> Result<(), UnusableFile> {
    Post::new(webhook).check()
}

impl Webhook {
    /// # Errors
    /// A file that cannot be used.
    pub fn open(
        webhook: &config::Webhook,
        looks: Arc<Published>,
        telemetry: Arc<Telemetry>,
    ) -> Result<Webhook, UnusableFile> {
        let post = Post::new(webhook);
        post.check()?;
        Ok(Webhook {
            looks,
            telemetry,
            outbox: Outbox::default(),
            post: Arc::new(post),
            attempts: FuturesUnordered::new(),
            speaks: None,
            look_every: LOOK_EVERY,
            patience: PATIENCE,
        })
    }

    /// Tells only while this says so. Meanwhile what has changed waits, the last change of each arm, and is told once it does: another may
    /// have told it before, or have ended first.
    pub fn while_it(mut self, speaks: Option<Speaks>) -> Webhook {
        self.speaks = speaks;
        self
    }

    /// Until `stop`, which ends the attempts that are being made: what waits then is told after the next start, if it is still so.
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = async { loop { self.round().await } } => {}
        }
    }

    /// Takes what is new, begins attempts, and waits for an outcome or a look.
    async fn round(&mut self) {
        // Before, looks of the past are taken anew.
        if self.telemetry.is_ready() {
            self.outbox.take(&self.looks.shown());
        }
        if self.speaks.as_ref().is_none_or(|speaks| speaks()) {
            self.telemetry.set_webhook_waiting(self.outbox.len());
            self.begin_attempts();
        } else {
            self.telemetry.set_webhook_waiting(0);
            self.telemetry.set_webhook_warning(None);
        }
        tokio::select! {
            Some((notice, outcome)) = self.attempts.next() => self.note(&notice, outcome),
            () = tokio::time::sleep(self.look_every) => {}
        }
    }

    fn begin_attempts(&mut self) {
        while self.attempts.len() < AT_ONCE {
            let Some(notice) = self.outbox.begin(Instant::now()) else {
                return;
            };
            let post = Arc::clone(&self.post);
            self.attempts.push(Box::pin(async move {
                let outcome = post.send(notice.verdict.clone()).await;
                (notice, outcome)
            }));
        }
    }

    fn note(&mut self, notice: &Notice, outcome: anyhow::Result<()>) {
        let (experiment, arm, state) = (&notice.arm.experiment, &notice.arm.arm, notice.state);
        let now = Instant::now();
        match outcome {
            Ok(()) => {
                info!(?experiment, ?arm, %state, "told the webhook");
                self.telemetry.count_webhook_notice(WebhookResult::Sent);
                self.outbox.told(notice);
            }
            Err(error) => {
                let wait = self.outbox.put_off(notice, now);
                warn!(?experiment, ?arm, %state, "could not tell the webhook: {error:#}; tries again after {wait:?}");
                self.telemetry.count_webhook_notice(WebhookResult::Failed);
                if self.outbox.failing_for(now) >= self.patience {
                    let warning = failing(&self.post, self.outbox.len(), &error);
                    self.telemetry.set_webhook_warning(Some(warning));
                }
            }
        }
        if self.outbox.failing_for(now) < self.patience {
            self.telemetry.set_webhook_warning(None);
        }
        self.telemetry.set_webhook_waiting(self.outbox.len());
    }
}

fn failing(post: &Post, n_waiting: usize, error: &anyhow::Error) -> Warning {
    let message = format!(
        "webhook.url ({}) takes nothing: {error:#}; arms whose change of state is not told there: {n_waiting}. It is tried again \
         and again, and the page and /api/v1/verdict have the states meanwhile",
        post.url()
    );
    Warning::new(message).see("AbgaugeWebhookFails")
}
