//! What the settings allow the daemon to take: the bounds that add up, told in one line at the start and by `abgauge check`.

use std::fmt;

use crate::config::{Config, N_CELLS};
use crate::engine::ranking::Ranking;
use crate::kafka::consumer::queued_bytes;
use crate::snapshot::View;

/// Bounds on memory, in bytes. Program, buffers of a scrape and the space between allocations come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Open lists and kept clicks, all partitions together.
    state: u64,
    /// Shown items; 0 without coverage.
    coverage: u64,
    /// Records that are fetched and not read, all queues together.
    fetched: u64,
    /// Windows of one arm of one partition.
    arm: u64,
    /// A copy of the sums of one arm, all partitions together: kept while anyone follows the page.
    followed_arm: u64,
    max_arms: u32,
}

impl Bounds {
    pub fn of(config: &Config) -> Bounds {
        let ranking = Ranking::new(&config.measures);
        let has_coverage = ranking.coverage().is_some();
        let n_cells = config.windows.len() as u64 * N_CELLS.unsigned_abs();
        let columns = ranking.width() as u64;
        let sums = (config.windows.len() as u64 + 1) * columns * size_of::<i128>() as u64;
        Bounds {
            state: config.limits.max_state_bytes,
            coverage: if has_coverage {
                config.limits.max_coverage_bytes
            } else {
                0
            },
            fetched: queued_bytes(&config.kafka, config.ingest.n_workers()),
            arm: View::BOTH.len() as u64 * (n_cells * columns * size_of::<i64>() as u64 + sums),
            followed_arm: View::BOTH.len() as u64 * sums,
            max_arms: config.limits.max_arms,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let together = self.state + self.coverage + self.fetched;
        write!(
            f,
            "memory is bounded to {} MiB: {} of open lists and clicks (max_state), {} of shown items \
             (max_coverage), {} of fetched records (queued.max.messages.kbytes); and to {} KiB for each arm of a \
             partition, of which there are up to {} (max_arms), with a copy of {} KiB for each arm while anyone \
             follows the page",
            mib(together),
            mib(self.state),
            mib(self.coverage),
            mib(self.fetched),
            self.arm.div_ceil(1 << 10),
            self.max_arms,
            self.followed_arm.div_ceil(1 << 10),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// The bounds under these settings, with so many workers.
    fn bounds(settings: &[(&str, &str)], n_workers: usize) -> Bounds {
        let n_workers = n_workers.to_string();
        let common = [
            ("KAFKA__BROKERS", "localhost:9092"),
            ("INGEST__WORKERS", &n_workers),
        ];
        let settings = common.iter().chain(settings);
        let settings = settings.map(|(name, value)| (format!("ABGAUGE_{name}"), (*value).to_owned()));
        let config = config::load(None, settings).unwrap();
        Bounds::of(&config)
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
            text.starts_with("memory is bounded to 1096 MiB: 1024 of"),
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
    fn an_arm_has_two_views_of_sixty_cells_and_two_sums_for_each_column() {
        let settings = [("METRICS__WINDOWS", "5m")];
        let config_width = |bounds: Bounds| bounds.arm / (2 * (60 * 8 + 2 * 16));
        let few = bounds(
            &[settings[0], ("METRICS__METRICS", "hit_rate"), ("METRICS__K", "1")],
            1,
        );
        let many = bounds(&settings, 1);
        assert_eq!(few.arm % (2 * (60 * 8 + 2 * 16)), 0);
        assert!(config_width(few) < config_width(many));
        let columns = config_width(few);
        assert_eq!(
            few.followed_arm,
            2 * 2 * columns * 16,
            "the sums without the cells"
        );
    }
}
