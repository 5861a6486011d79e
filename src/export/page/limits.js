// From where on a number of the strip is marked: the figures of the alerts in config/prometheus/abgauge.rules.yml, by
// their names. The strip counts from the start on and marks at once; the alerts look at the last minutes, and wait.

export const ABOVE = {
  // Shares: of the records of a topic, of the clicks accepted, of the bound on memory.
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

/** A share of fewer says nothing. */
export const ENOUGH = 1000;
