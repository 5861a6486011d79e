//! Stream of records in the order of their arrival: requests, their clicks, and noise.
//!
//! Noise must not bias. Noise that abgauge refuses or ignores does not change the true values. Noise that it accepts (for
//! example in an `evaluate` without lateness) is drawn from the same model as everything else.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use abgauge_core::engine::event::Side;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::EVENT_TIMES_MS;
use super::draft::{Content, Origin, RecordDraft, RecordKind};
use super::lists;
use super::model::{Model, World};
use super::noise::Noise;
use super::pace::TrafficPace;
use super::random::Random;
use super::record::{Json, Request, SimulatedRecord};
use super::truth::{self, Truth};
use crate::settings::TopicKey;

/// Settings that determine every byte of the traffic.
#[derive(Debug, Clone)]
pub struct TrafficSettings {
    pub seed: u64,
    /// Rate per second of event time, above 0.
    pub lists_per_second: f64,
    /// Event time of the start, Unix ms.
    pub start_ms: i64,
    /// Time during which lists are served. Clicks come up to an attribution window later. `None` has no end.
    pub duration_ms: Option<i64>,
    /// Key of the records.
    pub key: TopicKey,
    /// Writes the type into every record.
    pub with_type: bool,
    /// Attribution window. Genuine clicks come within it, expired ones after it.
    pub attribution_ms: i64,
    /// Lateness, which late lists exceed.
    pub lateness_ms: i64,
    /// Tolerance for clocks ahead, which fast clocks exceed.
    pub max_future_ms: i64,
    pub noise: Noise,
    pub world: World,
    /// Varies the rate with the hour of the day (UTC). `lists_per_second` is then the daily mean.
    pub diurnal: bool,
}

impl TrafficSettings {
    /// Creates settings for endless traffic with the daemon's default settings and default noise.
    pub fn new(seed: u64, lists_per_second: f64, start_ms: i64) -> TrafficSettings {
        TrafficSettings {
            seed,
            lists_per_second,
            start_ms,
            duration_ms: None,
            key: TopicKey::Request,
            with_type: false,
            attribution_ms: 30 * MINUTE_MS,
            lateness_ms: 2 * MINUTE_MS,
            max_future_ms: 30_000,
            noise: Noise::default(),
            world: World::default(),
            diurnal: false,
        }
    }
}

const MINUTE_MS: i64 = 60_000;

/// Quantiles of the time from a list to a click on it (parts of 1000, ms) for an attribution window of 30 min: half within
/// 15 s, a long tail, nothing after 25 min. Interpolated linearly, and scaled for other windows.
const CLICK_DELAYS: [(i64, i64); 9] = [
    (0, 400),
    (100, 2_500),
    (250, 6_000),
    (500, 15_000),
    (750, 45_000),
    (900, 120_000),
    (970, 300_000),
    (995, 720_000),
    (1000, 1_500_000),
];

/// Records in the order of `arrival_ms`, ties in the order of creation. The same settings give the same bytes.
#[derive(Debug)]
pub struct Traffic {
    settings: TrafficSettings,
    model: Model,
    random: Random,
    json: Json,
    n_requests: u64,
    pace: TrafficPace,
    /// Request served last, kept to reuse its memory.
    request: Request,
    /// Records that have not arrived yet, by arrival time and number.
    pending: BTreeMap<(i64, u64), RecordDraft>,
    n_records: u64,
}

impl Traffic {
    pub fn new(settings: TrafficSettings) -> Traffic {
        // Two different runs never share an id.
        let id_prefix = format!(
            "r-{:08x}-",
            xxh3_64_with_seed(&settings.start_ms.to_le_bytes(), settings.seed) as u32
        );
        Traffic {
            model: Model::new(&settings.world, settings.seed),
            random: Random::new(settings.seed),
            json: Json::new(
                settings.with_type,
                settings.key,
                &id_prefix,
                &settings.world.design,
            ),
            n_requests: 0,
            pace: TrafficPace::new(settings.lists_per_second, settings.start_ms, settings.diurnal),
            request: Request::default(),
            pending: BTreeMap::new(),
            n_records: 0,
            settings,
        }
    }

    pub fn settings(&self) -> &TrafficSettings {
        &self.settings
    }

    /// Returns the event time after which no list is served, Unix ms.
    pub fn end_ms(&self) -> Option<i64> {
        Some(self.settings.start_ms + self.settings.duration_ms?)
    }

