//! Stored form of a pair: a header, the parts of its ledger, and the rest of a checkpoint.

use std::fmt;

use abgauge_core::bytes::{Malformed, Reader, Writer};
use abgauge_core::engine::event::Side;
use abgauge_core::engine::{
    Accepted, Checkpoint, Copied, CopiesCheckpoint, CopiesReach, EarlierHead, GatherCheckpoint, LateRefusal,
    LogCheckpoint, ResumePoint, RowPlace, Silence,
};
use abgauge_core::journal::{Header, LogIdentity, ReplayDigest, TopicProgress};
use abgauge_core::ledger::{EncodedLedger, LedgerError, Part};
use abgauge_core::looks::{AsOfError, PairLooks};

use crate::store::keeper::Roles;

/// Role of the checkpoint data outside the header, in this order: 0, or 1 and the times of accepted events; M at each position;
/// copies and refusals, each list with its length first; 0, or 1 and how far lists are read again for copies (offset, M there,
/// number of events and their digest); if lists are gathered, heads and silences in the same format. A checkpoint without the
/// last ones ends earlier.
const CHECKPOINT: &str = "checkpoint";

/// Role of the chain's id, which changes when a pair restarts from nothing: 8 random bytes.
const LIFE: &str = "life";

/// Role of folded arms: their hashes, 16 bytes each. Absent if there are none.
const FOLDED: &str = "folded";

/// Roles of the results of looks, each absent before the first look.
const USERS: &str = "users";
const SEQUENCES: &str = "sequences";

/// A stored pair, decoded.
pub struct DecodedPair {
    pub checkpoint: Checkpoint,
    pub ledger: EncodedLedger,
    /// Id shared by all states in one chain.
    pub incarnation_id: u64,
    pub looks: Option<PairLooks>,
}

/// Reason why a stored pair cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormError {
    /// The role of this name is missing.
    Missing(&'static str),
    /// The role of a checkpoint is damaged.
    Checkpoint(Malformed),
    /// The role does not have 8 bytes.
    Life,
    /// The role's length is not a multiple of a hash.
    Folded,
    /// The number of topics differs.
    Topics,
    Ledger(LedgerError),
    Looks(AsOfError),
    /// Totals and frontier are from different moments.
    Until {
        ledger_ms: Option<i64>,
        frontier_ms: Option<i64>,
    },
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormError::Missing(role) => write!(f, "it has no role `{role}`"),
            FormError::Checkpoint(error) => write!(f, "its role `{CHECKPOINT}` is damaged: {error}"),
            FormError::Life => write!(f, "its role `{LIFE}` is damaged"),
            FormError::Folded => write!(f, "its role `{FOLDED}` is damaged"),
            FormError::Topics => f.write_str("it has another number of topics"),
            FormError::Looks(error) => {
                write!(f, "cannot read the stored analyses of experiments: {error}")
            }
            FormError::Ledger(error) => write!(f, "cannot read its ledger: {error}"),
            FormError::Until {
                ledger_ms,
                frontier_ms,
            } => write!(
                f,
                "its totals end at {}, and its frontier is {} (epoch ms)",
                reported(*ledger_ms),
                reported(*frontier_ms)
            ),
        }
    }
}

fn reported(ms: Option<i64>) -> String {
    ms.map_or_else(|| "nothing".to_owned(), |ms| ms.to_string())
}

impl std::error::Error for FormError {}

