//! A gate in a [proxy](super::proxy) that holds back one of Kafka's requests or its answer, until released or forever.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wait;

pub const PRODUCE: i16 = 0;
pub const LIST_OFFSETS: i16 = 2;
pub const OFFSET_COMMIT: i16 = 8;

/// A request on its way to a broker.
pub struct Request<'a> {
    pub api: i16,
    /// Correlation ID, which the broker repeats in its answer.
    pub correlation: i32,
    /// `client.id`.
    pub client: &'a [u8],
    /// Whole request.
    pub bytes: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses a message. Returns `None` if it is not a Kafka request.
    pub fn read(bytes: &'a [u8]) -> Option<Request<'a>> {
        let (head, rest) = bytes.split_at_checked(10)?;
        let length = i16::from_be_bytes([head[8], head[9]]).max(0);
        Some(Request {
            api: i16::from_be_bytes([head[0], head[1]]),
            correlation: i32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            client: rest.get(..length as usize)?,
            bytes,
        })
    }

    pub fn contains(&self, what: &[u8]) -> bool {
        self.bytes.windows(what.len()).any(|window| window == what)
    }
}

/// Treatment of the caught request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The request is held back before the broker.
    Request,
    /// The broker handles the request, and its answer is held back.
    Answer,
    /// The broker handles the request, but the connection closes without an answer.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Caught,
    Released,
}

type Asked = dyn FnMut(&Request) -> bool + Send;

/// A gate that catches one request.
pub struct Gate {
    pub kept: Kept,
    asked: Mutex<Box<Asked>>,
    stage: Mutex<Stage>,
    turned: Condvar,
}

impl Gate {
    /// Creates a gate that calls `asked` with every request until one is caught.
    pub fn new(kept: Kept, asked: impl FnMut(&Request) -> bool + Send + 'static) -> Arc<Gate> {
        Arc::new(Gate {
            kept,
            asked: Mutex::new(Box::new(asked)),
            stage: Mutex::new(Stage::Open),
            turned: Condvar::new(),
        })
    }

    /// Returns whether this request is caught.
    pub fn catches(&self, request: &Request) -> bool {
        let mut stage = self.stage();
        let is_caught =
            *stage == Stage::Open && (*self.asked.lock().unwrap_or_else(PoisonError::into_inner))(request);
        if is_caught {
            *stage = Stage::Caught;
        }
        is_caught
    }

    /// Blocks until the gate is released.
    pub fn pass(&self) {
        let mut stage = self.stage();
        while *stage != Stage::Released {
            stage = self.turned.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn has_caught(&self) -> bool {
        *self.stage() == Stage::Caught
    }

    #[track_caller]
    pub fn wait_until_caught(&self, what: &str, within: Duration) {
        wait::until(what, within, || self.has_caught().then_some(()));
    }

    /// Stops catching, and releases the caught request.
    pub fn release(&self) {
        *self.stage() = Stage::Released;
        self.turned.notify_all();
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
