// Thresholds above which numbers on the strip are marked, taken from the alerts in config/prometheus/abgauge.rules.yml and
// named after them. The strip counts since the start and marks at once, while alerts look at the last minutes and wait.

export const ABOVE = {
  // Shares: of the records of a topic, of the accepted clicks, of the memory bound.
  AbgaugeInvalidRecords: 0.01,
  AbgaugeLateRecords: 0.01,
  AbgaugeFutureRecords: 0.01,
  AbgaugeRecordsShed: 0,
  AbgaugeUnmatchedClicks: 0.05,
  AbgaugeStateNearBound: 0.8,
  // Seconds of event time.
  AbgaugeSettleDelay: 300,
  AbgaugeNoEvents: 900,
};

/** Minimum count for which a share is meaningful. */
export const ENOUGH = 1000;
