//! Reading of records into batches of events, with an account of the lines.

use std::collections::BTreeMap;
use std::io::Read;
use std::{mem, path};

use super::directories;
use super::groups::Groups;
use super::source::{self, EventFields, LongLines, Records, TableRow, Watch};
use super::{Options, UnreadableLines};
use crate::decode::schema::RawRecord;
use crate::decode::shape::{Path, Shape};
use crate::decode::{Decoder, Explained, FurtherFields};
use crate::engine::event::{Batch, Body, Kind, Position, Reason, Served, Side, Unreadable};
use crate::engine::float_times::FloatTimes;
use crate::metrics::Ranking;

/// Maximum number of places reported for each reason of unreadable lines.
const MAX_PLACES: usize = 3;

/// Decodes records into a batch, and accounts for them.
pub(super) struct RecordReader {
    /// Shape of events; `None`: our own.
    shape: Option<Shape>,
    /// Decoder of events in that shape.
    decoder: Decoder,
    /// Selection and groups of lists; `None` if all of them count together.
    pub further: Option<Further>,
    /// Side of all events.
    side: Side,
    n_lines: i64,
    pub batch: Batch,
    pub account: LineAccount,
}

/// Records of a stream that were read to the end.
pub(super) struct RecordsRead {
    pub reader: RecordReader,
    /// Accounts of the files, each with its index among all files.
    pub accounts: Vec<(usize, LineAccount)>,
}

/// Account of the lines of one or several files.
#[derive(Debug, Default)]
pub(super) struct LineAccount {
    pub n_lists: u64,
    /// Times of the first list and of the last one, epoch ms.
    pub served_ms: Option<(i64, i64)>,
    pub n_lists_without_arm: u64,
    pub n_refused_clicks: u64,
    /// Refused lists by reason.
    pub refused_lists: BTreeMap<Reason, u64>,
    /// Statistics on the times of lists.
    pub float_times: FloatTimes,
    pub unreadable: BTreeMap<Reason, UnreadableLines>,
    /// Warnings of lines that were too long to be read, by file.
    pub long_lines: Vec<String>,
}

impl LineAccount {
    /// Adds the account of later files.
    pub fn add(&mut self, later: LineAccount) {
        self.n_lists += later.n_lists;
        self.n_lists_without_arm += later.n_lists_without_arm;
        self.n_refused_clicks += later.n_refused_clicks;
        for (reason, n) in later.refused_lists {
            *self.refused_lists.entry(reason).or_default() += n;
        }
        self.float_times.add(later.float_times);
        if let Some(served_ms) = later.served_ms {
            self.see_lists(served_ms);
        }
        for (reason, lines) in later.unreadable {
            let unreadable = self.unreadable.entry(reason).or_default();
            unreadable.n += lines.n;
            let n_left = MAX_PLACES - unreadable.places.len();
            unreadable.places.extend(lines.places.into_iter().take(n_left));
        }
        self.long_lines.extend(later.long_lines);
    }

    fn see_list(&mut self, list: &Served) {
        self.n_lists += 1;
        self.see_lists((list.ts_ms, list.ts_ms));
        self.n_lists_without_arm += u64::from(list.arms.is_empty());
        self.float_times.see(list.ts_ms);
    }

    fn see_lists(&mut self, (from_ms, to_ms): (i64, i64)) {
        let (first_ms, last_ms) = self.served_ms.unwrap_or((from_ms, to_ms));
        self.served_ms = Some((first_ms.min(from_ms), last_ms.max(to_ms)));
    }

    pub fn note_long_lines(&mut self, name: &str, long: &LongLines) {
        if !long.is_empty() {
            self.long_lines.push(format!("{name}: {long}"));
        }
    }
}

impl RecordReader {
    pub fn new(options: &Options, ranking: &Ranking, side: Side) -> RecordReader {
        let decoder = options.decoder().reading(options.shape.as_ref());
        RecordReader {
            shape: options.shape.clone(),
            // Only comparisons count users.
            decoder: match options.compare {
                Some(_) => decoder,
                None => decoder.without_user_hashes(),
            },
            further: Further::new(options, ranking),
            side,
            n_lines: 0,
            batch: Batch::default(),
            account: LineAccount::default(),
        }
    }

    /// Reads the records of a file, all of them of `kind` if there is one. Calls `after` after each.
    ///
    /// # Errors
    /// Fails like [`source::read_while`].
    pub fn read_file(
        &mut self,
        kind: Option<Kind>,
        path: &path::Path,
        watch: &Watch,
        after: impl FnMut(&mut RecordReader),
    ) -> anyhow::Result<()> {
        let name = source::name(path);
        let (shape, further) = (self.shape.clone(), self.further_paths());
        if let Some(further) = &mut self.further {
            further.enter(path);
        }
        let fields = EventFields {
            shape: shape.as_ref(),
            kind,
            further: &further,
            ..EventFields::default()
        };
        let mut records = FileRecords {
            reader: &mut *self,
            kind,
            name: &name,
            after,
        };
        let long = source::read_while(path, &fields, watch, &mut records)?;
        self.account.note_long_lines(&name, &long);
        Ok(())
    }

