//! Bodies, rendered once for all who ask for the same at the same time.
//!
//! ```text
//! request ─┐                      ┌─▶ text ──▶ reader, reader …
//! request ─┼─▶ waiting ─▶ render ─┤
//! request ─┘      ▲               └─▶ gzip ──▶ reader, reader …
//! later request ──┘ the next one: what has begun to be rendered may lack what it must see
//! ```
//! So a request sees all that was handed over before it was made, and any number of scrapers costs two renderings at a
//! time. Memory is bounded by the bodies that are not yet sent, whoever reads them; the buffers of one are kept for the
//! next, until nobody has asked for a while.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::error;

use super::encoding::{Encoding, gzip};
use crate::snapshot::Snapshot;

/// Renderings of one route whose text may be in memory at once.
const MAX_BODIES: usize = 4;
/// How long a request waits for its turn among them.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long buffers are kept for the next rendering: longer than scrapers usually wait.
const KEPT: Duration = Duration::from_secs(90);

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Slow readers hold as many as may be.
    Busy,
    /// It could not be rendered; the log says why.
    Failed,
}

/// Renders what is asked for by a `Key`.
pub(super) struct Renderer<Key> {
    shared: Arc<Shared<Key>>,
}

struct Shared<Key> {
    bodies: Arc<Semaphore>,
    /// Held while rendering: one at a time, so that the processor is left to the rest.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Renderings that have not begun: who asks for the same joins them.
    waiting: Mutex<Vec<(Key, Rendered)>>,
    spare: Arc<Mutex<Spare>>,
    patience: Duration,
}

type Rendered = watch::Receiver<Option<Result<Arc<Rendering>, Refusal>>>;

/// Buffers of earlier renderings, for the next.
#[derive(Default)]
struct Spare {
    snapshot: Snapshot,
    text: Vec<u8>,
    packed: Vec<u8>,
    /// How often any was put here.
    n_kept: u64,
    /// Somebody looks after them, to free them when they are no longer used.
    watched: bool,
    /// For how long after the last use.
    kept: Duration,
}

impl<Key: PartialEq + Clone + Send + Sync + 'static> Renderer<Key> {
    pub fn new() -> Renderer<Key> {
        Renderer::with_times(PATIENCE, KEPT)
    }

    fn with_times(patience: Duration, kept: Duration) -> Renderer<Key> {
        Renderer {
            shared: Arc::new(Shared {
                bodies: Arc::new(Semaphore::new(MAX_BODIES)),
                turn: Arc::default(),
                waiting: Mutex::default(),
                spare: Arc::new(Mutex::new(Spare {
                    kept,
                    ..Spare::default()
                })),
                patience,
            }),
        }
    }

    /// The body for `key`: of a rendering that waits for its turn, else of a new one.
    pub async fn body(
        &self,
        key: Key,
        encoding: Encoding,
        render: impl FnOnce(&mut Snapshot, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<Bytes, Refusal> {
        let mut rendered = self.join(key, render);
        let rendering = match rendered.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => result.clone()?,
            Ok(None) | Err(_) => return Err(Refusal::Failed),
        };
        // Else the last one seen would be kept as long as this receiver.
        drop(rendered);
        if encoding == Encoding::Gzip && rendering.packed.get().is_none() {
            let rendering = Arc::clone(&rendering);
            let packed = tokio::task::spawn_blocking(move || rendering.pack());
            packed.await.map_err(|_| Refusal::Failed)?;
        }
        Ok(Bytes::from_owner(Sending { rendering, encoding }))
    }

    fn join(
        &self,
        key: Key,
        render: impl FnOnce(&mut Snapshot, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Rendered {
        let mut waiting = lock(&self.shared.waiting);
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

impl<Key: PartialEq + Send + Sync + 'static> Shared<Key> {
    async fn render(
        self: Arc<Self>,
        key: Key,
        render: impl FnOnce(&mut Snapshot, &mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<Arc<Rendering>, Refusal> {
        let permit = tokio::time::timeout(self.patience, Arc::clone(&self.bodies).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            self.begin(&key);
            return Err(Refusal::Busy);
        };
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let runtime = Handle::current();
        let rendered = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            self.begin(&key);
            let mut spare = lock(&self.spare);
            let (mut snapshot, mut text) = (take(&mut spare.snapshot), take(&mut spare.text));
            drop(spare);
            text.clear();
            render(&mut snapshot, &mut text)?;
            lock(&self.spare).snapshot = snapshot;
            anyhow::Ok(Rendering {
                text,
                packed: OnceLock::new(),
                spare: Arc::clone(&self.spare),
                runtime,
                _permit: permit,
            })
        });
        match rendered.await.map_err(anyhow::Error::from) {
            Ok(Ok(rendering)) => Ok(Arc::new(rendering)),
            Ok(Err(error)) | Err(error) => {
                error!(%error, "cannot render an answer");
                Err(Refusal::Failed)
            }
        }
    }

    /// From now on who asks for the same gets the next one.
    fn begin(&self, key: &Key) {
        lock(&self.waiting).retain(|(other, _)| other != key);
    }
}

/// A text, and packed if anyone asks for that, until the last reader has it.
struct Rendering {
    text: Vec<u8>,
    packed: OnceLock<Vec<u8>>,
    spare: Arc<Mutex<Spare>>,
    runtime: Handle,
    _permit: OwnedSemaphorePermit,
}

impl Rendering {
    fn pack(&self) {
        self.packed.get_or_init(|| {
            let mut packed = take(&mut lock(&self.spare).packed);
            packed.clear();
            gzip(&self.text, packed)
        });
    }
}

impl Drop for Rendering {
    /// Keeps the buffers for the next one, if that comes soon enough.
    fn drop(&mut self) {
        let mut spare = lock(&self.spare);
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

/// Frees the buffers once nothing was rendered for so long.
async fn free_unused(spare: Weak<Mutex<Spare>>, kept: Duration) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(kept).await;
        let Some(spare) = spare.upgrade() else { return };
        let mut spare = lock(&spare);
        if spare.n_kept == seen {
            *spare = Spare {
                kept,
                ..Spare::default()
            };
            return;
        }
        seen = spare.n_kept;
    }
}

/// One reader's hold on a rendering.
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
