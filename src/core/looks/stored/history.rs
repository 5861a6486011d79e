//! Codec for the history of looks.

use super::AsOfError;
use super::numbers::{map, read_map};
use crate::bytes::{Malformed, Reader, Writer};
use crate::looks::history::{Estimate, History, Point};

/// First bits for the parts of a point: the value, its bounds, the lift, its bounds.
const VALUE: u8 = 1;
const LIFT: u8 = 4;

pub fn encode(history: &History, to: &mut Writer) {
    let History {
        every_ms,
        times_ms,
        arms,
        changes_ms,
    } = history;
    to.signed((*every_ms).into());
    times(to, times_ms);
    times(to, changes_ms);
    map(to, arms, |to, metrics| {
        map(to, metrics, |to, points| {
            points.iter().for_each(|point| encode_point(point, to));
        });
    });
}

fn encode_point(point: &Point, to: &mut Writer) {
    let bits = |estimate: Option<Estimate>, bit: u8| match estimate {
        None => 0,
        Some(Estimate { bounds: None, .. }) => bit,
        Some(Estimate { bounds: Some(_), .. }) => bit | bit << 1,
    };
    to.byte(bits(point.value, VALUE) | bits(point.lift, LIFT));
    for Estimate { middle, bounds } in [point.value, point.lift].into_iter().flatten() {
        let numbers = [middle].into_iter().chain(bounds.into_iter().flatten());
        numbers.for_each(|number| to.bytes(&number.to_le_bytes()));
    }
}

pub fn decode(from: &mut Reader) -> Result<History, AsOfError> {
    let every_ms = from.ms()?;
    let times_ms = read_times(from)?;
    let changes_ms = read_times(from)?;
    let n = times_ms.len();
    // Between a point and the next there must be time.
    if every_ms < i64::from(n > 0) {
        return Err(malformed());
    }
    Ok(History {
        every_ms,
        times_ms,
        arms: read_map(from, |from| read_map(from, |from| decode_points(from, n)))?,
        changes_ms,
    })
}

fn decode_points(from: &mut Reader, n: usize) -> Result<Vec<Point>, AsOfError> {
    (0..n).map(|_| decode_point(from)).collect()
}

fn decode_point(from: &mut Reader) -> Result<Point, AsOfError> {
    let bits = from.byte()?;
    if bits >> 4 != 0 {
        return Err(malformed());
    }
    Ok(Point {
        value: decode_estimate(bits, from)?,
        lift: decode_estimate(bits >> 2, from)?,
    })
}

/// Reads an estimate if the lower two of these bits announce one.
fn decode_estimate(bits: u8, from: &mut Reader) -> Result<Option<Estimate>, AsOfError> {
    match bits & 3 {
        0 => Ok(None),
        // Bounds without a value.
        2 => Err(malformed()),
        bits => Ok(Some(Estimate {
            middle: number(from)?,
            bounds: match bits {
                1 => None,
                _ => Some([number(from)?, number(from)?]),
            },
        })),
    }
}

/// Reads a finite number.
fn number(from: &mut Reader) -> Result<f32, AsOfError> {
    let number = f32::from_le_bytes(from.array()?);
    number.is_finite().then_some(number).ok_or_else(malformed)
}

fn times(to: &mut Writer, times_ms: &[i64]) {
    to.number(times_ms.len() as u64);
    times_ms.iter().for_each(|ms| to.signed((*ms).into()));
}

/// Reads times, which must ascend.
fn read_times(from: &mut Reader) -> Result<Vec<i64>, AsOfError> {
    let times_ms: Vec<i64> = (0..from.length()?).map(|_| from.ms()).collect::<Result<_, _>>()?;
    match times_ms.is_sorted_by(|one, next| one < next) {
        true => Ok(times_ms),
        false => Err(malformed()),
    }
}

fn malformed() -> AsOfError {
    AsOfError::Malformed(Malformed::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// History with every combination of parts.
    fn history() -> History {
        let estimate = |bounds| Some(Estimate { middle: 0.25, bounds });
        let [bare, bounded] = [estimate(None), estimate(Some([-0.5, 1e30]))];
        let point = |value, lift| Point { value, lift };
        let points = vec![
            Point::default(),
            point(bare, bounded),
            point(bounded, bare),
            point(bounded, None),
        ];
        let metrics = [("ctr".to_owned(), points.clone()), ("mrr@5".to_owned(), points)];
        History {
            every_ms: 1_200_000,
            times_ms: vec![-1_200_000, 0, 1_200_000, 1_800_000],
            arms: [
                ("a".to_owned(), metrics.clone().into()),
                ("b".to_owned(), metrics.into()),
            ]
            .into(),
            changes_ms: vec![-600_000, 1_763_596_800_000],
        }
    }

    fn bytes(history: &History) -> Vec<u8> {
        let mut to = Writer::default();
        encode(history, &mut to);
        to.into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<History, AsOfError> {
        let mut from = Reader::new(bytes);
        let history = decode(&mut from)?;
        from.end()?;
        Ok(history)
    }

    #[test]
    fn written_values_are_read_back() {
        for history in [history(), History::default()] {
            assert_eq!(read(&bytes(&history)), Ok(history));
        }
    }

    #[test]
    fn readable_bytes_equal_their_own_encoding() {
        let whole = bytes(&history());
        for at in 0..whole.len() {
            assert!(read(&whole[..at]).is_err(), "cut at {at}");
            for change in [1, 2, 0x40, 0x80, 0xff] {
                let mut other = whole.clone();
                other[at] ^= change;
                if let Ok(history) = read(&other) {
                    assert_eq!(bytes(&history), other, "byte {at} ^ {change}");
                }
            }
        }
    }

    #[test]
    fn impossible_histories_are_refused() {
        let backwards = History {
            times_ms: vec![0, 0],
            every_ms: 1,
            ..History::default()
        };
        let is_stalled = History {
            times_ms: vec![0],
            ..History::default()
        };
        for history in [backwards, is_stalled] {
            assert_eq!(read(&bytes(&history)), Err(malformed()));
        }
    }
}
