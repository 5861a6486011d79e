//! Codec for the state of an experiment's statistics between two looks.

use super::AsOfError;
use super::numbers::{float, map, option, read_float, read_map, read_option};
use crate::bytes::{Malformed, Reader, Writer};
use crate::statistics::{
    ArmState, DecidedAt, DecidedLook, DecidedMetric, Interval, KeptArm, KeptMetric, Known, TestProgress,
    TestState,
};

/// Form of the stored decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Decisions by an earlier rule, the smallest p of any look. Only their states are kept.
    AnyLook,
    /// Decisions by the p of each decision look, without the time since which they hold.
    EachLook,
    /// The same with that time.
    Since,
}

/// States in the order of their numbers, which never change.
const STATES: [ArmState; 11] = [
    ArmState::NoDecision,
    ArmState::InvalidSrm,
    ArmState::InvalidMultiArm,
    ArmState::InvalidListRatio,
    ArmState::Collecting,
    ArmState::Harm,
    ArmState::Loss,
    ArmState::Win,
    ArmState::NoEffect,
    ArmState::InvalidUsers,
    ArmState::InvalidRefused,
];

pub fn encode(kept: &TestState, to: &mut Writer) {
    let TestState {
        n_looks,
        last_look_ms,
        max_ln_bayes_factor,
        progress: TestProgress { since_ms, marks },
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
    option(to, decided.as_ref(), |to, decided| encode_decided(decided, to));
    map(to, metrics, |to, metric| encode_metric(metric, to));
}

fn encode_decided(decided: &DecidedLook, to: &mut Writer) {
    let DecidedLook {
        state,
        reason,
        at,
        metrics,
    } = decided;
    let number = STATES.iter().position(|known| known == state);
    to.byte(number.map_or(0, |number| number as u8));
    to.text(reason);
    option(to, at.as_ref(), |to, at| {
        let DecidedAt {
            look,
            as_of_ms,
            since_ms,
            day,
            since_day,
            k,
        } = at;
        to.number(*look);
        to.signed((*as_of_ms).into());
        to.number((*day).into());
        to.signed((*since_ms).into());
        to.number((*since_day).into());
        option(to, k.as_ref(), |to, k| to.number((*k).into()));
    });
    map(to, metrics, |to, metric| {
        let DecidedMetric {
            lift,
            interval,
            p,
            p_adjusted,
            band_excludes_zero,
        } = metric;
        option(to, lift.as_ref(), |to, lift| float(to, *lift));
        option(to, interval.as_ref(), |to, interval| {
            float(to, interval.lower);
            float(to, interval.upper);
        });
        float(to, *p);
        float(to, *p_adjusted);
        to.byte(u8::from(*band_excludes_zero));
    });
}

fn encode_metric(metric: &KeptMetric, to: &mut Writer) {
    let KeptMetric {
        tau,
        max_surprise,
        max_ln_e_harm,
        harm_since_ms,
    } = metric;
    option(to, tau.as_ref(), |to, tau| float(to, *tau));
    float(to, *max_surprise);
    float(to, *max_ln_e_harm);
    to.time(*harm_since_ms);
}

/// Reads state that was stored in this form.
pub fn decode(from: &mut Reader, form: Form) -> Result<TestState, AsOfError> {
    Ok(TestState {
        n_looks: from.number()?,
        last_look_ms: from.time()?,
        max_ln_bayes_factor: read_float(from)?,
        progress: TestProgress {
            since_ms: from.time()?,
            marks: (0..from.length()?)
                .map(|_| decode_known(from))
                .collect::<Result<_, _>>()?,
        },
        arms: read_map(from, |from| decode_arm(from, form))?,
    })
}

fn decode_known(from: &mut Reader) -> Result<Known, AsOfError> {
    Ok(Known {
        as_of_ms: from.ms()?,
        arms: read_map(from, |from| read_map(from, read_float))?,
    })
}

fn decode_arm(from: &mut Reader, form: Form) -> Result<KeptArm, AsOfError> {
    Ok(KeptArm {
        is_burned_in: from.flag()?,
        max_ln_e_list_ratio: read_float(from)?,
        decided: read_option(from, |from| decode_decided(from, form))?,
        metrics: read_map(from, |from| decode_metric(from, form))?,
    })
}

fn decode_decided(from: &mut Reader, form: Form) -> Result<DecidedLook, AsOfError> {
    let state = STATES.get(usize::from(from.byte()?)).copied();
    let state = state.ok_or(AsOfError::Malformed(Malformed::Number))?;
    // The earlier rule stored nothing but the state.
    if form == Form::AnyLook {
        return Ok(DecidedLook {
            state,
            reason: String::new(),
            at: None,
            metrics: Default::default(),
        });
    }
    Ok(DecidedLook {
        state,
        reason: from.text()?.to_owned(),
        at: read_option(from, |from| decode_at(from, form))?,
        metrics: read_map(from, |from| {
            Ok(DecidedMetric {
                lift: read_option(from, read_float)?,
                interval: read_option(from, interval)?,
                p: read_float(from)?,
                p_adjusted: read_float(from)?,
                band_excludes_zero: from.flag()?,
            })
        })?,
    })
}

fn decode_at(from: &mut Reader, form: Form) -> Result<DecidedAt, AsOfError> {
    let (look, as_of_ms, day) = (from.number()?, from.ms()?, small(from)?);
    let (since_ms, since_day) = match form {
        Form::Since => (from.ms()?, small(from)?),
        // The first look with this state is unknown, so the decision counts from its own look.
        Form::AnyLook | Form::EachLook => (as_of_ms, day),
    };
    Ok(DecidedAt {
        look,
        as_of_ms,
        since_ms,
        day,
        since_day,
        k: read_option(from, small)?,
    })
}

fn small(from: &mut Reader) -> Result<u32, AsOfError> {
    u32::try_from(from.number()?).map_err(|_| AsOfError::Malformed(Malformed::Number))
}

fn interval(from: &mut Reader) -> Result<Interval, AsOfError> {
    Ok(Interval {
        lower: read_float(from)?,
        upper: read_float(from)?,
    })
}

fn decode_metric(from: &mut Reader, form: Form) -> Result<KeptMetric, AsOfError> {
    let mut metric = KeptMetric {
        tau: read_option(from, read_float)?,
        max_surprise: read_float(from)?,
        max_ln_e_harm: read_float(from)?,
        harm_since_ms: None,
    };
    match form {
        Form::EachLook | Form::Since => metric.harm_since_ms = from.time()?,
        // Skips the p and the intervals of a planned look, which no longer decide anything.
        Form::AnyLook => {
            let _planned = read_option(from, |from| {
                read_float(from)?;
                read_option(from, interval)?;
                read_option(from, interval)
            })?;
        }
    }
    Ok(metric)
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

    /// State with every field set.
    fn kept() -> TestState {
        let interval = Interval {
            lower: -0.25,
            upper: 1e300,
        };
        let metric = KeptMetric {
            tau: Some(0.1),
            max_surprise: 3.5,
            max_ln_e_harm: 0.0,
            harm_since_ms: Some(1_763_596_200_000),
        };
        let decided_metric = |interval| DecidedMetric {
            lift: Some(0.04),
            interval,
            p: 0.01,
            p_adjusted: 0.02,
            band_excludes_zero: true,
        };
        let decided_as = |(number, state): (usize, ArmState)| DecidedLook {
            state,
            reason: "CTR is better, p = 0.02".to_owned(),
            at: (number % 3 > 0).then_some(DecidedAt {
                look: 1_008,
                as_of_ms: 1_763_596_800_000,
                since_ms: 1_762_992_000_000,
                day: 14,
                since_day: 7,
                k: (number % 3 > 1).then_some(1),
            }),
            metrics: [
                ("ctr".to_owned(), decided_metric(Some(interval))),
                ("mrr".to_owned(), decided_metric(None)),
            ]
            .into(),
        };
        let arm = |(number, decided): (usize, Option<ArmState>)| {
            let metrics = [
                ("ctr".to_owned(), metric.clone()),
                ("mrr".to_owned(), KeptMetric::default()),
            ];
            let arm = KeptArm {
                is_burned_in: number % 2 == 0,
                max_ln_e_list_ratio: 0.1 * number as f64,
                decided: decided.map(|state| decided_as((number, state))),
                metrics: metrics.into(),
            };
            (format!("arm {number:02}"), arm)
        };
        let decided = STATES.into_iter().map(Some).chain([None]);
        TestState {
            n_looks: 300,
            last_look_ms: Some(1_763_596_800_000),
            max_ln_bayes_factor: 1.0 / 3.0,
            progress: TestProgress {
                since_ms: Some(-600_000),
                marks: vec![known(86_400_000), known(172_800_000)],
            },
            arms: decided.enumerate().map(arm).collect(),
        }
    }

    fn bytes(kept: &TestState) -> Vec<u8> {
        let mut to = Writer::default();
        encode(kept, &mut to);
        to.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<TestState, AsOfError> {
        let mut from = Reader::new(bytes);
        let kept = decode(&mut from, Form::Since)?;
        from.end()?;
        Ok(kept)
    }

    #[test]
    fn written_values_are_read_back() {
        for kept in [kept(), TestState::default()] {
            assert_eq!(read(&bytes(&kept)), Ok(kept));
        }
    }

    #[test]
    fn readable_bytes_equal_their_own_encoding() {
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

    /// Bytes from before the rule changed: state 7 is a win, and the planned look had p 0.04 and one interval.
    #[test]
    fn a_decision_of_the_earlier_rule_is_read_by_its_state() {
        let mut to = Writer::default();
        to.number(300);
        to.time(Some(1_763_596_800_000));
        float(&mut to, 0.5);
        to.time(None);
        to.number(0);
        map(&mut to, &[("b".to_owned(), ())].into(), |to, ()| {
            to.byte(1);
            float(to, 0.0);
            option(to, Some(&7), |to, number| to.byte(*number));
            map(to, &[("ctr".to_owned(), ())].into(), |to, ()| {
                option(to, Some(&0.1), |to, tau| float(to, *tau));
                float(to, 3.5);
                float(to, 0.25);
                option(to, Some(&0.04), |to, p| {
                    float(to, *p);
                    option(to, Some(&[-0.25, 0.5]), |to, ends| {
                        ends.iter().for_each(|end| float(to, *end))
                    });
                    option(to, None::<&()>, |_, ()| ());
                });
            });
        });
        let bytes = to.into_bytes();
        let mut from = Reader::new(&bytes);
        let kept = decode(&mut from, Form::AnyLook).expect("it is whole");
        from.end().expect("nothing is left");
        let arm = &kept.arms["b"];
        let decided = arm.decided.as_ref().expect("a win was stored");
        assert_eq!((decided.state, decided.at), (ArmState::Win, None));
        let expected = KeptMetric {
            tau: Some(0.1),
            max_surprise: 3.5,
            max_ln_e_harm: 0.25,
            harm_since_ms: None,
        };
        assert_eq!(arm.metrics["ctr"], expected);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let kept = TestState {
                max_ln_bayes_factor: number,
                ..TestState::default()
            };
            assert_eq!(read(&bytes(&kept)), Err(AsOfError::Malformed(Malformed::Number)));
        }
    }
}
