//! Evaluation of files that are ordered by time, in memory for the lists of an hour instead of all of them.
//!
//! ```text
//! files of lists   ─▶ thread: decode ─▶ batches ─┐  the one that is behind comes next
//! files of clicks  ─▶ thread: decode ─▶ batches ─┴▶ engine ─▶ settled lists ─▶ ledger
//! ```
//! The engine settles lists by the rules of the daemon (docs/rules.md): as soon as neither a copy of a list nor a click on it can
//! come, if no event is older than the newest one by more than a tolerance. By these rules a result does not depend on when a
//! list settles, as long as no event is refused. The first event that is refused, or that may belong to a list of any time because its
//! own time cannot be read, ends the attempt. Then all files are read again, and every list is kept. So disorder costs time, and
//! never changes a value. Standard input and pipes can be read only once, and are not tried.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::{io, mem, thread};

use super::reading::{RecordReader, RecordsRead};
use super::source;
use super::{BATCH, Evaluation, Evaluator, Options, TimeOrder, ranking};
use crate::engine::event::{Batch, Body, Event, Kind, Side};
use crate::engine::outcome::Outcome;

/// Decoded batches that wait for the engine, by stream.
const N_WAITING: usize = 2;
/// Outcomes of events that might have another one if every list is kept.
const REFUSALS: [Outcome; 4] = [
    Outcome::Late,
    Outcome::Future,
    Outcome::AfterSettled,
    Outcome::Shed,
];

/// Progress of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of files read since the last call.
    Read(u64),
    /// Reading starts again with the first file.
    Restart,
}

/// File with the kind of all of its events, if they have only one.
type InputFile = (Option<Kind>, PathBuf);

/// Evaluates files in their order. The numbers are the same as if an [`Evaluator`] reads them.
///
/// # Errors
/// Fails if a file cannot be read to its end: see [`source::read`](super::source::read).
pub fn evaluate_files(
    files: &[InputFile],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> anyhow::Result<Evaluation> {
    if let Some(streams) = streams(files, options) {
        if let Some(evaluation) = in_order(files, &streams, options, progress) {
            return Ok(evaluation);
        }
        progress(Progress::Restart);
    }
    let mut evaluator = Evaluator::new(options);
    for (kind, path) in files {
        evaluator.read_file_of(*kind, path, &|n_bytes| progress(Progress::Read(n_bytes)))?;
    }
    Ok(evaluator.finish())
}

/// Files that follow each other in time.
#[derive(Debug, PartialEq, Eq)]
struct FileStream {
    side: Side,
    /// Indices among all files.
    files: Vec<usize>,
}

/// Returns the streams of files that may be ordered: one of lists and one of clicks, or one of both kinds. `None` if every list
/// has to be kept.
fn streams(files: &[InputFile], options: &Options) -> Option<Vec<FileStream>> {
    // Users are compared at the end, groups hand out clicks at the end, and gathered lists have rules of their own.
    let is_gathered = options
        .shape
        .as_ref()
        .is_some_and(|shape| shape.gather_rules(options.max_items).is_some());
    let is_file = |(_, path): &InputFile| source::is_regular_file(path);
    if options.compare.is_some() || options.by.is_some() || is_gathered || !files.iter().all(is_file) {
        return None;
    }
    let all = 0..files.len();
    if files.len() < 2 {
        let (side, files) = (Side::Served, all.collect());
        return Some(vec![FileStream { side, files }]);
    }
    let heads = files
        .iter()
        .map(|(kind, path)| FileHead::read(*kind, path, options));
    let heads: Vec<FileHead> = heads.collect();
    // A file without an event follows anything.
    let is_of = |file: &usize, kind| heads[*file].kind == Some(kind);
    let is_of_lists = |file: &usize| is_of(file, Kind::Served) || heads[*file] == FileHead::default();
    let lists: Vec<usize> = all.clone().filter(is_of_lists).collect();
    let clicks: Vec<usize> = all.clone().filter(|file| is_of(file, Kind::Click)).collect();
    let has_both = !lists.is_empty() && !clicks.is_empty();
    let streams = match has_both && lists.len() + clicks.len() == files.len() {
        true => vec![(Side::Served, lists), (Side::Clicks, clicks)],
        false => vec![(Side::Served, all.collect())],
    };
    // Parts that do not follow each other are read only once then. Whether they do, the engine finds out.
    let is_ascending = |files: &[usize]| files.iter().filter_map(|file| heads[*file].first_ms).is_sorted();
    let streams = streams.into_iter().map(|(side, files)| {
        let may_be_ordered = is_ascending(&files);
        may_be_ordered.then_some(FileStream { side, files })
    });
    streams.collect()
}

/// First events of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct FileHead {
    /// Kind of the events, if all have the same.
    kind: Option<Kind>,
    /// Time of the first one.
    first_ms: Option<i64>,
}

impl FileHead {
    /// Reads the head of a file. An error is reported later, when the whole file is read.
    fn read(kind: Option<Kind>, path: &Path, options: &Options) -> FileHead {
        let mut reader = RecordReader::new(options, &ranking(options), Side::Served);
        let is_enough = AtomicBool::new(false);
        let watch = |_| fail_if(&is_enough);
        let read = reader.read_file(kind, path, &watch, |reader| {
            is_enough.store(true, Ordering::Relaxed);
            reader.batch.events.truncate(BATCH);
        });
        // It ends with an error if the file is longer than its head.
        drop(read);
        let events = reader.batch.events.iter();
        let mut events = events.filter_map(|event| match &event.body {
            Body::Served(list) => Some((Kind::Served, list.ts_ms)),
            Body::Click(click) | Body::PartialClick(click) => Some((Kind::Click, click.ts_ms)),
            Body::Invalid(..) | Body::Ignored | Body::Skipped => None,
        });
        let Some((first, first_ms)) = events.next() else {
            return FileHead { kind, first_ms: None };
        };
        FileHead {
            kind: events.all(|(kind, _)| kind == first).then_some(first),
            first_ms: Some(first_ms),
        }
    }
}

