//! Contents of a pair's ledger under a configuration.

use abgauge_core::engine::event::Side;
use abgauge_core::ledger::{Keep, KeptAggregates, Span, Users};
use abgauge_core::looks;

use crate::settings::{Config, N_CELLS};

/// Returns what to keep. With `[state]`: what the board shows. For configured experiments: also users, in cells from look to
/// look.
pub fn keep(config: &Config) -> Keep {
    let users = keep_of_users(config);
    if config.state.is_none() {
        return users;
    }
    let windows = config.windows.iter().map(|window| Span {
        cell_ms: window.cell_ms(),
        n_cells: Some(N_CELLS),
        kept: KeptAggregates::ByArm,
    });
    Keep {
        total: Some(KeptAggregates::ByArm),
        starts: config.experiment_starts().into_iter().collect(),
        spans: windows.chain(users.spans).collect(),
        ..users
    }
}

fn keep_of_users(config: &Config) -> Keep {
    if config.experiments.is_empty() {
        return Keep::default();
    }
    let every_ms = looks::every_ms(config.join.slot_ms);
    let experiments = config.experiments.iter();
    let epochs = experiments.map(|(name, asked)| (name.clone(), asked.epochs(every_ms)));
    Keep::of_users(Users::Of(epochs.collect()), every_ms)
}

/// The sides that have a topic of their own.
pub fn sides(config: &Config) -> &'static [Side] {
    match config.kafka.served_topic == config.kafka.clicks_topic {
        true => &[Side::Served],
        false => &Side::BOTH,
    }
}