    /// Reads the records of a stream.
    ///
    /// # Errors
    /// Fails like [`source::read_stream`].
    pub fn read_stream(
        &mut self,
        name: &str,
        input: impl Read,
        mut after: impl FnMut(&mut RecordReader),
    ) -> anyhow::Result<()> {
        let (shape, further) = (self.shape.clone(), self.further_paths());
        let fields = EventFields {
            shape: shape.as_ref(),
            further: &further,
            ..EventFields::default()
        };
        let long = source::read_stream(input, &fields, |number, record| {
            self.read(record, None, name, number);
            after(self);
        })?;
        self.account.note_long_lines(name, &long);
        Ok(())
    }

    /// Returns the paths that are read in addition to the shape's.
    fn further_paths(&self) -> Vec<Path> {
        self.further
            .as_ref()
            .map_or(Vec::new(), |further| further.paths.clone())
    }

    /// Reads a record into the batch. Messages name its place as `name` and `number`.
    pub fn read(&mut self, record: RawRecord, kind: Option<Kind>, name: &str, number: u64) {
        let at = self.position();
        self.n_lines += 1;
        let start = self.batch.events.len();
        match &mut self.further {
            None => self.decoder.decode_raw(record, kind, at, &mut self.batch),
            Some(further) => further.decode(&self.decoder, record, kind, at, &mut self.batch),
        }
        let account = &mut self.account;
        for event in &self.batch.events[start..] {
            match &event.body {
                Body::Invalid(reason, _) => {
                    match kind_of_refused(record, kind, &self.decoder) {
                        Some(Kind::Served) => *account.refused_lists.entry(*reason).or_default() += 1,
                        Some(Kind::Click) => account.n_refused_clicks += 1,
                        None => {}
                    }
                    let unreadable = account.unreadable.entry(*reason).or_default();
                    unreadable.n += 1;
                    if unreadable.places.len() < MAX_PLACES {
                        unreadable.places.push(format!("{name}:{number}"));
                    }
                }
                Body::Served(list) => account.see_list(list),
                Body::Click(_) | Body::PartialClick(_) | Body::Ignored | Body::Skipped => {}
            }
        }
    }

    /// Reads a row of a table into the batch. Returns false if it must be read as a record.
    fn read_row(&mut self, row: &mut dyn TableRow, kind: Option<Kind>) -> bool {
        // The fields that select lists are found in records only.
        let at = self.position();
        if self.further.is_some() || !row.decode(&self.decoder, kind, at, &mut self.batch) {
            return false;
        }
        self.n_lines += 1;
        if let Some(Body::Served(list)) = self.batch.events.last().map(|event| &event.body) {
            self.account.see_list(list);
        }
        true
    }

    /// Returns the position of the next record.
    fn position(&self) -> Position {
        Position {
            side: self.side,
            offset: self.n_lines,
            record_ts_ms: i64::MAX,
        }
    }

    /// Adds the records of several streams. Accounts are added in the order in which the files were named.
    pub fn add(&mut self, streams: Vec<RecordsRead>) {
        let mut accounts = Vec::new();
        for RecordsRead {
            reader,
            accounts: more,
        } in streams
        {
            accounts.extend(more);
            if let Some((ours, theirs)) = self.further.as_mut().zip(reader.further) {
                ours.n_unselected += theirs.n_unselected;
                ours.n_unselected_clicks += theirs.n_unselected_clicks;
                for (filter, found) in ours.filters.iter_mut().zip(theirs.filters) {
                    filter.find(found.found.as_ref());
                }
            }
        }
        accounts.sort_by_key(|(file, _)| *file);
        accounts
            .into_iter()
            .for_each(|(_, account)| self.account.add(account));
    }

    /// Takes the account of the lines since it was last taken.
    pub fn take_account(&mut self) -> LineAccount {
        mem::take(&mut self.account)
    }
}

/// Records of a file on their way into a batch.
struct FileRecords<'r, F> {
    reader: &'r mut RecordReader,
    kind: Option<Kind>,
    name: &'r str,
    /// Called after each record.
    after: F,
}

impl<F: FnMut(&mut RecordReader)> Records for FileRecords<'_, F> {
    fn record(&mut self, number: u64, record: RawRecord) {
        self.reader.read(record, self.kind, self.name, number);
        (self.after)(self.reader);
    }

    fn row(&mut self, _: u64, row: &mut dyn TableRow) -> bool {
        let is_read = self.reader.read_row(row, self.kind);
        if is_read {
            (self.after)(self.reader);
        }
        is_read
    }
}

