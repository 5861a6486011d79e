//! Catalogue coverage: the share of the catalogue that an arm shows.
//!
//! coverage@k = distinct catalogue items in any top k of the window ÷ items of the catalogue. Distinct counts do not add
//! up, so exports have neither numerator nor denominator; [`crate::engine::coverage`] counts them exactly. Source: Ge,
//! Delgado-Battenfeld and Jannach, Beyond accuracy, RecSys 2010; rs_metrics.

use super::{CatalogueData, Metric, MetricUnit, Ratio, Sum, Term};

pub const COVERAGE: Metric = Metric {
    id: "coverage",
    name: "coverage",
    gauge: "coverage",
    help: "Distinct catalogue items shown in any top k of the window, divided by the size of the catalogue.",
    meaning: "Share of the catalogue that was in any top k of the window. A distinct count: it has no time line.",
    unit: MetricUnit::Share,
    is_usual: false,
    needs: Some(CatalogueData::Items),
    is_additive: false,
    counts_clicks: false,
    is_bounded: |_| true,
    ratio: |_, k| {
        Some(Ratio {
            numerator: Sum::at(Term::Seen, k),
            denominator: Sum::at(Term::CatalogueSize, None),
            factor: 1,
        })
    },
};