/// Returns whether an event comes from the stream of its kind.
fn is_of_its_side(event: &Event) -> bool {
    match event.body {
        Body::Served(_) => event.at.side == Side::Served,
        Body::Click(_) | Body::PartialClick(_) => event.at.side == Side::Clicks,
        Body::Invalid(..) | Body::Ignored | Body::Skipped => true,
    }
}

fn fail_if(stop: &AtomicBool) -> io::Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(io::Error::other("reading was stopped")),
        false => Ok(()),
    }
}

/// Evaluates files whose lists can settle as they are read. `None` if they are not ordered, or if one cannot be read: its error
/// is reported when the files are read one after the other.
fn in_order(
    files: &[InputFile],
    streams: &[FileStream],
    options: &Options,
    progress: &(dyn Fn(Progress) + Sync),
) -> Option<Evaluation> {
    let order = match streams.len() {
        1 => TimeOrder::Together,
        _ => TimeOrder::BySide,
    };
    let mut evaluator = Evaluator::for_order(options, order);
    let stop = &AtomicBool::new(false);
    let watch = &|n_bytes| {
        progress(Progress::Read(n_bytes));
        fail_if(stop)
    };
    thread::scope(|scope| {
        let start = |stream| ReadStream::start(scope, stream, files, options, watch);
        let mut streams: Vec<ReadStream> = streams.iter().map(start).collect();
        let is_ordered = evaluator.take_streams(&mut streams);
        // Readers that wait for room in a channel end when it is closed.
        stop.store(!is_ordered, Ordering::Relaxed);
        let readers: Vec<_> = streams.into_iter().map(|stream| stream.reader).collect();
        let read = readers.into_iter().map(|reader| reader.join().ok()?.ok());
        let read: Option<Vec<RecordsRead>> = read.collect();
        let read = read.filter(|_| is_ordered)?;
        evaluator.records.add(read);
        Some(evaluator.finish())
    })
}

/// Stream of batches that a thread decodes.
struct ReadStream<'scope> {
    side: Side,
    reader: ScopedJoinHandle<'scope, anyhow::Result<RecordsRead>>,
    batches: Receiver<Batch>,
    /// Batches that the engine is done with, to be filled again.
    done: Sender<Batch>,
    has_ended: bool,
}

impl<'scope> ReadStream<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        stream: &'env FileStream,
        files: &'env [InputFile],
        options: &'env Options,
        watch: &'env (dyn Fn(u64) -> io::Result<()> + Sync),
    ) -> ReadStream<'scope> {
        let (filled, batches) = sync_channel(N_WAITING);
        let (done, empty) = channel();
        let side = stream.side;
        let reader = scope.spawn(move || {
            let reader = RecordReader::new(options, &ranking(options), side);
            read(reader, stream, files, watch, &filled, &empty)
        });
        ReadStream {
            side,
            reader,
            batches,
            done,
            has_ended: false,
        }
    }
}

/// Reads all files of a stream and sends their events in batches.
fn read(
    mut reader: RecordReader,
    stream: &FileStream,
    files: &[InputFile],
    watch: &dyn Fn(u64) -> io::Result<()>,
    filled: &SyncSender<Batch>,
    empty: &Receiver<Batch>,
) -> anyhow::Result<RecordsRead> {
    // Sending fails if the files are not ordered, and then nothing is read for long.
    let send = |batch: &mut Batch| {
        let next = empty.try_recv().unwrap_or_default();
        drop(filled.send(mem::replace(batch, next)));
    };
    let mut accounts = Vec::new();
    for file in &stream.files {
        let (kind, path) = &files[*file];
        reader.read_file(*kind, path, watch, |reader| {
            if reader.batch.events.len() >= BATCH {
                send(&mut reader.batch);
            }
        })?;
        accounts.push((*file, reader.take_account()));
    }
    send(&mut reader.batch);
    Ok(RecordsRead { reader, accounts })
}

impl Evaluator {
    /// Counts the events of streams, always from the stream that is behind. Returns false at the first event that is out of
    /// order.
    fn take_streams(&mut self, streams: &mut [ReadStream]) -> bool {
        let streams_are_mixed = streams.len() < Side::BOTH.len();
        loop {
            let open = streams.iter_mut().filter(|stream| !stream.has_ended);
            let Some(stream) = open.min_by_key(|stream| self.engine.newest_ms(stream.side)) else {
                return true;
            };
            match stream.batches.recv() {
                Ok(mut batch) => {
                    let is_of_side = streams_are_mixed || batch.events.iter().all(is_of_its_side);
                    if !is_of_side || !batch.unreadable.is_empty() || !self.take_batch(&batch) {
                        return false;
                    }
                    batch.clear();
                    // The reader may have come to its end.
                    drop(stream.done.send(batch));
                }
                Err(_) => stream.has_ended = true,
            }
            // A stream that has ended does not hold the other one up.
            for stream in streams.iter().filter(|stream| stream.has_ended) {
                self.engine.idle(stream.side, None, i64::MAX);
            }
            self.settle_passed();
        }
    }

    /// Counts a batch. Returns false if an event of it is refused.
    fn take_batch(&mut self, batch: &Batch) -> bool {
        self.engine.apply(batch, self.max_state_bytes);
        let counts = self.engine.counts();
        REFUSALS.into_iter().all(|outcome| counts.n_of(outcome) == 0)
    }
}
