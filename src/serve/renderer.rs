//! Response bodies, rendered once for all concurrent requests of the same kind.
//!
//! ```text
//! request ─┐                      ┌─▶ text ──▶ reader, reader …
//! request ─┼─▶ waiting ─▶ render ─┤
//! request ─┘      ▲               └─▶ gzip ──▶ reader, reader …
//! later request ──┘ joins the next one: a rendering that has started may lack newer data
//! ```
//! A request therefore sees everything that was handed over before it, and any number of scrapers costs at most two
//! renderings at a time. The number of bodies in memory is bounded, however many clients read them and however slowly. If
//! another one is needed, the body whose readers have stalled longest is called back. Buffers are reused for the next body,
//! until no request arrives for a while.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tracing::error;

use super::encoding::{Encoding, gzip};
use super::shared_body::{STALLED, SharedBody};
use crate::board::snapshot::Snapshots;

/// Maximum number of renderings of one route in memory.
const MAX_BODIES: usize = 4;
/// Time that buffers are kept for the next rendering: longer than the usual scrape interval.
const KEPT: Duration = Duration::from_secs(90);

/// Rendering failure, with the reason in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// Body for one reader.
pub(super) struct BodyReader {
    pub bytes: Bytes,
    /// Handle through which the sender reports progress and learns that the body is called back.
    pub shared_body: Arc<SharedBody>,
}

/// Renderer of the bodies for each `Key`.
pub(super) struct Renderer<Key> {
    shared: Arc<RendererState<Key>>,
}

struct RendererState<Key> {
    bodies: Arc<Semaphore>,
    /// Lock held while rendering: one at a time, so that the processor is free for other work.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Renderings that have not started, which requests of the same kind can join.
    waiting: Mutex<Vec<(Key, Rendered)>>,
    /// Renderings in memory.
    body_reader: Mutex<Vec<Weak<Rendering>>>,
    spare: Arc<Mutex<SpareBuffers>>,
}

type Rendered = watch::Receiver<Option<Result<Arc<Rendering>, Failed>>>;

/// Buffers of earlier renderings, for the next one.
#[derive(Default)]
struct SpareBuffers {
    snapshots: Snapshots,
    text: Vec<u8>,
    packed: Vec<u8>,
    /// Number of times that buffers were returned.
    n_kept: u64,
    /// Set while a task waits to free the buffers.
    watched: bool,
    /// Time that they are kept after the last use.
    kept: Duration,
}

impl<Key: PartialEq + Clone + Send + Sync + 'static> Renderer<Key> {
    pub fn new() -> Renderer<Key> {
        Renderer::keeping_for(KEPT)
    }

    fn keeping_for(kept: Duration) -> Renderer<Key> {
        Renderer {
            shared: Arc::new(RendererState {
                bodies: Arc::new(Semaphore::new(MAX_BODIES)),
                turn: Arc::default(),
                waiting: Mutex::default(),
                body_reader: Mutex::default(),
                spare: Arc::new(Mutex::new(SpareBuffers {
                    kept,
                    ..SpareBuffers::default()
                })),
            }),
        }
    }

    /// Returns the body for `key`, from a rendering that has not started yet or from a new one.
    pub async fn body(
        &self,
        key: Key,
        encoding: Encoding,
        render: impl FnOnce(&mut Snapshots, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<BodyReader, Failed> {
        let mut rendered = self.join(key, render);
        let rendering = match rendered.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => result.clone()?,
            Ok(None) | Err(_) => return Err(Failed),
        };
        // A receiver keeps the value it has seen, and with it the body.
        drop(rendered);
        if encoding == Encoding::Gzip && rendering.packed.get().is_none() {
            let rendering = Arc::clone(&rendering);
            let packed = tokio::task::spawn_blocking(move || rendering.pack());
            packed.await.map_err(|_| Failed)?;
        }
        let shared_body = Arc::clone(&rendering.shared_body);
        // Lent only after compression, so that its time does not count as a stall of the reader.
        shared_body.lend();
        Ok(BodyReader {
            bytes: Bytes::from_owner(Sending { rendering, encoding }),
            shared_body,
        })
    }

    fn join(
        &self,
        key: Key,
        render: impl FnOnce(&mut Snapshots, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Rendered {
        let mut waiting = lock(&self.shared.waiting);
        // Looking up and adding happen under one lock, so two requests never start the same rendering.
        if let Some((_, rendered)) = waiting.iter().find(|(other, _)| *other == key) {
            return rendered.clone();
        }
        let (publish, rendered) = watch::channel(None);
        waiting.push((key.clone(), rendered.clone()));
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let result = shared.render(key, render).await;
            publish.send_replace(Some(result));
        });
        rendered
    }
}

