//! Event stream of a live page: each rendering of its view, with keep-alives in between.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::super::encoding::{self, Encoding, Piece};
use super::super::feed::{ViewFailed, Watcher};

const BEAT: &[u8] = b"event: beat\ndata: 1\n\n";

/// Server-sent events until the daemon stops.
pub(super) struct Events {
    watcher: Watcher,
    beat: Duration,
    shutdown: CancellationToken,
    packs: Option<Packing>,
    has_started: bool,
    _permit: OwnedSemaphorePermit,
}

/// Compression state for a page that accepts gzip.
struct Packing {
    stream: encoding::GzipStream,
    beat: Piece,
}

impl Events {
    pub fn new(
        watcher: Watcher,
        encoding: Encoding,
        beat: Duration,
        shutdown: CancellationToken,
        permit: OwnedSemaphorePermit,
    ) -> Events {
        let packs = (encoding == Encoding::Gzip).then(|| Packing {
            stream: encoding::GzipStream::default(),
            beat: Piece::of(BEAT),
        });
        Events {
            watcher,
            beat,
            shutdown,
            has_started: packs.is_none(),
            packs,
            _permit: permit,
        }
    }

    pub fn into_body(self) -> Body {
        let events = stream::unfold(Some(self), |events| async move {
            let mut events = events?;
            let event = events.next().await;
            match event {
                Some(event) => Some((Ok::<_, Infallible>(event), Some(events))),
                // The checksum completes a gzip stream. A plain stream just ends.
                None => events.packs.map(|packs| (Ok(packs.stream.end()), None)),
            }
        });
        Body::from_stream(events)
    }

    /// Returns the next rendering or keep-alive, or none once the daemon stops. A slow page misses some renderings.
    // A gzip stream starts with its header, before any event.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.has_started, true) {
            return Some(Bytes::from_static(&encoding::GzipStream::HEAD));
        }
        tokio::select! {
            // The shutdown is polled first, so that a view that changes all the time cannot delay it.
            biased;
            () = self.shutdown.cancelled() => None,
            changed = self.watcher.changed() => {
                changed.ok()?;
                match &*self.watcher.borrow_and_update() {
                    Some(Ok(rendering)) => Some(match &mut self.packs {
                        Some(packs) => packs.stream.add(rendering.piece()),
                        None => rendering.event(),
                    }),
                    Some(Err(ViewFailed)) => None,
                    // The second watcher of a view is woken once before the first rendering.
                    None => Some(beat(&mut self.packs)),
                }
            }
            () = tokio::time::sleep(self.beat) => Some(beat(&mut self.packs)),
        }
    }
}

fn beat(packs: &mut Option<Packing>) -> Bytes {
    match packs {
        Some(packs) => packs.stream.add(&packs.beat),
        None => Bytes::from_static(BEAT),
    }
}
