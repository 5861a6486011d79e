//! Row of a series (name, kind, labels, help), and families of the registry that are made from such rows.

use std::borrow::Cow;
use std::fmt;
use std::sync::Once;

use prometheus::core::{Atomic, Collector, GenericCounterVec, GenericGaugeVec, MetricVec, MetricVecBuilder};
use prometheus::{GaugeVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// Family of series that `/metrics` may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub help: &'static str,
    pub labels: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
}

impl Series {
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Series {
        Series {
            name: Cow::Borrowed(name),
            kind: Kind::Gauge,
            help,
            labels,
        }
    }

    pub const fn counter(name: &'static str, help: &'static str) -> Series {
        Series {
            name: Cow::Borrowed(name),
            kind: Kind::Counter,
            help,
            labels: &[],
        }
    }
}

/// Line of tests/data/exported-names.tsv: name, kind, labels.
impl fmt::Display for Series {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        write!(to, "{}\t{kind}\t{}", self.name, self.labels.join(","))
    }
}

/// Collector that a row can describe.
pub(super) trait Family {
    const KIND: Kind;

    /// Registers the collector that this row describes.
    fn register(registry: &Registry, row: &Series) -> Self;
}

/// Declares a table of series and the struct of their collectors, one row for both. The type of a row gives its kind.
macro_rules! families {
    (
        $(#[$doc:meta])*
        pub struct $Families:ident;
        const $ROWS:ident;
        $($field:ident: $Type:ty = $name:literal [$($label:literal),*] $help:literal;)*
    ) => {
        $(#[$doc])*
        pub struct $Families {
            $(pub $field: $Type,)*
        }

        pub const $ROWS: &[Series] = &[
            $(Series {
                name: std::borrow::Cow::Borrowed($name),
                kind: <$Type as Family>::KIND,
                help: $help,
                labels: &[$($label),*],
            },)*
        ];

        impl $Families {
            /// Registers the families of the table.
            pub fn new(registry: &Registry) -> $Families {
                let mut rows = $ROWS.iter();
                $Families {
                    $($field: Family::register(registry, rows.next().expect("a row for each field")),)*
                }
            }
        }
    };
}
pub(super) use families;

/// Gauge without a series until its value is known.
pub(super) struct OptionalGauge(GaugeVec);

/// Counters that are not exported until they are shown.
pub(super) struct LaterCounters {
    pub family: IntCounterVec,
    registry: Registry,
    shown: Once,
}

const NO_LABELS: [&str; 0] = [];

impl OptionalGauge {
    pub fn set(&self, value: Option<f64>) {
        set(&self.0, &NO_LABELS, value);
    }
}

impl LaterCounters {
    /// Exports the counters from now on.
    pub fn show(&self) {
        self.shown.call_once(|| {
            register(&self.registry, self.family.clone());
        });
    }
}

impl Family for IntCounter {
    const KIND: Kind = Kind::Counter;

    fn register(registry: &Registry, row: &Series) -> IntCounter {
        register(registry, IntCounter::with_opts(opts(row)).expect(VALID))
    }
}

impl Family for IntGauge {
    const KIND: Kind = Kind::Gauge;

    fn register(registry: &Registry, row: &Series) -> IntGauge {
        register(registry, IntGauge::with_opts(opts(row)).expect(VALID))
    }
}

impl<P: Atomic + 'static> Family for GenericCounterVec<P> {
    const KIND: Kind = Kind::Counter;

    fn register(registry: &Registry, row: &Series) -> Self {
        register(
            registry,
            GenericCounterVec::new(opts(row), row.labels).expect(VALID),
        )
    }
}

impl<P: Atomic + 'static> Family for GenericGaugeVec<P> {
    const KIND: Kind = Kind::Gauge;

    fn register(registry: &Registry, row: &Series) -> Self {
        register(
            registry,
            GenericGaugeVec::new(opts(row), row.labels).expect(VALID),
        )
    }
}

impl Family for OptionalGauge {
    const KIND: Kind = Kind::Gauge;

    fn register(registry: &Registry, row: &Series) -> OptionalGauge {
        OptionalGauge(Family::register(registry, row))
    }
}

impl Family for LaterCounters {
    const KIND: Kind = Kind::Counter;

    fn register(registry: &Registry, row: &Series) -> LaterCounters {
        LaterCounters {
            family: IntCounterVec::new(opts(row), row.labels).expect(VALID),
            registry: registry.clone(),
            shown: Once::new(),
        }
    }
}

const VALID: &str = "names and labels are valid";

fn opts(row: &Series) -> Opts {
    Opts::new(&*row.name, row.help)
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> C {
    registry
        .register(Box::new(collector.clone()))
        .expect("each name is registered once");
    collector
}

/// Sets a gauge. Without a value, it has no series.
pub(super) fn set<P: Atomic + 'static>(family: &GenericGaugeVec<P>, labels: &[&str], value: Option<P::T>) {
    match value {
        Some(value) => family.with_label_values(labels).set(value),
        None => forget(family, labels),
    }
}

/// Removes a series, if it exists.
pub(super) fn forget<B: MetricVecBuilder>(family: &MetricVec<B>, labels: &[&str]) {
    let _ = family.remove_label_values(labels);
}
