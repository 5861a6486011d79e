//! Table of the series about the program: a row gives the field that holds it, its type, name, labels and help.

use prometheus::{GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::series::{Family, LaterCounters, OptionalGauge, Series, families};

families! {
    /// Families of the stream and the process.
    pub struct Families;
    const STREAM;
    records: IntCounterVec = "abgauge_records_total" ["topic", "outcome"]
        "Records read, by outcome.";
    events: LaterCounters = "abgauge_events_total" ["topic", "outcome"]
        "Events read, by outcome. Exported once a record has several events.";
    invalid: IntCounterVec = "abgauge_invalid_records_total" ["topic", "reason"]
        "Records that could not be decoded, by the first reason that applies.";
    excess: IntGaugeVec = "abgauge_share_exceeded" ["topic", "of"]
        "1 while the recent share of invalid, late, future or duplicate records, or of unmatched clicks, exceeds its setting in [limits], else 0.";
    float_times: IntGaugeVec = "abgauge_float_times" ["topic"]
        "1 while most recent event times of a topic are multiples of 131,072 ms, like 32-bit floats, else 0.";
    click_results: IntCounterVec = "abgauge_click_results_total" ["result"]
        "Accepted clicks, by result.";
    conflicting_lists: IntCounter = "abgauge_conflicting_lists_total" []
        "Copies of a list that show other items or arms than the list that counts.";
    repeated_items: IntCounter = "abgauge_repeated_items_total" []
        "Positions of accepted lists that repeat an item from a higher rank.";
    skipped_elements: IntCounter = "abgauge_skipped_elements_total" []
        "Elements of lists that are not items and were skipped because of events.served.skip_others.";
    bad_arms: IntCounterVec = "abgauge_bad_arms_total" ["experiment"]
        "Lists left out of this experiment because their arm is invalid.";
    log_lines_lost: IntCounter = "abgauge_log_lines_lost_total" []
        "Log lines that could not be written to standard error.";
    shared_id_lists: IntCounter = "abgauge_shared_id_lists_total" []
        "Lists that share their request id with very many others. Their producer does not give each list an id of its own.";
    cut_clicks: IntCounter = "abgauge_clicks_cut_total" []
        "Clicks that match more lists than join.max_lists_per_click. Each counts only for the lists with the lowest offsets.";
    key_findings: IntCounterVec = "abgauge_key_findings_total" ["topic", "finding"]
        "Sampled records by the one partitioner that puts their key into their partition: `foreign` if none does, `null` without a key. Keys that several partitioners put there are not counted.";
    rebalances: IntCounter = "abgauge_rebalances_total" []
        "Changes in the set of assigned partitions.";
    pair_restarts: IntCounter = "abgauge_pair_restarts_total" []
        "Pairs of partitions rebuilt because their position was no longer in the log.";
    clicks_waiting: IntGauge = "abgauge_clicks_waiting" []
        "Accepted clicks waiting for their list.";
    lag: IntGaugeVec = "abgauge_consumer_lag_records" ["topic", "partition"]
        "Records between the read position and the end of the log.";
    held: IntGaugeVec = "abgauge_partition_held" ["topic", "partition"]
        "1 while a partition cannot advance because a batch is unreadable or a schema is not known yet, else 0.";
    watermark_delay: GaugeVec = "abgauge_watermark_delay_seconds" ["topic", "partition"]
        "How far the watermark of a partition is behind the live end, in event time.";
    event_ahead: GaugeVec = "abgauge_event_ahead_seconds" ["topic", "partition"]
        "How far the newest event of a partition is ahead of the clock. Shown only beyond join.lateness, when later events become late.";
    open_transaction_since: GaugeVec = "abgauge_open_transaction_since_timestamp_seconds" ["topic", "partition"]
        "Time since which an open transaction has been blocking a partition.";
    settle_delay: OptionalGauge = "abgauge_settle_delay_seconds" []
        "How much later than attribution + lateness lists become final, in event time, for the slowest pair.";
    frontier: GaugeVec = "abgauge_frontier_timestamp_seconds" ["partition", "scope"]
        "Event time before which everything is final; in the scope global, final and stored.";
    global_behind: OptionalGauge = "abgauge_global_behind_seconds" []
        "Seconds since the state topic was last read to its end, for the slowest partition.";
    open_lists: IntGauge = "abgauge_open_lists" []
        "Served lists whose attribution window is still open.";
    state_bytes: IntGauge = "abgauge_state_bytes" []
        "Memory used by open lists and waiting clicks.";
    state_max_bytes: OptionalGauge = "abgauge_state_max_bytes" []
        "Bound on abgauge_state_bytes (limits.max_state). Records are shed beyond it.";
    partitions_owned: IntGauge = "abgauge_partitions_owned" []
        "Pairs of partitions assigned to this process.";
    catalog_items: OptionalGauge = "abgauge_catalog_items" []
        "Items of the catalogue in use.";
    catalog_loaded: OptionalGauge = "abgauge_catalog_loaded_timestamp_seconds" []
        "When the catalogue in use was loaded.";
    catalog_reload_failed: OptionalGauge = "abgauge_catalog_reload_failed" []
        "1 if the last catalogue reload failed and the previous catalogue is still in use, else 0.";
    since: OptionalGauge = "abgauge_since_timestamp_seconds" []
        "Event time at which the window since start (total) begins.";
    exact: IntGauge = "abgauge_exact" []
        "1 until a record is shed or skipped, a sum overflows, or too many tallies wait ahead of time; then 0: the numbers are no longer exact.";
    http_certificate_expiry: OptionalGauge = "abgauge_http_certificate_expiry_timestamp_seconds" []
        "When the certificate of the HTTP server expires.";
    http_refused: IntCounterVec = "abgauge_http_refused_total" ["reason"]
        "Requests and connections refused by the HTTP server.";
    webhook_notices: IntCounterVec = "abgauge_webhook_notices_total" ["result"]
        "Attempts to call the webhook about an arm's change of state, by result. Failed attempts are retried.";
    webhook_waiting: IntGauge = "abgauge_webhook_waiting" []
        "Arms with a change of state that the webhook has not accepted yet.";
    ready: IntGauge = "abgauge_ready" []
        "1 if restored and caught up, else 0.";
    build_info: IntGaugeVec = "abgauge_build_info" ["version"]
        "Version of this program.";
    page_info: IntGaugeVec = "abgauge_page_info" ["url"]
        "URL of the page (http.public_url).";
    dead_letters: IntCounterVec = "abgauge_dead_letters_total" ["result"]
        "Unreadable records sent to the dead-letter topic, by result.";
}

families! {
    /// Families of stored state, with `[state]` only.
    pub struct StoredFamilies;
    const STORED;
    age: GaugeVec = "abgauge_stored_age_seconds" ["partition"]
        "Time since a stored state of a partition was last confirmed as current, or since the partition was assigned.";
    states: IntCounterVec = "abgauge_stored_states_total" ["partition"]
        "Stored states of a partition that were confirmed as current.";
    superseded: IntCounterVec = "abgauge_stored_superseded_total" ["partition"]
        "Times that another instance claimed the stored state of a partition.";
    bytes_written: IntCounterVec = "abgauge_stored_bytes_written_total" ["partition"]
        "Bytes of keys and values handed over for storing.";
    bytes_read: IntCounterVec = "abgauge_stored_bytes_read_total" ["partition"]
        "Bytes of keys and values read from the state topic.";
    lag: IntGaugeVec = "abgauge_stored_lag_records" ["partition"]
        "Offsets between the read position in the state topic and its end.";
    restoring: IntGaugeVec = "abgauge_stored_restoring" ["partition"]
        "1 while the stored state of a partition is being read, else 0.";
    restore_seconds: GaugeVec = "abgauge_stored_restore_seconds" ["partition"]
        "Time that reading the stored state of a partition took, or has taken so far.";
    restore_read_bytes: IntGaugeVec = "abgauge_stored_restore_read_bytes" ["partition"]
        "Bytes of keys and values read to restore a partition.";
    restore_live_bytes: IntGaugeVec = "abgauge_stored_restore_live_bytes" ["partition"]
        "Bytes of live state within abgauge_stored_restore_read_bytes.";
    caught_up: IntGaugeVec = "abgauge_stored_caught_up" ["partition"]
        "1 once a partition has reached the ends of its topics, here or before, else 0.";
    exact: IntGaugeVec = "abgauge_stored_exact" ["partition"]
        "1 if no record of a partition was ever shed since its stored state began, else 0.";
    whole: IntGaugeVec = "abgauge_stored_whole" ["partition"]
        "1 while the state topic has all of the stored state of a partition, and its settings and rights let abgauge store more, else 0.";
    lost: IntCounterVec = "abgauge_stored_lost_total" ["partition"]
        "How often the state topic had lost some of the stored state of a partition, which was then written again.";
}

/// Series of the operating system's process, which the prometheus crate collects on Linux.
const PROCESS: &[Series] = &[
    Series::counter(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
    ),
    Series::gauge("process_max_fds", &[], "Maximum number of open file descriptors."),
    Series::gauge("process_open_fds", &[], "Number of open file descriptors."),
    Series::gauge(
        "process_resident_memory_bytes",
        &[],
        "Resident memory size in bytes.",
    ),
    Series::gauge(
        "process_start_time_seconds",
        &[],
        "Start time of the process since unix epoch in seconds.",
    ),
    Series::gauge("process_threads", &[], "Number of OS threads in the process."),
    Series::gauge(
        "process_virtual_memory_bytes",
        &[],
        "Virtual memory size in bytes.",
    ),
];

/// Returns all series about the program.
pub fn rows() -> impl Iterator<Item = &'static Series> {
    STREAM.iter().chain(STORED).chain(PROCESS)
}
