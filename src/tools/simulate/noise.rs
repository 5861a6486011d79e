//! Rates of anomalies in simulated traffic.

/// Probability of each anomaly: per list, or per click for repeats.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    pub duplicate_list: f64,
    pub repeated_click: f64,
    pub off_list_click: f64,
    pub orphan_click: f64,
    pub expired_click: f64,
    pub late_list: f64,
    pub fast_clock: f64,
    pub broken: f64,
    pub other_type: f64,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise {
            duplicate_list: 0.02,
            repeated_click: 0.05,
            off_list_click: 0.01,
            orphan_click: 0.005,
            expired_click: 0.005,
            late_list: 0.005,
            fast_clock: 0.002,
            broken: 0.005,
            other_type: 0.002,
        }
    }
}

impl Noise {
    pub const NONE: Noise = Noise {
        duplicate_list: 0.0,
        repeated_click: 0.0,
        off_list_click: 0.0,
        orphan_click: 0.0,
        expired_click: 0.0,
        late_list: 0.0,
        fast_clock: 0.0,
        broken: 0.0,
        other_type: 0.0,
    };
}
