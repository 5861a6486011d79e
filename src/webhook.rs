//! Tells whoever `[webhook]` names when the state of an arm changes, by a POST of its verdict: at least once.
//!
//! ```text
//! Published ──▶ Outbox: what changed, an arm once ──▶ Post ──▶ 2xx: told
//!     every second, once ready        ▲───── back off ─┘ else: to its end
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

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::outbox::Outbox;
use self::pace::Pace;
use self::post::Post;
use crate::config::{self, UnusableFile};
use crate::looks::Published;
use crate::telemetry::{Telemetry, Warning, WebhookResult};

/// How often the last look is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After so long without an answer of success an operator is told.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Whether this process is to tell.
pub type Speaks = Box<dyn Fn() -> bool + Send + Sync>;

/// Tells changes until it is stopped.
pub struct Webhook {
    looks: Arc<Published>,
    telemetry: Arc<Telemetry>,
    outbox: Outbox,
    post: Post,
    /// None: it always is.
    speaks: Option<Speaks>,
    pace: Pace,
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
            post,
            speaks: None,
            pace: Pace::default(),
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

    /// Until `stop`, which ends an attempt that is being made: what waits then is told after the next start, if it is still so.
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = async { loop { self.round().await } } => {}
        }
    }

    /// Takes what is new, and makes one attempt, or waits for a look.
    async fn round(&mut self) {
        // Before, looks of the past are taken anew.
        if self.telemetry.is_ready() {
            self.outbox.take(&self.looks.shown());
        }
        if self.speaks.as_ref().is_some_and(|speaks| !speaks()) {
            self.telemetry.set_webhook_waiting(0);
            self.telemetry.set_webhook_warning(None);
            return tokio::time::sleep(self.look_every).await;
        }
        self.telemetry.set_webhook_waiting(self.outbox.len());
        match self.outbox.next() {
            Some(_) if self.pace.is_due(Instant::now()) => self.attempt().await,
            _ => tokio::time::sleep(self.look_every).await,
        }
    }

    async fn attempt(&mut self) {
        let Some(notice) = self.outbox.next() else {
            return;
        };
        let (experiment, arm, state) = (&notice.arm.experiment, &notice.arm.arm, notice.state);
        match self.post.send(notice.verdict.clone()).await {
            Ok(()) => {
                info!(?experiment, ?arm, %state, "told the webhook");
                self.telemetry.count_webhook_notice(WebhookResult::Sent);
                self.telemetry.set_webhook_warning(None);
                self.outbox.told();
                self.pace.succeeded();
            }
            Err(error) => {
                let now = Instant::now();
                let wait = self.pace.failed(now);
                warn!(?experiment, ?arm, %state, "could not tell the webhook: {error:#}; tries again after {wait:?}");
                self.telemetry.count_webhook_notice(WebhookResult::Failed);
                if self.pace.failing_for(now) >= self.patience {
                    let warning = failing(&self.post, self.outbox.len(), &error);
                    self.telemetry.set_webhook_warning(Some(warning));
                }
                self.outbox.put_off();
            }
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