impl<Key: PartialEq + Send + Sync + 'static> RendererState<Key> {
    async fn render(
        self: Arc<Self>,
        key: Key,
        render: impl FnOnce(&mut Snapshots, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<Arc<Rendering>, Failed> {
        let permit = self.room().await;
        // The turn is taken last, so that it is never held while waiting for memory.
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let runtime = Handle::current();
        let shared = Arc::clone(&self);
        let rendered = tokio::task::spawn_blocking(move || {
            // Held to the end of the rendering, even if all requests for it are gone.
            let _turn = turn;
            self.begin(&key);
            let mut spare = lock(&self.spare);
            let (mut snapshots, mut text) = (take(&mut spare.snapshots), take(&mut spare.text));
            drop(spare);
            text.clear();
            // After an error the buffers are dropped, and the next rendering allocates new ones.
            render(&mut snapshots, &mut text)?;
            lock(&self.spare).snapshots = snapshots;
            anyhow::Ok(Rendering {
                text,
                packed: OnceLock::new(),
                shared_body: Arc::default(),
                spare: Arc::clone(&self.spare),
                runtime,
                _permit: permit,
            })
        });
        match rendered.await.map_err(anyhow::Error::from) {
            Ok(Ok(rendering)) => {
                let rendering = Arc::new(rendering);
                lock(&shared.body_reader).push(Arc::downgrade(&rendering));
                Ok(rendering)
            }
            Ok(Err(error)) | Err(error) => {
                error!(%error, "cannot render an answer");
                Err(Failed)
            }
        }
    }

    /// Waits until there is room for another body in memory, and calls one back if its readers are slow.
    async fn room(&self) -> OwnedSemaphorePermit {
        const OPEN: &str = "the semaphore is never closed";
        let freed = Arc::clone(&self.bodies).acquire_owned();
        let mut freed = std::pin::pin!(freed);
        loop {
            let next = self.next_due();
            let due = next
                .as_ref()
                .map_or_else(|| Instant::now() + STALLED, |(due, _)| *due);
            tokio::select! {
                biased;
                permit = freed.as_mut() => return permit.expect(OPEN),
                () = tokio::time::sleep_until(due) => {}
            }
            // Its readers may have made progress meanwhile, so the due time is checked again.
            let Some(shared_body) = next.and_then(|(_, shared_body)| {
                shared_body
                    .due()
                    .filter(|due| *due <= Instant::now())
                    .map(|_| shared_body)
            }) else {
                continue;
            };
            shared_body.call_back();
            // Its readers are being cut, so no other body is called back for this one.
            if let Ok(permit) = tokio::time::timeout(STALLED, freed.as_mut()).await {
                return permit.expect(OPEN);
            }
        }
    }

    /// Returns the body that can be called back first, and from when on.
    fn next_due(&self) -> Option<(Instant, Arc<SharedBody>)> {
        let mut body_reader = lock(&self.body_reader);
        body_reader.retain(|rendering| rendering.strong_count() > 0);
        let loans = body_reader
            .iter()
            .filter_map(Weak::upgrade)
            .map(|rendering| Arc::clone(&rendering.shared_body));
        let dues = loans.filter_map(|shared_body| Some((shared_body.due()?, shared_body)));
        dues.min_by_key(|(due, _)| *due)
    }

    /// Starts a rendering: later requests of the same kind get the next one.
    fn begin(&self, key: &Key) {
        lock(&self.waiting).retain(|(other, _)| other != key);
    }
}

/// Text, and its compressed form once requested, kept until the last reader is done.
struct Rendering {
    text: Vec<u8>,
    packed: OnceLock<Vec<u8>>,
    shared_body: Arc<SharedBody>,
    spare: Arc<Mutex<SpareBuffers>>,
    runtime: Handle,
    _permit: OwnedSemaphorePermit,
}

impl Rendering {
    fn pack(&self) {
        self.shared_body.prepares();
        self.packed.get_or_init(|| {
            let mut packed = take(&mut lock(&self.spare).packed);
            packed.clear();
            gzip(&self.text, packed)
        });
        self.shared_body.prepared();
    }
}

impl Drop for Rendering {
    /// Returns the buffers for the next rendering.
    fn drop(&mut self) {
        let mut spare = lock(&self.spare);
        // If several bodies are returned, the last buffers are kept and the others freed.
        spare.text = take(&mut self.text);
        if let Some(packed) = self.packed.take() {
            spare.packed = packed;
        }
        spare.n_kept += 1;
        if !std::mem::replace(&mut spare.watched, true) {
            let spare_of = Arc::downgrade(&self.spare);
            self.runtime.spawn(free_unused(spare_of, spare.kept));
        }
    }
}

/// Frees the buffers once nothing was rendered for this long.
async fn free_unused(spare: Weak<Mutex<SpareBuffers>>, kept: Duration) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(kept).await;
        // The renderer may be gone, and its buffers with it.
        let Some(spare) = spare.upgrade() else { return };
        let mut spare = lock(&spare);
        if spare.n_kept == seen {
            // This also clears `watched`, so the next buffers that are returned start a new task.
            *spare = SpareBuffers {
                kept,
                ..SpareBuffers::default()
            };
            return;
        }
        seen = spare.n_kept;
    }
}

/// Share of one reader in a rendering.
struct Sending {
    rendering: Arc<Rendering>,
    encoding: Encoding,
}

impl AsRef<[u8]> for Sending {
    fn as_ref(&self) -> &[u8] {
        match (self.encoding, self.rendering.packed.get()) {
            (Encoding::Gzip, Some(packed)) => packed,
            _ => &self.rendering.text,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
