//! Memory bounds from the settings, which add up. They are logged at the start and printed by `abgauge check`.

use std::fmt;

use abgauge_core::engine::View;
use abgauge_core::engine::window::Cell;
use abgauge_core::ledger::{FrequentUsers, N_BUCKETS, RefusedCounts, USER_BYTES};
use abgauge_core::looks;
use abgauge_core::metrics::Ranking;
use tracing::info;

use crate::settings::{Config, N_CELLS};
use crate::stream::kafka::consumer::queued_bytes;

/// Refused lists and frequent users of one arm of one partition in one epoch, in bytes.
const OF_CHECKS: u64 = RefusedCounts::MAX_BYTES + FrequentUsers::MAX_BYTES;

/// Bounds on memory, in bytes. Program, buffers of a scrape and the space between allocations come on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBounds {
    /// Open lists and kept clicks, all partitions together.
    state: u64,
    /// Settled numbers that wait to be stored; 0 without `[state]`.
    unsealed: u64,
    /// Shown items; 0 without coverage.
    coverage: u64,
    /// Sums by user, and users seen; 0 if no experiment is configured.
    statistics: u64,
    /// Records that are fetched but not read, in all queues.
    fetched: u64,
    /// Windows of one arm of one partition.
    arm: u64,
    /// The same in the view of all partitions; `None` if it is not shown.
    global_arm: Option<u64>,
    /// A copy of the sums of one arm, all partitions together: kept while the page is open somewhere.
    followed_arm: u64,
    /// Columns of the sums by user.
    user_columns: usize,
    /// The window of experiments, if one has intervals.
    window: Option<looks::CellWindow>,
    max_arms: u32,
}

impl MemoryBounds {
    pub fn of(config: &Config) -> MemoryBounds {
        let ranking = Ranking::new(&config.measures);
        let has_coverage = ranking.coverage().is_some();
        let n_cells = config.windows.len() as u64 * N_CELLS.unsigned_abs();
        let columns = ranking.width() as u64;
        // A cell has a number and its columns.
        let of_cell = size_of::<(i64, Cell)>() as u64 + columns * size_of::<i64>() as u64;
        let sums = (config.windows.len() as u64 + 1) * columns * size_of::<i128>() as u64;
        let of_view = n_cells * of_cell + sums;
        MemoryBounds {
            state: config.limits.max_state_bytes,
            unsealed: match config.state {
                Some(_) => config.limits.max_unsealed_bytes(),
                None => 0,
            },
            coverage: if has_coverage {
                // The global view has a board of its own, with the same bound.
                (1 + u64::from(config.global)) * config.limits.max_coverage_bytes
            } else {
                0
            },
            statistics: if config.experiments.is_empty() {
                0
            } else {
                config.limits.max_statistics_bytes
            },
            fetched: queued_bytes(&config.kafka, config.ingest.n_workers()),
            arm: View::BOTH.len() as u64 * of_view,
            global_arm: config.global.then_some(of_view),
            followed_arm: View::BOTH.len() as u64 * sums,
            // Lists with a click are one more column than the ranking has.
            user_columns: ranking.width() + 1,
            window: config.look_window(),
            max_arms: config.limits.max_arms,
        }
    }
}

impl MemoryBounds {
    /// Returns the part that does not depend on the number of arms.
    fn fixed(&self) -> u64 {
        self.state + self.unsealed + self.coverage + self.statistics + self.fetched
    }

    /// Sums by user of one arm of one partition in one epoch, if every bucket has a list, and its refused lists and frequent
    /// users.
    fn epoch(&self) -> u64 {
        N_BUCKETS as u64 * looks::row_bytes(self.user_columns) + OF_CHECKS
    }

    /// Returns the sums of users of one arm of one partition in the cells of the window; 0 if no experiment has intervals.
    fn window(&self) -> u64 {
        let window = self.window.as_ref();
        window.map_or(0, |window| {
            looks::max_window_bytes(window.n_cells, self.user_columns)
        })
    }

    /// Returns the sum in words.
    pub fn sum(&self) -> String {
        format!(
            "memory is bounded to {} MiB, and {} KiB for each arm of a partition",
            mib(self.fixed()),
            kib(self.arm)
        )
    }