    /// Returns the limit of each metric of each arm.
    pub fn truth(&self, ks: &[NonZeroU32]) -> Vec<Truth> {
        truth::truth(&self.model, ks)
    }

    /// Returns the time of the next list, or `None` after the last.
    fn next_request_ms(&self) -> Option<i64> {
        let ts_ms = self.pace.next_ms();
        // Endless traffic to a pipe ends with the last valid time.
        let end_ms = self.end_ms().unwrap_or(EVENT_TIMES_MS.end);
        (ts_ms < end_ms).then_some(ts_ms)
    }

    /// Returns the next record that arrives by `until_ms`.
    pub fn next_until(&mut self, until_ms: i64) -> Option<SimulatedRecord> {
        let draft = self.next_draft_until(until_ms)?;
        Some(self.json.record(draft))
    }

    /// Returns the next record that arrives by `until_ms`, before its text is written.
    pub fn next_draft_until(&mut self, until_ms: i64) -> Option<RecordDraft> {
        // No record arrives before its list is served, so the first one is known once the next list is served after it.
        while let Some(ts_ms) = self.next_request_ms()
            && self
                .first_arrival_ms()
                .is_none_or(|arrival_ms| ts_ms <= arrival_ms)
        {
            self.serve(ts_ms);
        }
        let is_due = self.first_arrival_ms()? <= until_ms;
        is_due.then(|| self.pending.pop_first().map(|(_, draft)| draft))?
    }

    fn first_arrival_ms(&self) -> Option<i64> {
        let ((arrival_ms, _), _) = self.pending.first_key_value()?;
        Some(*arrival_ms)
    }

    fn put(&mut self, draft: RecordDraft) {
        self.pending.insert((draft.arrival_ms, self.n_records), draft);
        self.n_records += 1;
    }

    /// Serves one list at `ts_ms` and creates all records that follow from it.
    fn serve(&mut self, ts_ms: i64) {
        self.pace.advance(&mut self.random);
        // Taken out, so that the methods below can borrow the traffic mutably.
        let mut request = std::mem::take(&mut self.request);
        self.draw_request(ts_ms, &mut request);
        if self.random.chance(self.settings.noise.fast_clock) {
            request.clock_ahead_ms = self.settings.max_future_ms + 10 * MINUTE_MS;
        }
        self.emit_list(&request);
        self.emit_clicks(&request);
        self.emit_noise(&request);
        self.request = request;
    }

    fn draw_request(&mut self, ts_ms: i64, request: &mut Request) {
        self.n_requests += 1;
        let (user, visitor) = self.model.draw_user(&mut self.random);
        let n_items = self.settings.world.lengths.draw(&mut self.random);
        request.visitor = visitor;
        request.origin = Origin {
            request: self.n_requests,
            user,
            combination: visitor.combination,
        };
        request.ts_ms = ts_ms;
        request.clock_ahead_ms = 0;
        lists::draw_items(n_items, &mut self.random, &mut request.items);
    }

    /// Draws a request for which no list is sent.
    fn draw_unserved(&mut self, ts_ms: i64) -> Request {
        let mut request = Request::default();
        self.draw_request(ts_ms, &mut request);
        request
    }

    fn emit_list(&mut self, request: &Request) {
        let noise = self.settings.noise;
        let mut arrival_ms = request.ts_ms + network_ms(&mut self.random);
        let mut kind = RecordKind::List;
        if request.clock_ahead_ms > 0 {
            kind = RecordKind::Future;
        } else if self.random.chance(noise.late_list) {
            kind = RecordKind::LateList;
            arrival_ms += self.settings.lateness_ms + self.random.between(MINUTE_MS, 4 * MINUTE_MS);
        }
        // Only a regular list is repeated, because a record has one kind.
        let again = kind == RecordKind::List && self.random.chance(noise.duplicate_list);
        let again_ms = again.then(|| arrival_ms + self.random.between(100, 10_000));
        let draft = RecordDraft {
            arrival_ms,
            side: Side::Served,
            kind,
            origin: request.origin,
            content: Content::List {
                stamp_ms: request.stamp_ms(),
                items: request.items.as_slice().into(),
            },
        };
        if let Some(again_ms) = again_ms {
            self.put(RecordDraft {
                arrival_ms: again_ms,
                kind: RecordKind::DuplicateList,
                ..draft.clone()
            });
        }
        self.put(draft);
    }