/// Encodes a pair at a checkpoint.
pub fn stored(
    checkpoint: &Checkpoint,
    parts: EncodedLedger,
    incarnation_id: u64,
    looks: Option<&PairLooks>,
    identity: &LogIdentity,
    was_caught_up: bool,
) -> (Header, Roles) {
    let reach = |log: &LogCheckpoint| TopicProgress {
        read_position: log.position.offset,
        resume_offset: log.resume.offset,
        resume_max_ms: log.resume.newest_ms,
        digest: ReplayDigest {
            n_events: log.open.n,
            sum: log.open.hash,
        },
    };
    let header = Header {
        identity: identity.clone(),
        begin_ms: checkpoint.begin_ms,
        frontier_ms: checkpoint.until_ms,
        reaches: checkpoint.logs.iter().map(reach).collect(),
        was_caught_up,
        is_exact: checkpoint.is_exact,
        columns: Vec::new(),
    };
    let parts = parts.into_iter();
    let mut roles: Roles = parts
        .map(|(part, bytes)| (part.to_string().into(), bytes))
        .collect();
    roles.insert(CHECKPOINT.into(), encode(checkpoint).into());
    roles.insert(LIFE.into(), incarnation_id.to_le_bytes().to_vec().into());
    // An absent role is read as an empty one.
    if !checkpoint.folded.is_empty() {
        let hashes = checkpoint.folded.iter().flat_map(|hash| hash.to_le_bytes());
        roles.insert(FOLDED.into(), hashes.collect::<Vec<u8>>().into());
    }
    if let Some(PairLooks { users, sequences }) = looks {
        roles.insert(USERS.into(), users.clone());
        roles.insert(SEQUENCES.into(), sequences.clone());
    }
    (header, roles)
}

fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut to = Writer::default();
    to.byte(u8::from(checkpoint.accepted.is_some()));
    if let Some(accepted) = checkpoint.accepted {
        to.signed(accepted.first_ms.into());
        to.signed(accepted.last_ms.into());
        to.signed(accepted.last_record_ms.into());
    }
    for log in &checkpoint.logs {
        to.time(log.position.newest_ms);
    }
    let CopiesCheckpoint {
        copied,
        refusals,
        reach,
    } = &checkpoint.copies;
    let is_gathered = checkpoint.gathered != GatherCheckpoint::default();
    // Without both, the bytes end here. Gathered lists come after copies, so they need the longer form.
    if checkpoint.copies == CopiesCheckpoint::default() && !is_gathered {
        return to.into_bytes();
    }
    to.number(copied.len() as u64);
    for Copied {
        slot_ms,
        id,
        original_ms,
    } in copied
    {
        to.signed((*slot_ms).into());
        to.bytes(&id.to_le_bytes());
        to.signed((*original_ms).into());
    }
    to.number(refusals.len() as u64);
    for LateRefusal { offset, until_ms } in refusals {
        to.signed((*offset).into());
        to.signed((*until_ms).into());
    }
    to.byte(u8::from(reach.is_some()));
    if let Some(CopiesReach { resume, open }) = reach {
        to.signed(resume.offset.into());
        to.time(resume.newest_ms);
        to.number(open.n);
        to.bytes(&open.hash.to_le_bytes());
    }
    if is_gathered {
        encode_gathered(&checkpoint.gathered, &mut to);
    }
    to.into_bytes()
}

fn encode_gathered(gathered: &GatherCheckpoint, to: &mut Writer) {
    let GatherCheckpoint { heads, silences } = gathered;
    to.number(heads.len() as u64);
    for EarlierHead {
        slot_ms,
        id,
        ts_ms,
        place,
    } in heads
    {
        to.signed((*slot_ms).into());
        to.bytes(&id.to_le_bytes());
        to.signed((*ts_ms).into());
        to.signed(place.offset.into());
        to.number(place.index.into());
    }
    to.number(silences.len() as u64);
    for Silence { offset, until_ms } in silences {
        to.signed((*offset).into());
        to.signed((*until_ms).into());
    }
}

fn decode_gathered(from: &mut Reader) -> Result<GatherCheckpoint, Malformed> {
    let mut gathered = GatherCheckpoint::default();
    for _ in 0..from.length()? {
        gathered.heads.push(EarlierHead {
            slot_ms: from.ms()?,
            id: u128::from_le_bytes(from.array()?),
            ts_ms: from.ms()?,
            place: RowPlace {
                offset: from.ms()?,
                index: u32::try_from(from.number()?).map_err(|_| Malformed::Number)?,
            },
        });
    }
    for _ in 0..from.length()? {
        gathered.silences.push(Silence {
            offset: from.ms()?,
            until_ms: from.ms()?,
        });
    }
    Ok(gathered)
}