    /// Logs the bounds in one line, each as a field.
    pub fn log(&self) {
        info!(
            fixed_mib = mib(self.fixed()),
            state_mib = mib(self.state),
            unsealed_mib = mib(self.unsealed),
            coverage_mib = mib(self.coverage),
            statistics_mib = mib(self.statistics),
            fetched_mib = mib(self.fetched),
            arm_kib = kib(self.arm),
            followed_arm_kib = kib(self.followed_arm),
            epoch_kib = kib(self.epoch()),
            window_kib = kib(self.window()),
            max_arms = self.max_arms,
            "memory is bounded"
        );
    }
}

/// Prints the sum and its parts, one per line.
impl fmt::Display for MemoryBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.sum())?;
        writeln!(
            f,
            "{} MiB of open lists and clicks (limits.max_state)",
            mib(self.state)
        )?;
        if self.unsealed > 0 {
            writeln!(
                f,
                "{} MiB of final counts that wait to be stored (limits.max_state / 8)",
                mib(self.unsealed)
            )?;
        }
        writeln!(
            f,
            "{} MiB of shown items (limits.max_coverage)",
            mib(self.coverage)
        )?;
        writeln!(
            f,
            "{} MiB of sums by user, and of seen users (limits.max_statistics)",
            mib(self.statistics)
        )?;
        writeln!(
            f,
            "{} MiB of fetched records (queued.max.messages.kbytes)",
            mib(self.fetched)
        )?;
        writeln!(
            f,
            "up to {} arms of a partition (limits.max_arms); {} KiB more for each arm while the page is open somewhere",
            self.max_arms,
            kib(self.followed_arm)
        )?;
        if let Some(global_arm) = self.global_arm {
            writeln!(
                f,
                "{} KiB for each arm of every partition, on any instance, with its stored state ([global]); limits.max_coverage twice",
                kib(global_arm)
            )?;
        }
        write!(
            f,
            "statistics: {} KiB for each arm and epoch of an experiment in a partition ({N_BUCKETS} buckets x {} columns x {} bytes, \
             an index, and {} KiB of refused lists and frequent users), and up to {} bytes for each user",
            kib(self.epoch()),
            self.user_columns,
            size_of::<i64>(),
            kib(OF_CHECKS),
            USER_BYTES
        )?;
        if let Some(window) = &self.window {
            write!(
                f,
                "; up to {} KiB for each arm of an experiment in a partition in the window {} ({} cells x {N_BUCKETS} buckets x {} \
                 columns, packed), which are dropped first",
                kib(self.window()),
                window.name,
                window.n_cells,
                self.user_columns
            )?;
        }
        Ok(())
    }
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn kib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    /// The bounds under these settings, with so many workers.
    fn bounds(settings: &[(&str, &str)], n_workers: usize) -> MemoryBounds {
        let n_workers = n_workers.to_string();
        let common = [
            ("KAFKA__BROKERS", "localhost:9092"),
            ("INGEST__WORKERS", &n_workers),
        ];
        let settings = common.iter().chain(settings);
        let settings = settings.map(|(name, value)| (format!("ABGAUGE_{name}"), (*value).to_owned()));
        let config = settings::load(None, settings).unwrap();
        MemoryBounds::of(&config)
    }

    #[test]
    fn the_bounds_follow_the_settings_and_add_up() {
        let one = bounds(&[("LIMITS__MAX_STATE", "1GiB")], 1);
        let two = bounds(&[("LIMITS__MAX_STATE", "1GiB")], 2);
        assert_eq!((one.state, one.coverage), (1 << 30, 0));
        assert_eq!(one.fetched, (64 << 20) + 20_000 * 400);
        assert_eq!(
            two.fetched,
            (64 << 20) + 2 * 20_000 * 400,
            "payloads share one bound"
        );
        let text = one.to_string();
        assert!(
            text.starts_with("memory is bounded to 1096 MiB, ") && text.contains("\n1024 MiB of"),
            "{text}"
        );
        let set = bounds(&[("KAFKA__PROPERTIES__QUEUED_MAX_MESSAGES_KBYTES", "1024")], 3);
        assert_eq!(
            set.fetched,
            3 * ((1 << 20) + 20_000 * 400),
            "each queue has what the operator says"
        );
    }

    #[test]
    fn unstored_data_may_take_an_eighth_of_the_bound_on_state() {
        let size = ("LIMITS__MAX_STATE", "1GiB");
        let [none, stored] = [vec![size], vec![size, ("STATE__TOPIC", "kept")]].map(|with| bounds(&with, 1));
        assert_eq!([none.unsealed, stored.unsealed], [0, 128 << 20]);
        assert_eq!(stored.fixed() - none.fixed(), 128 << 20);
        let line = "\n128 MiB of final counts that wait to be stored (limits.max_state / 8)\n";
        let [without, with] = [none, stored].map(|bounds| bounds.to_string());
        assert!(
            with.contains(line) && !without.contains("wait to be stored"),
            "{with}"
        );
    }

    #[test]
    fn sums_by_user_have_one_column_more_than_the_ranking() {
        let one = bounds(&[("METRICS__METRICS", "hit_rate"), ("METRICS__K", "1")], 1);
        // 256 buckets and 168 hours of refused lists, and 64 places of frequent users.
        let of_checks = 2 * (256 * 16 + 168 * 24) + 64 * 80;
        assert_eq!(one.epoch(), 256 * ((5 + 1) * 8 + 1) + of_checks);
        let reported = "\nstatistics: 34 KiB for each arm and epoch of an experiment in a partition (256 buckets x 6 columns x 8 \
                    bytes, an index, and 21 KiB of refused lists and frequent users), and up to 32 bytes for each user; ";
        assert!(one.to_string().contains(reported), "{one}");
    }

    #[test]
    fn the_longest_window_of_whole_cells_takes_seven_bytes_per_sum() {
        let bounds = |windows| {
            bounds(
                &[
                    ("METRICS__METRICS", "hit_rate"),
                    ("METRICS__K", "1"),
                    ("METRICS__WINDOWS", windows),
                ],
                1,
            )
        };
        let (hour, minutes) = (bounds("5m, 1h"), bounds("5m"));
        assert_eq!(
            hour.window(),
            6 * (256 * (1 + 6 * 7) + 64 + 4) + 256 * ((5 + 1) * 8 + 1)
        );
        let reported = "; up to 78 KiB for each arm of an experiment in a partition in the window 1h (6 cells x 256 buckets x 6 \
                    columns, packed), which are dropped first";
        assert!(hour.to_string().ends_with(reported), "{hour}");
        assert_eq!(minutes.window(), 0);
        assert!(
            minutes.to_string().ends_with("and up to 32 bytes for each user"),
            "{minutes}"
        );
    }

    #[test]
    fn statistics_take_no_memory_without_experiments() {
        let bounds = |text: &str| {
            let text = format!("[kafka]\nbrokers = \"b:1\"\n[limits]\nmax_statistics = \"7MiB\"\n{text}");
            let config = settings::load_text("abgauge.toml", &text, std::iter::empty()).unwrap();
            MemoryBounds::of(&config)
        };
        let [none, one] = ["", "[experiments.a]"].map(bounds);
        assert_eq!([none.statistics, one.statistics], [0, 7 << 20]);
        assert_eq!(one.fixed() - none.fixed(), 7 << 20);
        assert!(one.to_string().contains("\n7 MiB of sums by user"), "{one}");
    }

    #[test]
    fn an_arm_has_two_views_of_sixty_cells_and_two_sums_for_each_column() {
        let windows = ("METRICS__WINDOWS", "5m");
        let few = bounds(
            &[windows, ("METRICS__METRICS", "hit_rate"), ("METRICS__K", "1")],
            1,
        );
        let many = bounds(&[windows], 1);
        let [n_few, n_many] = [&few, &many].map(|bounds| bounds.followed_arm / (2 * 2 * 16));
        assert_eq!([n_few, n_many], [5, 31], "columns: the sums without the cells");
        let arm = |n_columns| 2 * (60 * (32 + 8 * n_columns) + 2 * 16 * n_columns);
        assert_eq!([few.arm, many.arm], [n_few, n_many].map(arm));
    }
}
