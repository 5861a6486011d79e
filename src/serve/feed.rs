//! Feed for live pages: a snapshot every two seconds, from which each watched view is rendered once.
//!
//! ```text
//!                       ┌─▶ view a ──▶ page, page, page …
//! round ──▶ snapshot ───┤
//!   ▲                   └─▶ view b ──▶ page …
//!   └── two seconds, or ten times what the round took
//! ```
//! If a page requests another view between two rounds, for example after a click, the view is rendered immediately: from
//! the last snapshot if that is at most two seconds old, else in an early round.
//!
//! Without a watcher there are no rounds. One snapshot is kept, and the last rendering of each view.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::error;

use super::encoding::Piece;
use super::view::{self, ViewQuery};
use super::{Exporter, Scope};
use crate::board::snapshot::{Snapshot, Snapshots};

/// Interval between rounds.
const EVERY: Duration = Duration::from_secs(2);
/// Divisor of the time that a round may take: at most 1/n, so that the processor is free for other work.
const SHARE: u32 = 10;
/// Maximum pause between rounds, however long a round takes.
const LONGEST: Duration = Duration::from_secs(20);
/// Minimum wait before an early round, so that other requests can share it. The wait also lasts at least as long as the
/// last round took.
const GATHER: Duration = Duration::from_millis(20);

/// Text around a view's JSON in an event of a stream.
const BEGIN: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";

/// View rendered at one instant.
#[derive(Debug, Clone)]
pub(super) struct RenderedView {
    event: Bytes,
    piece: Piece,
}

impl RenderedView {
    fn of(event: Vec<u8>) -> RenderedView {
        RenderedView {
            piece: Piece::of(&event),
            event: event.into(),
        }
    }

    /// Returns the view as a server-sent event.
    pub fn event(&self) -> Bytes {
        self.event.clone()
    }

    /// Returns the compressed event.
    pub fn piece(&self) -> &Piece {
        &self.piece
    }

    pub fn json(&self) -> Bytes {
        self.event.slice(BEGIN.len()..self.event.len() - END.len())
    }
}

/// Rendering failure, with the reason in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ViewFailed;

/// Latest rendering, or none before the first.
type LatestRendering = Option<Result<RenderedView, ViewFailed>>;

pub(super) type Watcher = watch::Receiver<LatestRendering>;

pub(super) struct ViewFeed {
    shared: Arc<FeedState>,
}

struct FeedState {
    exporter: Arc<Exporter>,
    watched: Mutex<WatchedViews>,
    /// Notified when a request waits for a view that was not watched before.
    new: Notify,
    every: Duration,
}

#[derive(Default)]
struct WatchedViews {
    views: Vec<(ViewQuery, watch::Sender<LatestRendering>)>,
    /// Set while a task runs rounds.
    runs: bool,
}

impl ViewFeed {
    pub fn new(exporter: Arc<Exporter>) -> ViewFeed {
        ViewFeed::with_pause(exporter, EVERY)
    }

    fn with_pause(exporter: Arc<Exporter>, every: Duration) -> ViewFeed {
        ViewFeed {
            shared: Arc::new(FeedState {
                exporter,
                watched: Mutex::default(),
                new: Notify::new(),
                every,
            }),
        }
    }

    /// Returns the renderings of a view: the last one, if the view is watched already, and all future ones.
    pub fn watch(&self, query: &ViewQuery) -> Watcher {
        let mut watched = self.shared.watched();
        let known = watched.views.iter().find(|(other, _)| other == query);
        let watcher = match known {
            Some((_, view)) => {
                let mut watcher = view.subscribe();
                // The watcher has not seen the last rendering yet, although the channel counts it as seen.
                watcher.mark_changed();
                watcher
            }
            None => {
                let (view, watcher) = watch::channel(None);
                watched.views.push((query.clone(), view));
                self.shared.new.notify_one();
                watcher
            }
        };
        if !std::mem::replace(&mut watched.runs, true) {
            tokio::spawn(Arc::clone(&self.shared).rounds());
        }
        watcher
    }
}

