//! Tests of rounds, sharing, and their end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::super::fixture::{self, HIT, arm};
use super::super::view::ViewParameters;
use super::*;
use crate::board::snapshot::{ArmSnapshot, SnapshotSource, Timeline};

const SOON: Duration = Duration::from_millis(5);

/// Source that counts its snapshots and can be set to fail once.
#[derive(Default)]
struct Board {
    n_taken: AtomicUsize,
    fails: AtomicBool,
}

impl SnapshotSource for Board {
    fn snapshot_into(&self, _: Option<usize>, snapshot: &mut Snapshot) {
        assert!(!self.fails.swap(false, Ordering::Relaxed), "out of order");
        self.n_taken.fetch_add(1, Ordering::Relaxed);
        *snapshot = fixture::snapshot(vec![arm("e", "a", [&[HIT]; 3], [&[]; 3])]);
    }

    fn timelines(&self, _: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        arms.iter().map(|_| None).collect()
    }
}

fn run(claim: impl AsyncFnOnce(ViewFeed, Arc<Board>)) {
    let board = Arc::new(Board::default());
    let exporter = fixture::exporter(Arc::clone(&board) as _);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(claim(ViewFeed::with_pause(Arc::new(exporter), SOON), board));
}

fn query(feed: &ViewFeed, window: &str) -> ViewQuery {
    let wanted = ViewParameters {
        window: Some(window.to_owned()),
        ..ViewParameters::default()
    };
    ViewQuery::of(wanted, &feed.shared.exporter)
}

async fn next(watcher: &mut Watcher) -> Result<RenderedView, ViewFailed> {
    loop {
        watcher.changed().await.unwrap();
        if let Some(view) = watcher.borrow_and_update().clone() {
            return view;
        }
    }
}

#[test]
fn watchers_of_the_same_view_share_one_rendering() {
    run(async |feed, board| {
        let (one, other) = (query(&feed, "5m"), query(&feed, "1h"));
        let mut watchers = [&one, &one, &other].map(|query| feed.watch(query));
        let mut views = Vec::new();
        for watcher in &mut watchers {
            views.push(next(watcher).await.unwrap());
        }
        assert_eq!(board.n_taken.load(Ordering::Relaxed), 1, "one snapshot for all");
        assert_eq!(views[0].event().as_ptr(), views[1].event().as_ptr());
        assert_ne!(views[0].json(), views[2].json());
        // A later watcher gets the last rendering at once.
        let late = next(&mut feed.watch(&one)).await.unwrap();
        assert_eq!(late.event().as_ptr(), views[0].event().as_ptr());
    });
}

#[test]
fn a_watcher_between_rounds_gets_the_last_snapshot() {
    run(async |feed, board| {
        let feed = ViewFeed::with_pause(Arc::clone(&feed.shared.exporter), Duration::from_secs(60));
        let mut first = feed.watch(&query(&feed, "5m"));
        let shown = next(&mut first).await.unwrap();
        for window in ["1h", "total"] {
            let view = next(&mut feed.watch(&query(&feed, window))).await.unwrap();
            assert_ne!(view.json(), shown.json());
        }
        assert_eq!(board.n_taken.load(Ordering::Relaxed), 1);
        assert!(
            !first.has_changed().unwrap(),
            "nothing new for who was there before"
        );
    });
}

#[test]
fn rounds_continue_until_the_last_watcher_leaves() {
    run(async |feed, board| {
        let query = query(&feed, "5m");
        let mut watcher = feed.watch(&query);
        for _ in 0..3 {
            next(&mut watcher).await.unwrap();
        }
        assert!(board.n_taken.load(Ordering::Relaxed) >= 3);
        drop(watcher);
        while feed.shared.watched().runs {
            tokio::time::sleep(SOON).await;
        }
        assert!(feed.shared.watched().views.is_empty());
        assert!(next(&mut feed.watch(&query)).await.is_ok(), "they begin again");
    });
}

#[test]
fn a_failed_round_is_reported_and_the_next_one_runs() {
    run(async |feed, board| {
        board.fails.store(true, Ordering::Relaxed);
        let mut watcher = feed.watch(&query(&feed, "5m"));
        assert_eq!(next(&mut watcher).await.map(|_| ()), Err(ViewFailed));
        assert!(next(&mut watcher).await.is_ok());
    });
}

#[test]
fn an_event_is_one_line_of_json() {
    run(async |feed, _| {
        let view = next(&mut feed.watch(&query(&feed, "5m"))).await.unwrap();
        let json = String::from_utf8(view.json().to_vec()).unwrap();
        assert_eq!(view.event(), format!("data: {json}\n\n"));
        assert!(!json.contains('\n') && json.starts_with('{') && json.ends_with('}'));
    });
}
