//! Offsets to resume the logs from, compared with a scan of all accepted events.

use abgauge_core::engine::ResumePoint;
use abgauge_core::engine::event::Side;
use proptest::prelude::*;

use crate::oracle::account::Step;
use crate::oracle::drive::Driver;
use crate::oracle::read::read;
use crate::oracle::world::{Reading, Record, T0, World, any_world, idle_reading};

/// Returns the lowest offset that must be read again, and the number of such events: lists not before `until_ms`, and
/// clicks that may belong to such a list, refused ones apart. With `for_copies`, lists that may still have a copy count, too.
fn scan(
    world: &World,
    history: &[Step],
    side: Side,
    until_ms: i64,
    for_copies: bool,
) -> (Option<ResumePoint>, u64) {
    let read = read(world, history);
    let copies_from_ms = match for_copies {
        true => until_ms.min(read.copies_from_ms(&world.rules)),
        false => until_ms,
    };
    let at = |step: usize, newest_ms| match history[step] {
        Step::Read(Record { at, .. }) => ResumePoint {
            offset: at.offset,
            newest_ms,
        },
        _ => unreachable!("it was accepted"),
    };
    let lists = read.held().into_iter();
    let lists = lists.map(|list| (Side::Served, list.event, at(list.step, list.newest_ms)));
    let skew_ms = world.rules.click_skew_ms;
    let clicks = read.clicks.iter();
    let clicks = clicks.map(|click| {
        let reach_ms = click.event.ts_ms + skew_ms;
        (Side::Clicks, reach_ms, at(click.step, click.newest_ms))
    });
    let open = lists.chain(clicks).filter(|(kind, reach_ms, _)| {
        let from_ms = match kind {
            Side::Served => copies_from_ms,
            Side::Clicks => until_ms,
        };
        *reach_ms >= from_ms && (world.rules.one_topic || *kind == side)
    });
    let open: Vec<ResumePoint> = open.map(|(.., at)| at).collect();
    // Refused clicks are read again too, but are not in the digest.
    let refused = read.refused.iter().filter(|click| {
        let reaches = click.ts_ms + skew_ms >= until_ms.max(read.frontier_at_ms[click.step]);
        reaches && (world.rules.one_topic || side == Side::Clicks)
    });
    let refused = refused.map(|click| at(click.step, click.newest_ms));
    let first = open.iter().copied().chain(refused).min_by_key(|at| at.offset);
    (first, open.len() as u64)
}

/// Reads a world and compares after each batch and each idle move, even if settled lists wait for their visit.
fn follow(world: &World, reading: &Reading, room_bytes: u64) {
    let mut driver = Driver::new(world, room_bytes);
    let records = reading.merge(&world.logs);
    let mut rest = records.as_slice();
    let mut steps = reading.batches.iter().zip(reading.idles.iter().cycle()).cycle();
    let compare = |driver: &Driver| {
        let until_ms = driver.engine.settled_until_ms().unwrap_or(i64::MIN);
        for side in Side::BOTH {
            let expected = |for_copies| scan(world, &driver.history, side, until_ms, for_copies);
            let engine = &driver.engine;
            let found = (engine.resume_point(side), engine.open_digest(side).n);
            assert_eq!(found, expected(false), "{side:?}: {:?}", driver.history);
            let (first, open) = engine.reach_for_copies(side);
            assert_eq!((first, open.n), expected(true), "{side:?}: {:?}", driver.history);
        }
    };
    while !rest.is_empty() {
        let (size, idle) = steps.next().expect("a reading has batches");
        let (batch, later) = rest.split_at(rest.len().min(*size));
        rest = later;
        driver.apply(batch);
        compare(&driver);
        if let Some(idle) = idle {
            driver.idle(idle.side, idle.ahead_ms.map(|ahead_ms| T0 + ahead_ms));
            compare(&driver);
        }
    }
}

proptest! {
    #[test]
    fn a_log_is_reread_from_the_first_unsettled_event(
        (world, reading) in (any_world(), idle_reading())
    ) {
        follow(&world, &reading, u64::MAX);
    }

    /// Records come one at a time, so that it is known which ones were shed.
    #[test]
    fn shed_records_do_not_move_the_reread_position(
        (world, reading) in (any_world(), idle_reading()),
        room_bytes in 0..20_000_u64
    ) {
        // Which gathered lists find no room once they are complete is not known.
        let mut world = world;
        world.rules.gather = None;
        let reading = Reading { batches: vec![1; reading.batches.len()], ..reading };
        follow(&world, &reading, room_bytes);
    }
}