impl FeedState {
    /// Runs rounds until nobody watches.
    async fn rounds(self: Arc<Self>) {
        let mut snapshots = Snapshots::default();
        while let Some(queries) = self.queries() {
            let began = Instant::now();
            let mut is_taken;
            (snapshots, is_taken) = self.render(queries, snapshots, true).await;
            let took = began.elapsed();
            // The pause grows with the cost of a round, up to a limit beyond which pages would look stuck.
            let next = began + (took * SHARE).min(LONGEST).max(self.every);
            // After this time the snapshot is too old for early rounds.
            let old = began + took + self.every;
            while self.somebody_new(next).await && is_taken && Instant::now() < old {
                let began = Instant::now();
                (snapshots, is_taken) = self.render(self.new_queries(), snapshots, false).await;
                // Pausing for as long as the round took bounds early rounds to half of the time.
                tokio::time::sleep(began.elapsed()).await;
            }
            // Other requests that arrive meanwhile can share an early round.
            if Instant::now() < next {
                tokio::time::sleep_until((began + took * 2).max(Instant::now() + GATHER)).await;
            }
        }
    }

    /// Waits until `end` at most for a view that was not watched before. Returns whether there is one.
    async fn somebody_new(&self, end: Instant) -> bool {
        let has_new = || !self.new_queries().is_empty();
        while Instant::now() < end && !has_new() {
            let _ = tokio::time::timeout_at(end, self.new.notified()).await;
        }
        has_new()
    }

    /// Renders these views from a new snapshot if `anew`, else from the given one. Returns the snapshot and whether the
    /// task finished.
    async fn render(
        &self,
        queries: Vec<ViewQuery>,
        mut snapshots: Snapshots,
        restarted: bool,
    ) -> (Snapshots, bool) {
        let exporter = Arc::clone(&self.exporter);
        let rendered = tokio::task::spawn_blocking(move || {
            if restarted {
                exporter.source.snapshot_into(None, &mut snapshots.own);
                if let Some(global) = &exporter.global {
                    global.source.snapshot_into(None, &mut snapshots.global);
                }
            }
            let views = queries.iter().map(|query| {
                let is_global = query.scope == Scope::Global;
                render(&exporter, query, snapshots.of(is_global))
            });
            let views: Vec<_> = views.collect();
            (snapshots, queries, views)
        });
        match rendered.await {
            Ok((used, queries, views)) => {
                self.publish(&queries, &views);
                (used, true)
            }
            Err(panic) => {
                error!(%panic, "cannot render what pages watch");
                // Watchers get an error instead of waiting for a rendering that never comes.
                self.fail();
                // The buffers are lost with the task that panicked.
                (Snapshots::default(), false)
            }
        }
    }

    /// Returns the watched views. If there are none, marks the rounds as ended.
    fn queries(&self) -> Option<Vec<ViewQuery>> {
        let mut watched = self.watched();
        watched.views.retain(|(_, view)| view.receiver_count() > 0);
        // Decided under the lock: a watcher that comes later finds no running task and starts one.
        watched.runs = !watched.views.is_empty();
        let queries = watched.views.iter().map(|(query, _)| query.clone());
        watched.runs.then(|| queries.collect())
    }

    /// Returns views that were requested but not rendered yet.
    fn new_queries(&self) -> Vec<ViewQuery> {
        let watched = self.watched();
        let views = watched.views.iter().filter(|(_, view)| is_new(view));
        views.map(|(query, _)| query.clone()).collect()
    }

    fn publish(&self, queries: &[ViewQuery], views: &[Result<RenderedView, ViewFailed>]) {
        let watched = self.watched();
        for (query, view) in queries.iter().zip(views) {
            if let Some((_, publish)) = watched.views.iter().find(|(other, _)| other == query) {
                publish.send_replace(Some(view.clone()));
            }
        }
    }

    fn fail(&self) {
        for (_, view) in &self.watched().views {
            view.send_replace(Some(Err(ViewFailed)));
        }
    }

    fn watched(&self) -> MutexGuard<'_, WatchedViews> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a request waits for a view that was never rendered.
fn is_new(view: &watch::Sender<LatestRendering>) -> bool {
    view.receiver_count() > 0 && view.borrow().is_none()
}

fn render(exporter: &Exporter, query: &ViewQuery, snapshot: &Snapshot) -> Result<RenderedView, ViewFailed> {
    let mut event = BEGIN.to_vec();
    match view::render(exporter, query, snapshot, &mut event) {
        Ok(()) => {
            event.extend_from_slice(END);
            Ok(RenderedView::of(event))
        }
        Err(error) => {
            error!(%error, "cannot render what a page watches");
            Err(ViewFailed)
        }
    }
}

#[cfg(test)]
mod tests;