/// Decodes a stored pair that reads these sides.
///
/// # Errors
/// [`FormError`] if it is damaged or belongs to other topics.
pub fn read(header: &Header, roles: &Roles, sides: &[Side]) -> Result<DecodedPair, FormError> {
    // Reaches are matched to sides by their order, so there must be one for each.
    if header.reaches.len() != sides.len() {
        return Err(FormError::Topics);
    }
    let bytes = roles.get(CHECKPOINT).ok_or(FormError::Missing(CHECKPOINT))?;
    let (accepted, newest_ms, copies, gathered) =
        decode(bytes, sides.len()).map_err(FormError::Checkpoint)?;
    let logs = sides.iter().zip(&header.reaches).zip(newest_ms);
    let log = |((side, reach), newest_ms): ((&Side, &TopicProgress), Option<i64>)| LogCheckpoint {
        side: *side,
        position: ResumePoint {
            offset: reach.read_position,
            newest_ms,
        },
        resume: ResumePoint {
            offset: reach.resume_offset,
            newest_ms: reach.resume_max_ms,
        },
        open: abgauge_core::engine::Digest {
            n: reach.digest.n_events,
            hash: reach.digest.sum,
        },
    };
    let checkpoint = Checkpoint {
        until_ms: header.frontier_ms,
        begin_ms: header.begin_ms,
        accepted,
        is_exact: header.is_exact,
        logs: logs.map(log).collect(),
        copies,
        gathered,
        folded: folded(roles)?,
    };
    // Skip unknown roles: a newer version has written them, or they are no longer kept.
    let part = |(role, bytes): (&abgauge_core::journal::Role, &abgauge_core::journal::SharedBytes)| {
        Some((role.parse::<Part>().ok()?, bytes.clone()))
    };
    Ok(DecodedPair {
        checkpoint,
        ledger: roles.iter().filter_map(part).collect(),
        incarnation_id: incarnation_id(roles)?,
        looks: read_looks(roles)?,
    })
}

fn incarnation_id(roles: &Roles) -> Result<u64, FormError> {
    let bytes = roles.get(LIFE).ok_or(FormError::Missing(LIFE))?;
    let bytes: Result<[u8; 8], _> = (&**bytes).try_into();
    bytes.map(u64::from_le_bytes).map_err(|_| FormError::Life)
}

fn folded(roles: &Roles) -> Result<Vec<u128>, FormError> {
    let bytes = roles.get(FOLDED).map_or(&[][..], |bytes| bytes);
    let (hashes, rest) = bytes.as_chunks();
    match rest {
        // A remainder is part of a hash: the role was cut.
        [] => Ok(hashes.iter().map(|hash| u128::from_le_bytes(*hash)).collect()),
        _ => Err(FormError::Folded),
    }
}

fn read_looks(roles: &Roles) -> Result<Option<PairLooks>, FormError> {
    match (roles.get(USERS), roles.get(SEQUENCES)) {
        (Some(users), Some(sequences)) => Ok(Some(PairLooks {
            users: users.clone(),
            sequences: sequences.clone(),
        })),
        (None, None) => Ok(None),
        // Both are always written together.
        (None, _) => Err(FormError::Missing(USERS)),
        (_, None) => Err(FormError::Missing(SEQUENCES)),
    }
}

/// Times of accepted events, M at each position, and what decides on copies and gathered lists.
type Decoded = (
    Option<Accepted>,
    Vec<Option<i64>>,
    CopiesCheckpoint,
    GatherCheckpoint,
);

