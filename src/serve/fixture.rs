//! Small board for the tests of the exports.

pub mod looks;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use abgauge_core::metrics::{ListOutcome, Measures, Profile, Ranking};

use super::{About, Exporter};
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource};
use crate::settings::{Access, Export, Http, WindowSpan};
use crate::telemetry::Telemetry;

/// List of five items, clicked at ranks 2 and 5.
pub const HIT: ListOutcome = ListOutcome {
    n_items: 5,
    clicked: &[0b10010],
    n_off_list: 0,
};
/// List of five items without a click.
pub const MISS: ListOutcome = ListOutcome {
    n_items: 5,
    clicked: &[],
    n_off_list: 0,
};
/// List of an arm that had nothing to show.
pub const NOTHING: ListOutcome = ListOutcome {
    n_items: 0,
    clicked: &[],
    n_off_list: 0,
};

pub const NOW_MS: i64 = 1_763_596_800_250;
/// Index of `total`.
pub const TOTAL: usize = 2;

pub fn ks() -> Vec<NonZeroU32> {
    [1, 5].map(|k| NonZeroU32::new(k).unwrap()).to_vec()
}

pub fn ranking() -> Ranking {
    Ranking::new(&Measures {
        metrics: vec!["hit_rate", "ctr", "mrr"],
        ..Measures::usual(&ks())
    })
}

/// Profiles `default` and `rs_metrics`, which ignores lists without a click; with coverage, which has no numerator and
/// denominator.
pub fn two_profiles() -> Ranking {
    let profiles = ["default", "rs_metrics"].map(|name| Profile::named(name).unwrap());
    Ranking::new(&Measures {
        profiles: profiles.to_vec(),
        metrics: vec!["hit_rate", "coverage"],
        catalogue: true,
        ..Measures::usual(&ks())
    })
}

/// Arm `a` of experiment `e`: a hit and a miss, live in every window, which show 3 of 4 items, 1 of them at the first rank.
pub fn arm_of_two_profiles() -> ArmSnapshot {
    let ranking = two_profiles();
    let mut sums = sums_of(&ranking, &[HIT, MISS]);
    let coverage = ranking.coverage().unwrap();
    for (column, seen) in coverage.seen.clone().zip([1, 3, 3]) {
        sums[column] = seen;
    }
    sums[coverage.size] = 4;
    ArmSnapshot {
        sums: [vec![sums; 3], vec![sums_of(&ranking, &[]); 3]],
        ..arm("e", "a", [&[]; 3], [&[]; 3])
    }
}

pub fn windows() -> Vec<WindowSpan> {
    [("5m", 300_000), ("1h", 3_600_000)]
        .map(|(name, span_ms)| WindowSpan {
            name: name.to_owned(),
            span_ms,
        })
        .to_vec()
}

pub fn export() -> Export {
    let texts = |all: [&str; 3]| all.map(str::to_owned).to_vec();
    Export {
        metrics: texts(["hit_rate", "ctr", "mrr"]),
        k: None,
        live: texts(["5m", "1h", "total"]),
        settled: texts(["5m", "1h", "total"]),
        global: texts(["5m", "1h", "total"]),
        numerators: texts(["hit_rate", "ctr", "mrr"]),
        secondary: true,
        max_series: 300_000,
        forget_after_ms: 3_600_000,
    }
}

pub fn sums(lists: &[ListOutcome]) -> Box<[i128]> {
    sums_of(&ranking(), lists)
}

fn sums_of(ranking: &Ranking, lists: &[ListOutcome]) -> Box<[i128]> {
    let mut tally = vec![0; ranking.width()];
    let mut sums = vec![0; ranking.width()];
    for list in lists {
        ranking.contribute(list, &mut tally);
        sums.iter_mut()
            .zip(&tally)
            .for_each(|(sum, term)| *sum += i128::from(*term));
    }
    sums.into()
}

/// Arm with these lists in `5m`, `1h` and `total`, by view.
pub fn arm(
    experiment: &str,
    arm: &str,
    live: [&[ListOutcome]; 3],
    settled: [&[ListOutcome]; 3],
) -> ArmSnapshot {
    ArmSnapshot {
        experiment: experiment.into(),
        arm: arm.into(),
        last_list_ms: NOW_MS,
        sums: [live, settled].map(|view| view.map(sums).to_vec()),
        timelines: None,
    }
}

pub fn snapshot(arms: Vec<ArmSnapshot>) -> Snapshot {
    Snapshot {
        live_end_ms: Some(NOW_MS),
        settled_end_ms: Some(NOW_MS - 1_800_000),
        since_ms: Some(NOW_MS - 7_200_000),
        folded_arms: 0,
        arms_without_coverage: 0,
        arms,
    }
}

/// Exporter of `source` that is ready.
pub fn exporter(source: Arc<dyn SnapshotSource>) -> Exporter {
    let telemetry = Telemetry::new("served", "clicks", "0.1.0");
    telemetry.set_waiting_for(Vec::new());
    Exporter {
        telemetry: Arc::new(telemetry),
        source,
        looks: Arc::default(),
        ranking: ranking(),
        windows: windows(),
        k: ks(),
        controls: BTreeMap::new(),
        experiments: BTreeMap::new(),
        about: About::default(),
        export: export(),
        global: None,
        settle_after_ms: 1_920_000,
        started_ms: NOW_MS - 3_600_000,
    }
}

pub fn http(max_connections: usize) -> Http {
    Http {
        listen: ([127, 0, 0, 1], 0).into(),
        max_connections,
        timeout: Duration::from_millis(300),
        public_url: None,
        hosts: Vec::new(),
        frame_ancestors: Vec::new(),
        tls: None,
        access: Access {
            tokens: Vec::new(),
            tokens_file: None,
            users: Vec::new(),
            users_file: None,
            open_probes: true,
        },
    }
}

/// Runs an asynchronous test to completion on this thread.
pub fn run(claim: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(claim);
}