/// Required text of a field.
pub struct Filter {
    pub field: String,
    pub wanted: String,
    /// Text of the field in a list that was not selected, preferably different from the required one.
    pub found: Option<String>,
}

impl Filter {
    fn new((field, wanted): &(Path, String)) -> Filter {
        Filter {
            field: field.to_string(),
            wanted: wanted.clone(),
            found: None,
        }
    }

    fn find(&mut self, text: Option<&String>) {
        let is_another = self.found.as_ref().is_some_and(|found| *found != self.wanted);
        if let Some(text) = text.filter(|_| !is_another) {
            self.found = Some(text.clone());
        }
    }
}

/// Fields that select and group lists.
pub(super) struct Further {
    /// Paths of the filters, then the path of the groups.
    paths: Vec<Path>,
    /// Value of each path in the names of the directories around the file.
    of_directories: Vec<Option<String>>,
    fields: FurtherFields,
    /// Filters, in the order of their paths.
    pub filters: Vec<Filter>,
    pub groups: Option<Groups>,
    pub n_unselected: u64,
    /// Clicks in lists that were not selected.
    pub n_unselected_clicks: u64,
}

impl Further {
    fn new(options: &Options, ranking: &Ranking) -> Option<Further> {
        let by = options.by.as_ref();
        let paths = options.filters.iter().map(|(path, _)| path);
        let paths: Vec<Path> = paths.chain(by.map(|by| &by.field)).cloned().collect();
        (!paths.is_empty()).then(|| Further {
            fields: FurtherFields::new(&paths),
            of_directories: vec![None; paths.len()],
            paths,
            filters: options.filters.iter().map(Filter::new).collect(),
            groups: by.map(|by| Groups::new(by, options, ranking)),
            n_unselected: 0,
            n_unselected_clicks: 0,
        })
    }

    /// Starts a file.
    fn enter(&mut self, file: &path::Path) {
        let value = |path: &Path| match path.names() {
            [name] => directories::value(file, name),
            _ => None,
        };
        self.of_directories = self.paths.iter().map(value).collect();
    }

    /// Decodes a record. Lists that are not selected become ignored events, and so do the clicks in them.
    fn decode(
        &mut self,
        decoder: &Decoder,
        record: RawRecord,
        kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        let events = decoder.decode_with(&self.fields, record, kind, at, batch);
        for (range, mut texts) in events {
            for (text, of_directory) in texts.iter_mut().zip(&self.of_directories) {
                if text.is_none() {
                    text.clone_from(of_directory);
                }
            }
            let mut of_filters = self.filters.iter().zip(&texts);
            let is_selected = of_filters.all(|(filter, text)| text.as_ref() == Some(&filter.wanted));
            if is_list(batch, range.start) && !is_selected {
                self.n_unselected += 1;
                self.n_unselected_clicks += range.len() as u64 - 1;
                for (filter, text) in self.filters.iter_mut().zip(&texts) {
                    filter.find(text.as_ref());
                }
                batch.events[range]
                    .iter_mut()
                    .for_each(|event| event.body = Body::Ignored);
                continue;
            }
            let Some(groups) = &mut self.groups else {
                continue;
            };
            for event in &batch.events[range] {
                match &event.body {
                    Body::Served(list) => {
                        let value = texts.last().and_then(Option::as_deref);
                        groups.take_list(value, at, list, batch);
                    }
                    Body::Click(_) | Body::PartialClick(_) => groups.take_click(event),
                    Body::Invalid(..) | Body::Ignored | Body::Skipped => {}
                }
            }
        }
    }
}

/// Returns whether an event is a list, readable or not.
fn is_list(batch: &Batch, event: usize) -> bool {
    match batch.events.get(event).map(|event| &event.body) {
        Some(Body::Served(_)) => true,
        Some(Body::Invalid(_, Some(place))) => {
            matches!(batch.unreadable.get(*place as usize), Some(Unreadable::List(_)))
        }
        _ => false,
    }
}

/// Returns the kind of a record that cannot be read, if a field of that kind is the reason. It is slow.
#[cold]
fn kind_of_refused(record: RawRecord, kind: Option<Kind>, decoder: &Decoder) -> Option<Kind> {
    let of_event = |event: &Explained| match event {
        Explained::Refused {
            place: Some(place), ..
        } => match place.setting.split_once('.') {
            Some(("served", _)) => Some(Kind::Served),
            Some(("click", _)) => Some(Kind::Click),
            _ => None,
        },
        _ => None,
    };
    decoder.explain(record, kind).iter().find_map(of_event)
}