fn decode(bytes: &[u8], n_logs: usize) -> Result<Decoded, Malformed> {
    let mut from = Reader::new(bytes);
    let accepted = if from.flag()? {
        Some(Accepted {
            first_ms: from.ms()?,
            last_ms: from.ms()?,
            last_record_ms: from.ms()?,
        })
    } else {
        None
    };
    let newest_ms = (0..n_logs).map(|_| from.time()).collect::<Result<_, _>>()?;
    let mut copies = CopiesCheckpoint::default();
    // Without copies and gathered lists, the bytes end here.
    if !from.rest().is_empty() {
        for _ in 0..from.length()? {
            copies.copied.push(Copied {
                slot_ms: from.ms()?,
                id: u128::from_le_bytes(from.array()?),
                original_ms: from.ms()?,
            });
        }
        for _ in 0..from.length()? {
            copies.refusals.push(LateRefusal {
                offset: from.ms()?,
                until_ms: from.ms()?,
            });
        }
        if from.flag()? {
            copies.reach = Some(CopiesReach {
                resume: ResumePoint {
                    offset: from.ms()?,
                    newest_ms: from.time()?,
                },
                open: abgauge_core::engine::Digest {
                    n: from.number()?,
                    hash: u64::from_le_bytes(from.array()?),
                },
            });
        }
    }
    let gathered = match from.rest().is_empty() {
        true => GatherCheckpoint::default(),
        false => decode_gathered(&mut from)?,
    };
    // Further bytes belong to no format that this version writes.
    from.end()?;
    Ok((accepted, newest_ms, copies, gathered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_round_trip_keeps_copies() {
        let copied = |id| Copied {
            slot_ms: 20,
            id,
            original_ms: -7,
        };
        let refusal = LateRefusal {
            offset: 1 << 40,
            until_ms: 300,
        };
        let reach = CopiesReach {
            resume: ResumePoint {
                offset: 3,
                newest_ms: Some(70),
            },
            open: abgauge_core::engine::Digest { n: 2, hash: u64::MAX },
        };
        for (copied, refusals, reach) in [
            (vec![], vec![], None),
            (vec![copied(u128::MAX), copied(0)], vec![], None),
            (vec![], vec![refusal], Some(reach)),
            (vec![copied(1)], vec![refusal], None),
            (vec![], vec![], Some(reach)),
        ] {
            let copies = CopiesCheckpoint {
                copied,
                refusals,
                reach,
            };
            check_comes_back(copies, GatherCheckpoint::default());
        }
    }

    /// Encodes and decodes a checkpoint that has only these parts.
    #[track_caller]
    fn check_comes_back(copies: CopiesCheckpoint, gathered: GatherCheckpoint) {
        let bytes = encode(&Checkpoint {
            until_ms: None,
            begin_ms: None,
            accepted: None,
            is_exact: true,
            logs: Vec::new(),
            copies: copies.clone(),
            gathered: gathered.clone(),
            folded: Vec::new(),
        });
        assert_eq!(decode(&bytes, 0), Ok((None, Vec::new(), copies, gathered)));
    }

    #[test]
    fn a_checkpoint_round_trip_keeps_gathered_lists() {
        let head = EarlierHead {
            slot_ms: 20,
            id: u128::MAX,
            ts_ms: -7,
            place: RowPlace {
                offset: 1 << 40,
                index: 3,
            },
        };
        let silence = Silence {
            offset: 9,
            until_ms: 300,
        };
        for (heads, silences) in [
            (vec![head], vec![]),
            (vec![], vec![silence]),
            (vec![head], vec![silence]),
        ] {
            check_comes_back(CopiesCheckpoint::default(), GatherCheckpoint { heads, silences });
        }
    }

    #[test]
    fn folded_arms_survive_a_round_trip_and_a_partial_hash_is_rejected() {
        let checkpoint = |folded| Checkpoint {
            until_ms: None,
            begin_ms: None,
            accepted: None,
            is_exact: true,
            logs: Vec::new(),
            copies: CopiesCheckpoint::default(),
            gathered: GatherCheckpoint::default(),
            folded,
        };
        let identity = LogIdentity {
            fingerprint: String::new(),
            topics: Vec::new(),
            n_partitions: 1,
        };
        let stored_with = |folded| {
            stored(
                &checkpoint(folded),
                EncodedLedger::new(),
                7,
                None,
                &identity,
                true,
            )
        };
        let (header, mut roles) = stored_with(vec![u128::MAX, 5]);
        let read_again = |roles: &Roles| read(&header, roles, &[]).map(|read| read.checkpoint.folded);
        assert_eq!(read_again(&roles), Ok(vec![u128::MAX, 5]));
        roles.insert(FOLDED.into(), vec![0; 17].into());
        assert_eq!(read_again(&roles), Err(FormError::Folded));
        let (_, roles) = stored_with(Vec::new());
        assert!(
            !roles.contains_key(FOLDED),
            "states without folded arms stay what they were"
        );
    }
}
