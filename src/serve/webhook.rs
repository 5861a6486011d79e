//! Webhook notifications: POSTs an arm's verdict to `[webhook]` when its state changes, at least once per change.
//!
//! ```text
//! Published ──▶ Outbox: newest change per arm ──▶ Post, one per arm ──▶ 2xx: delivered
//!     every second, once ready     ▲─────────── back off ─┘ else: to the end of the queue
//! ```
//! With `[state]`, all instances of a group take the same looks, and the owner of the first partition sends. A new owner
//! sends the last change of each arm again, because its predecessor may not have delivered it.
//!
//! The webhook polls the latest look like any other reader, so no look or record ever waits for it. Undelivered changes are
//! held in memory only. After a restart, the first known state of each arm is sent again, unless it calls for no action.

mod outbox;
mod pace;
mod post;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use abgauge_core::looks::Published;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::outbox::{Notice, NoticeOutbox};
use self::post::Post;
use crate::settings::{self, UnusableFile};
use crate::telemetry::{Telemetry, Warning, WebhookResult};

/// Interval between polls of the latest look.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Number of simultaneous attempts: one without an answer does not hold up other arms.
const AT_ONCE: usize = 16;

/// Time without a successful answer after which the operator is warned.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Callback that returns whether this process sends notifications.
pub type IsSender = Box<dyn Fn() -> bool + Send + Sync>;

/// Sender of state changes, which runs until it is stopped.
pub struct WebhookSender {
    looks: Arc<Published>,
    telemetry: Arc<Telemetry>,
    outbox: NoticeOutbox,
    post: Arc<Post>,
    attempts: FuturesUnordered<BoxFuture<'static, (Notice, anyhow::Result<()>)>>,
    /// Absent if this process always sends.
    speaks: Option<IsSender>,
    look_every: Duration,
    patience: Duration,
}

/// Checks that the files named in `[webhook]` can be read and used.
///
/// # Errors
/// A file cannot be used.
pub fn check(webhook: &settings::Webhook) -> Result<(), UnusableFile> {
    Post::new(webhook).check()
}

impl WebhookSender {
    /// Creates a webhook and checks its files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(
        webhook: &settings::Webhook,
        looks: Arc<Published>,
        telemetry: Arc<Telemetry>,
    ) -> Result<WebhookSender, UnusableFile> {
        let post = Post::new(webhook);
        post.check()?;
        Ok(WebhookSender {
            looks,
            telemetry,
            outbox: NoticeOutbox::default(),
            post: Arc::new(post),
            attempts: FuturesUnordered::new(),
            speaks: None,
            look_every: LOOK_EVERY,
            patience: PATIENCE,
        })
    }

    /// Sends only while `speaks` returns true. Meanwhile the last change of each arm waits. It is sent as soon as `speaks`
    /// turns true, because the instance that was responsible before may have ended without sending it.
    pub fn while_it(mut self, speaks: Option<IsSender>) -> WebhookSender {
        self.speaks = speaks;
        self
    }

    /// Runs until `stop`, which also aborts attempts in flight. Changes that still wait are sent after the next start, if
    /// the state is still the same.
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = async { loop { self.round().await } } => {}
        }
    }

    /// Takes new changes, starts attempts, and waits for an outcome or the next look.
    async fn round(&mut self) {
        // Until the daemon is ready it repeats looks of the past, which are not news.
        if self.telemetry.is_ready() {
            self.outbox.take(&self.looks.shown());
        }
        if self.speaks.as_ref().is_none_or(|speaks| speaks()) {
            self.telemetry.set_webhook_waiting(self.outbox.len());
            self.start_attempts();
        } else {
            // Warnings and the waiting count belong to the instance that sends.
            self.telemetry.set_webhook_waiting(0);
            self.telemetry.set_webhook_warning(None);
        }
        tokio::select! {
            Some((notice, outcome)) = self.attempts.next() => self.note(&notice, outcome),
            () = tokio::time::sleep(self.look_every) => {}
        }
    }

    fn start_attempts(&mut self) {
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
                info!(?experiment, ?arm, %state, "called the webhook");
                self.telemetry.count_webhook_notice(WebhookResult::Sent);
                self.outbox.reported(notice);
            }
            Err(error) => {
                let wait = self.outbox.put_off(notice, now);
                warn!(?experiment, ?arm, %state, "could not call the webhook: {error:#}; next attempt in {wait:?}");
                self.telemetry.count_webhook_notice(WebhookResult::Failed);
                if self.outbox.failing_for(now) >= self.patience {
                    let warning = failing(&self.post, self.outbox.len(), &error);
                    self.telemetry.set_webhook_warning(Some(warning));
                }
            }
        }
        // The warning stays while any arm has failed for too long, even if another one just succeeded.
        if self.outbox.failing_for(now) < self.patience {
            self.telemetry.set_webhook_warning(None);
        }
        self.telemetry.set_webhook_waiting(self.outbox.len());
    }
}

fn failing(post: &Post, n_waiting: usize, error: &anyhow::Error) -> Warning {
    let message = format!(
        "webhook.url ({}) does not accept calls: {error:#}; arms with an undelivered change of state: {n_waiting}. abgauge keeps trying; until then the page and /api/v1/verdict have the states",
        post.url()
    );
    Warning::new(message).see("AbgaugeWebhookFails")
}
