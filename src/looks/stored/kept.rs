//! What is kept of an experiment from look to look, as bytes.

use super::AsOfError;
use super::numbers::{float, map, option, read_float, read_map, read_option};
use crate::bytes::{Malformed, Reader, Writer};
use crate::statistics::planned::PlannedEnd;
use crate::statistics::{Interval, Kept, KeptArm, KeptMetric, Known, Progress, State};

/// In the order of their numbers, which never change.
const STATES: [State; 9] = [
    State::NoDecision,
    State::InvalidSrm,
    State::InvalidMultiArm,
    State::InvalidListRatio,
    State::Collecting,
    State::Harm,
    State::Loss,
    State::Win,
    State::NoEffect,
];

pub fn encode(kept: &Kept, to: &mut Writer) {
    let Kept {
        n_looks,
        last_look_ms,
        max_ln_bayes_factor,
        progress: Progress { since_ms, marks },
        arms,
    } = kept;
    to.number(*n_looks);
    to.time(*last_look_ms);
    float(to, *max_ln_bayes_factor);
    to.time(*since_ms);
    to.number(marks.len() as u64);
    for Known { as_of_ms, arms } in marks {
        to.signed((*as_of_ms).into());
        map(to, arms, |to, metrics| map(to, metrics, |to, x| float(to, *x)));
    }
    map(to, arms, |to, arm| encode_arm(arm, to));
}

fn encode_arm(arm: &KeptArm, to: &mut Writer) {
    let KeptArm {
        is_burned_in,
        max_ln_e_list_ratio,
        decided,
        metrics,
    } = arm;
    to.byte(u8::from(*is_burned_in));
    float(to, *max_ln_e_list_ratio);
    let number = decided.and_then(|decided| STATES.iter().position(|state| *state == decided));
    option(to, number.as_ref(), |to, number| to.byte(*number as u8));
    map(to, metrics, |to, metric| encode_metric(metric, to));
}

fn encode_metric(metric: &KeptMetric, to: &mut Writer) {
    let KeptMetric {
        tau,
        max_surprise,
        max_ln_e_harm,
        planned_end,
    } = metric;
    option(to, tau.as_ref(), |to, tau| float(to, *tau));
    float(to, *max_surprise);
    float(to, *max_ln_e_harm);
    option(to, planned_end.as_ref(), |to, end| {
        float(to, end.p);
        for interval in [&end.lift, &end.per_user] {
            option(to, interval.as_ref(), |to, interval| {
                float(to, interval.lower);
                float(to, interval.upper);
            });
        }
    });
}

pub fn decode(from: &mut Reader) -> Result<Kept, AsOfError> {
    Ok(Kept {
        n_looks: from.number()?,
        last_look_ms: from.time()?,
        max_ln_bayes_factor: read_float(from)?,
        progress: Progress {
            since_ms: from.time()?,
            marks: (0..from.length()?)
                .map(|_| decode_known(from))
                .collect::<Result<_, _>>()?,
        },
        arms: read_map(from, decode_arm)?,
    })
}

fn decode_known(from: &mut Reader) -> Result<Known, AsOfError> {
    Ok(Known {
        as_of_ms: from.ms()?,
        arms: read_map(from, |from| read_map(from, read_float))?,
    })
}

fn decode_arm(from: &mut Reader) -> Result<KeptArm, AsOfError> {
    Ok(KeptArm {
        is_burned_in: from.flag()?,
        max_ln_e_list_ratio: read_float(from)?,
        decided: read_option(from, |from| {
            let state = STATES.get(usize::from(from.byte()?)).copied();
            state.ok_or(AsOfError::Malformed(Malformed::Number))
        })?,
        metrics: read_map(from, decode_metric)?,
    })
}

fn decode_metric(from: &mut Reader) -> Result<KeptMetric, AsOfError> {
    let interval = |from: &mut Reader| {
        Ok(Interval {
            lower: read_float(from)?,
            upper: read_float(from)?,
        })
    };
    Ok(KeptMetric {
        tau: read_option(from, read_float)?,
        max_surprise: read_float(from)?,
        max_ln_e_harm: read_float(from)?,
        planned_end: read_option(from, |from| {
            Ok(PlannedEnd {
                p: read_float(from)?,
                lift: read_option(from, interval)?,
                per_user: read_option(from, interval)?,
            })
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(as_of_ms: i64) -> Known {
        let x = [("ctr".to_owned(), 0.5), ("mrr".to_owned(), 2e-9)];
        let arms = [("b".to_owned(), x.into()), ("c".to_owned(), [].into())];
        Known {
            as_of_ms,
            arms: arms.into(),
        }
    }

    /// All that there can be.
    fn kept() -> Kept {
        let interval = Interval {
            lower: -0.25,
            upper: 1e300,
        };
        let metric = KeptMetric {
            tau: Some(0.1),
            max_surprise: 3.5,
            max_ln_e_harm: 0.0,
            planned_end: Some(PlannedEnd {
                p: 0.04,
                lift: Some(interval),
                per_user: None,
            }),
        };
        let arm = |(number, decided): (usize, Option<State>)| {
            let metrics = [
                ("ctr".to_owned(), metric.clone()),
                ("mrr".to_owned(), KeptMetric::default()),
            ];
            let arm = KeptArm {
                is_burned_in: number % 2 == 0,
                max_ln_e_list_ratio: 0.1 * number as f64,
                decided,
                metrics: metrics.into(),
            };
            (format!("arm {number:02}"), arm)
        };
        let decided = STATES.into_iter().map(Some).chain([None]);
        Kept {
            n_looks: 300,
            last_look_ms: Some(1_763_596_800_000),
            max_ln_bayes_factor: 1.0 / 3.0,
            progress: Progress {
                since_ms: Some(-600_000),
                marks: vec![known(86_400_000), known(172_800_000)],
            },
            arms: decided.enumerate().map(arm).collect(),
        }
    }

    fn bytes(kept: &Kept) -> Vec<u8> {
        let mut to = Writer::default();
        encode(kept, &mut to);
        to.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Kept, AsOfError> {
        let mut from = Reader::new(bytes);
        let kept = decode(&mut from)?;
        from.end()?;
        Ok(kept)
    }

    #[test]
    fn what_was_written_is_read() {
        for kept in [kept(), Kept::default()] {
            assert_eq!(read(&bytes(&kept)), Ok(kept));
        }
    }

    #[test]
    fn bytes_that_are_read_are_those_that_would_be_written() {
        let whole = bytes(&kept());
        for at in 0..whole.len() {
            assert!(read(&whole[..at]).is_err(), "cut at {at}");
            for change in [1, 2, 0x40, 0x80, 0xff] {
                let mut other = whole.clone();
                other[at] ^= change;
                if let Ok(kept) = read(&other) {
                    assert_eq!(bytes(&kept), other, "byte {at} ^ {change}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_no_look_can_give_are_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let kept = Kept {
                max_ln_bayes_factor: number,
                ..Kept::default()
            };
            assert_eq!(read(&bytes(&kept)), Err(AsOfError::Malformed(Malformed::Number)));
        }
    }
}