    fn emit_clicks(&mut self, request: &Request) {
        let n_items = request.items.len();
        let mut first = 0;
        while let Some(index) = request.visitor.draw_click(first..n_items, &mut self.random) {
            first = index + 1;
            let item = request.items[index];
            let ts_ms = request.ts_ms + self.click_delay_ms();
            self.emit_click(RecordKind::Click, request, ts_ms, item);
            if self.random.chance(self.settings.noise.repeated_click) {
                let again_ms = ts_ms + self.random.between(200, 20_000);
                self.emit_click(RecordKind::RepeatedClick, request, again_ms, item);
            }
        }
    }

    fn emit_noise(&mut self, request: &Request) {
        let noise = self.settings.noise;
        if self.random.chance(noise.off_list_click) {
            let item = lists::foreign_item(&mut self.random);
            let ts_ms = request.ts_ms + self.click_delay_ms();
            self.emit_click(RecordKind::OffListClick, request, ts_ms, item);
        }
        if self.random.chance(noise.expired_click)
            && let Some(&item) = request.items.first()
        {
            let after_ms = self.random.between(1, 10 * MINUTE_MS);
            let ts_ms = request.ts_ms + self.settings.attribution_ms + after_ms;
            self.emit_click(RecordKind::ExpiredClick, request, ts_ms, item);
        }
        if self.random.chance(noise.orphan_click) {
            // Its list is never sent, so the click stays an orphan.
            let unserved = self.draw_unserved(request.ts_ms);
            let kind = RecordKind::OrphanClick;
            self.emit_click(kind, &unserved, unserved.ts_ms, 1);
        }
        if self.random.chance(noise.broken) {
            let unserved = self.draw_unserved(request.ts_ms);
            let payload = self.json.broken(&unserved, &mut self.random);
            let side = Side::BOTH[self.random.below(2) as usize];
            let arrival_ms = request.ts_ms + network_ms(&mut self.random);
            self.put(RecordDraft {
                arrival_ms,
                side,
                kind: RecordKind::Broken,
                origin: unserved.origin,
                content: Content::Text(payload),
            });
        }
        if self.random.chance(noise.other_type) {
            let arrival_ms = request.ts_ms + network_ms(&mut self.random);
            self.put(RecordDraft {
                arrival_ms,
                side: Side::Served,
                kind: RecordKind::OtherType,
                origin: request.origin,
                content: Content::Text(self.json.other_type(request)),
            });
        }
    }

    /// Creates a click at `ts_ms` by a correct clock. Its stamp comes from the clock that stamped its list.
    fn emit_click(&mut self, kind: RecordKind, request: &Request, ts_ms: i64, item: u16) {
        let kind = match request.clock_ahead_ms {
            0 => kind,
            _ => RecordKind::Future,
        };
        let arrival_ms = ts_ms + network_ms(&mut self.random);
        self.put(RecordDraft {
            arrival_ms,
            side: Side::Clicks,
            kind,
            origin: request.origin,
            content: Content::Click {
                stamp_ms: ts_ms + request.clock_ahead_ms,
                item,
            },
        });
    }

    fn click_delay_ms(&mut self) -> i64 {
        // Resolution finer than the table's parts of 1000, by this factor.
        const FINE: i64 = 1_000_000;
        let at = self.random.between(0, 1000 * FINE);
        let bracket = CLICK_DELAYS.windows(2).find(|pair| at < pair[1].0 * FINE);
        let [(low, from_ms), (high, to_ms)] = bracket.map_or([CLICK_DELAYS[8]; 2], |pair| [pair[0], pair[1]]);
        let inside = at - low * FINE;
        let delay_ms = from_ms + (to_ms - from_ms) * inside / ((high - low).max(1) * FINE);
        delay_ms * self.settings.attribution_ms / (30 * MINUTE_MS)
    }
}

/// Draws the delay from an event to its record's arrival, long enough for a click to overtake its list.
fn network_ms(random: &mut Random) -> i64 {
    random.between(20, 3_000)
}

impl Iterator for Traffic {
    type Item = SimulatedRecord;

    fn next(&mut self) -> Option<SimulatedRecord> {
        self.next_until(i64::MAX)
    }
}
