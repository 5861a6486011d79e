//! Each handler alone: what it does with an input, and what it leaves unchanged.

use std::collections::BTreeSet;

use super::{Loss, Owner, OwnerCommand, OwnerInput, OwnerSettings, Refusal, ShownState, StateFault, Urgency};
use crate::journal::content::{SharedBytes, State};
use crate::journal::fixture::{header, identity, roles, state};
use crate::journal::identity::LogDifference;
use crate::journal::key::{Namespace, RecordKey, SealId, Session};
use crate::journal::log::PartitionEvent;
use crate::journal::record::{Claim, RecordError, Seal};
use crate::journal::rules::JournalRules;

mod loss;

const LEASE_MS: i64 = 15_000;
const ANSWER_MS: i64 = 5_000;

fn namespace() -> Namespace {
    Namespace::of("fingerprint", "group")
}

/// An owner, the clock on the wall, and where the log of the state partition ends.
struct Desk {
    owner: Owner,
    now_ms: i64,
    end: i64,
}

/// A record that was appended.
type Sent = (RecordKey, Option<SharedBytes>);

impl Desk {
    fn new(seed: u64) -> Desk {
        let settings = OwnerSettings {
            namespace: namespace(),
            identity: identity(),
            claim: Claim::default(),
            answer_ms: ANSWER_MS,
            lease_ms: LEASE_MS,
            still_ms: 5_000,
        };
        Desk {
            owner: Owner::with_rules(settings, seed, JournalRules::default()),
            now_ms: 1_000_000,
            end: 0,
        }
    }

    /// One that holds the pair, without a seal.
    fn holder() -> Desk {
        let mut desk = Desk::new(1);
        desk.claims();
        desk.end();
        desk
    }

    /// One whose first state is in force.
    fn sealed() -> Desk {
        let mut desk = Desk::holder();
        desk.seals(&state(10, &[("arms", "a"), ("totals", "1")]));
        desk.end();
        desk
    }

    fn step(&mut self, input: OwnerInput) -> Vec<OwnerCommand> {
        self.owner.step(self.now_ms, input)
    }

    fn later(&mut self, ms: i64) -> Vec<OwnerCommand> {
        self.now_ms += ms;
        self.step(OwnerInput::Tick)
    }

    fn read(&mut self, (key, value): &Sent) -> Vec<OwnerCommand> {
        self.read_text(&key.text(namespace()), value.as_deref())
    }

    fn read_text(&mut self, key: &str, value: Option<&[u8]>) -> Vec<OwnerCommand> {
        self.end += 1;
        self.step(OwnerInput::Log(PartitionEvent::Record {
            offset: self.end - 1,
            key: key.as_bytes(),
            value,
            written_ms: None,
        }))
    }

    fn read_all(&mut self, records: &[Sent]) {
        for record in records {
            self.read(record);
        }
    }

    fn end(&mut self) -> Vec<OwnerCommand> {
        let question = self.owner.question(self.now_ms);
        self.step(OwnerInput::Log(PartitionEvent::End(question)))
    }

    fn shown(&self) -> ShownState {
        self.owner.showing().shown(self.now_ms)
    }

    /// Is assigned, claims, and reads its claim.
    fn claims(&mut self) -> Session {
        self.step(OwnerInput::Assigned);
        let commands = self.end();
        let session = claim_of(&commands);
        self.read_all(&sent(&commands));
        session
    }

    /// Offers a state; all that is sent is acknowledged and read. Returns it.
    fn seals(&mut self, state: &State) -> Vec<Sent> {
        let blobs = sent(&self.step(OwnerInput::State(state.clone())));
        self.writes(blobs)
    }

    /// Acknowledges and reads all records, and the ones sent in response. Returns all of them.
    fn writes(&mut self, mut records: Vec<Sent>) -> Vec<Sent> {
        let mut n_acknowledged = 0;
        while let Some((key, value)) = records.get(n_acknowledged).cloned() {
            n_acknowledged += 1;
            if value.is_some() {
                records.extend(sent(
                    &self.step(OwnerInput::Log(PartitionEvent::Acknowledged(key))),
                ));
            }
        }
        self.read_all(&records);
        records
    }
}

fn sent(commands: &[OwnerCommand]) -> Vec<Sent> {
    let sent = commands.iter().filter_map(|command| match command {
        OwnerCommand::Send { key, value } => Some((*key, value.clone())),
        _ => None,
    });
    sent.collect()
}

#[track_caller]
fn claim_of(commands: &[OwnerCommand]) -> Session {
    match commands {
        [
            OwnerCommand::Send {
                key: RecordKey::Claim(session),
                value: Some(_),
            },
        ] => *session,
        other => panic!("{other:?}"),
    }
}

/// The one seal that is sent.
#[track_caller]
fn seal_of(records: &[Sent]) -> (SealId, Seal) {
    match records {
        [(RecordKey::Seal(id), Some(value))] => (*id, Seal::decode(value).expect("it is a seal")),
        other => panic!("{other:?}"),
    }
}

fn session(epoch: u64) -> Session {
    Session { epoch, unique: 99 }
}

fn claim(epoch: u64) -> Sent {
    (
        RecordKey::Claim(session(epoch)),
        Some(Claim::default().encode().into()),
    )
}

fn buried(commands: &[OwnerCommand]) -> BTreeSet<RecordKey> {
    let sent = sent(commands);
    sent.iter()
        .filter(|(_, value)| value.is_none())
        .map(|(key, _)| *key)
        .collect()
}

#[test]
fn claims_at_the_end_above_everything_it_has_read() {
    let mut desk = Desk::new(1);
    assert_eq!(desk.step(OwnerInput::Assigned), []);
    assert_eq!(desk.read(&claim(6)), []);
    assert_eq!(claim_of(&desk.end()).epoch, 7);
}

#[test]
fn ignores_an_end_requested_before_the_last_record() {
    let mut desk = Desk::new(1);
    desk.step(OwnerInput::Assigned);
    let question = desk.owner.question(desk.now_ms);
    desk.read(&claim(6));
    assert_eq!(desk.step(OwnerInput::Log(PartitionEvent::End(question))), []);
}

#[test]
fn a_quiet_partition_allows_a_claim_and_nothing_else() {
    let quiet = |desk: &mut Desk| {
        let question = desk.owner.question(desk.now_ms);
        desk.step(OwnerInput::Log(PartitionEvent::Quiet(question)))
    };
    let mut desk = Desk::sealed();
    assert_eq!(quiet(&mut desk), [], "no lease, no garbage");
    desk.step(OwnerInput::Revoked);
    desk.step(OwnerInput::Assigned);
    claim_of(&quiet(&mut desk));
    assert_eq!(quiet(&mut desk), []);
}

#[test]
fn repeats_an_unanswered_claim_with_a_higher_epoch_and_a_new_number() {
    let mut desk = Desk::new(1);
    desk.step(OwnerInput::Assigned);
    let first = claim_of(&desk.end());
    assert_eq!(desk.later(ANSWER_MS - 1), []);
    let second = claim_of(&desk.later(1));
    assert_eq!(second.epoch, first.epoch + 1);
    assert_ne!(second.unique, first.unique);
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Claim(
        first,
    ))));
    assert_eq!(claim_of(&desk.later(ANSWER_MS)).epoch, first.epoch + 2);
}

#[test]
fn waits_for_an_acknowledged_claim_until_a_later_end_lacks_it() {
    let mut desk = Desk::new(1);
    desk.step(OwnerInput::Assigned);
    let lost = claim_of(&desk.end());
    let before = desk.owner.question(desk.now_ms);
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Claim(
        lost,
    ))));
    assert_eq!(desk.later(10 * ANSWER_MS), []);
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::End(before))),
        [],
        "it may lie behind that end"
    );
    let next = claim_of(&desk.end());
    assert_eq!(next.epoch, lost.epoch + 1);
    assert_ne!(next.unique, lost.unique);
}

/// A replica that lacked it has become the leader.
#[test]
fn waits_for_an_acknowledged_seal_until_a_later_end_lacks_it() {
    let mut desk = Desk::sealed();
    let offered = state(20, &[("totals", "2")]);
    let seals = |desk: &mut Desk| {
        let blobs = sent(&desk.step(OwnerInput::State(offered.clone())));
        seal_of(&sent(
            &desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0))),
        ))
    };
    let (lost, _) = seals(&mut desk);
    let before = desk.owner.question(desk.now_ms);
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Seal(
        lost,
    ))));
    desk.later(10 * ANSWER_MS);
    desk.step(OwnerInput::Log(PartitionEvent::End(before)));
    assert_eq!(desk.owner.wants(), Urgency::No, "it may lie behind that end");
    desk.end();
    assert_eq!(desk.owner.wants(), Urgency::AtOnce);
    let (next, seal) = seals(&mut desk);
    assert_eq!((next.number, seal.content), (lost.number + 1, offered.content));
}

#[test]
fn seals_the_base_again_if_its_acknowledged_seal_is_lost() {
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&state(10, &[("totals", "1")])));
    desk.claims();
    let (lost, seal) = seal_of(&sent(&desk.end()));
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Seal(
        lost,
    ))));
    desk.now_ms += 1;
    let (next, again) = seal_of(&sent(&desk.end()));
    assert_eq!((next.number, again), (lost.number + 1, seal));
}

#[test]
fn starts_and_requests_a_state_at_once_if_none_is_stored() {
    let mut desk = Desk::new(1);
    desk.claims();
    assert_eq!(desk.owner.wants(), Urgency::No);
    assert_eq!(desk.end(), [OwnerCommand::Begin]);
    assert_eq!(desk.owner.wants(), Urgency::AtOnce);
}

/// A state of somebody else, as it lies in the log.
fn state_of_another(content: &State) -> Vec<Sent> {
    let mut other = Desk::new(2);
    let claim = other.claims();
    other.end();
    let mut records = vec![(RecordKey::Claim(claim), Some(Claim::default().encode().into()))];
    records.extend(other.seals(content));
    records
}

#[test]
fn restores_the_highest_seal_and_seals_it_again_with_its_blobs() {
    let base = state(10, &[("totals", "1")]);
    let records = state_of_another(&base);
    let mut desk = Desk::new(1);
    desk.read_all(&records);
    let session = desk.claims();
    let commands = desk.end();
    let OwnerCommand::Restore { seal, roles } = &commands[0] else {
        panic!("{commands:?}");
    };
    assert_eq!((seal.content, &*roles["totals"]), (base.content, &b"1"[..]));
    let (id, again) = seal_of(&sent(&commands));
    assert_eq!(id, SealId { session, number: 0 });
    assert_eq!(again, **seal);
    assert_eq!(desk.owner.wants(), Urgency::No, "the base comes first");
}

#[test]
fn shows_the_base_once_it_is_sealed_again() {
    let base = state(10, &[("totals", "1")]);
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&base));
    desk.claims();
    let again = sent(&desk.end());
    assert_eq!(desk.shown().settled, None);
    desk.read_all(&again);
    assert_eq!(desk.shown().settled, None, "that is no end");
    let commands = desk.end();
    assert_eq!(
        commands[0],
        OwnerCommand::Show {
            content: base.content
        }
    );
    assert_eq!(desk.shown().settled, Some(base.content));
}

#[test]
fn seals_an_unanswered_base_again_under_a_new_key() {
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&state(10, &[("totals", "1")])));
    desk.claims();
    let (first, seal) = seal_of(&sent(&desk.end()));
    assert_eq!(desk.later(ANSWER_MS - 1), []);
    let (second, again) = seal_of(&sent(&desk.later(1)));
    assert_eq!((second.number, again), (first.number + 1, seal));
}

#[test]
fn sends_a_seal_once_its_blobs_are_acknowledged() {
    let mut desk = Desk::holder();
    let offered = state(10, &[("arms", "a"), ("totals", "1")]);
    let blobs = sent(&desk.step(OwnerInput::State(offered.clone())));
    assert_eq!(blobs.len(), 2);
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0))),
        []
    );
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0))),
        [],
        "the same"
    );
    let (_, seal) = seal_of(&sent(
        &desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[1].0))),
    ));
    assert_eq!(seal.content, offered.content);
}

#[test]
fn reuses_unchanged_blobs() {
    let mut desk = Desk::sealed();
    let offered = state(20, &[("arms", "a"), ("totals", "2")]);
    let records = desk.seals(&offered);
    let values: Vec<&[u8]> = records.iter().filter_map(|(_, value)| value.as_deref()).collect();
    assert_eq!((records.len(), values[0]), (2, &b"2"[..]));
    let (_, seal) = seal_of(&records[1..]);
    assert_eq!(seal.content, offered.content);
    assert_eq!(seal.table["arms"][0].blob.number, 0);
}

#[test]
fn resends_only_the_last_part_of_a_growing_role() {
    let cut = |position, bytes: &str| State::cut(header(position), roles(&[("arms", bytes)]), 4);
    let mut desk = Desk::holder();
    assert_eq!(desk.seals(&cut(10, "onestwos")).len(), 3, "two blobs, one seal");
    desk.end();
    let offered = cut(20, "onestwosthree");
    let records = desk.seals(&offered);
    let values = records.iter().filter_map(|(_, value)| value.as_deref());
    assert_eq!(values.take(2).collect::<Vec<_>>(), [b"thre".as_slice(), b"e"]);
    let (_, seal) = seal_of(&records[2..]);
    assert_eq!(seal.content, offered.content);
    let roles = desk.owner.view().roles(&seal).expect("it is whole");
    assert_eq!(&*roles["arms"], b"onestwosthree");
}

#[test]
fn equal_bytes_share_a_blob() {
    let mut desk = Desk::holder();
    let offered = state(10, &[("cell 0 1", "same"), ("cell 1 1", "same")]);
    let records = desk.seals(&offered);
    let (_, seal) = seal_of(&records[1..]);
    assert_eq!(seal.table["cell 0 1"], seal.table["cell 1 1"]);
}

#[test]
fn refuses_a_state_whose_seal_does_not_fit_into_a_record() {
    let mut desk = Desk::holder();
    let bytes: String = (0..20_000).map(|number| format!("{number:08}")).collect();
    let large = State::cut(header(10), roles(&[("totals", &bytes)]), 8);
    let commands = desk.step(OwnerInput::State(large));
    assert!(
        matches!(commands[..], [OwnerCommand::Refuse(Refusal::TooLarge { .. })]),
        "{commands:?}"
    );
}

#[test]
fn each_acknowledged_blob_restarts_the_timeout() {
    let mut desk = Desk::holder();
    let blobs = sent(&desk.step(OwnerInput::State(state(10, &[("arms", "a"), ("totals", "1")]))));
    desk.later(ANSWER_MS - 1);
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0)));
    desk.later(ANSWER_MS - 1);
    seal_of(&sent(
        &desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[1].0))),
    ));
}

#[test]
fn restores_lost_memory_with_a_new_claim() {
    for is_away in [false, true] {
        let mut desk = Desk::sealed();
        if is_away {
            desk.step(OwnerInput::Revoked);
        }
        desk.step(OwnerInput::Forgotten);
        assert_eq!(desk.shown(), ShownState::default());
        desk.claims();
        let commands = desk.end();
        assert!(
            matches!(commands[0], OwnerCommand::Restore { .. }),
            "{commands:?}"
        );
    }
}

#[test]
fn shows_a_state_once_it_is_in_force() {
    let mut desk = Desk::holder();
    let offered = state(10, &[]);
    let records = sent(&desk.step(OwnerInput::State(offered.clone())));
    let (id, _) = seal_of(&records);
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Seal(id)))),
        []
    );
    desk.read_all(&records);
    assert_eq!(desk.shown().settled, None);
    let content = offered.content;
    assert_eq!(desk.end()[0], OwnerCommand::Show { content });
    assert_eq!(
        desk.shown(),
        ShownState {
            live: true,
            settled: Some(content)
        }
    );
}

#[test]
fn does_not_seal_the_same_state_twice() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.owner.wants(), Urgency::WhenDue);
    let same = state(10, &[("arms", "a"), ("totals", "1")]);
    assert_eq!(desk.step(OwnerInput::State(same)), []);
}

#[test]
fn does_not_seal_a_state_that_has_read_less() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(OwnerInput::State(state(9, &[]))), []);
    assert_ne!(desk.step(OwnerInput::State(state(11, &[]))), []);
}

#[test]
fn a_seal_in_doubt_is_replaced_at_once_under_a_new_key() {
    let mut desk = Desk::sealed();
    let (lost, _) = seal_of(&sent(&desk.step(OwnerInput::State(state(20, &[])))));
    assert_eq!(desk.owner.wants(), Urgency::No);
    desk.later(ANSWER_MS);
    assert_eq!(desk.owner.wants(), Urgency::AtOnce);
    let (next, _) = seal_of(&sent(&desk.step(OwnerInput::State(state(20, &[])))));
    assert_eq!(next.number, lost.number + 1);
}

#[test]
fn gives_up_a_seal_whose_blobs_are_not_acknowledged() {
    let mut desk = Desk::sealed();
    let first = sent(&desk.step(OwnerInput::State(state(20, &[("totals", "2")]))));
    desk.later(ANSWER_MS);
    let second = sent(&desk.step(OwnerInput::State(state(20, &[("totals", "2")]))));
    assert_ne!(first[0].0, second[0].0);
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(first[0].0))),
        []
    );
    seal_of(&sent(
        &desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(second[0].0))),
    ));
}

#[test]
fn waits_for_an_acknowledged_seal() {
    let mut desk = Desk::sealed();
    let (id, _) = seal_of(&sent(&desk.step(OwnerInput::State(state(20, &[])))));
    desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(RecordKey::Seal(id))));
    desk.later(10 * ANSWER_MS);
    assert_eq!(desk.owner.wants(), Urgency::No);
}

#[test]
fn deletes_everything_but_the_current_seal_its_blobs_and_the_claim() {
    let mut desk = Desk::new(1);
    let others = state_of_another(&state(10, &[("arms", "a"), ("totals", "1")]));
    desk.read_all(&others);
    desk.claims();
    let again = sent(&desk.end());
    desk.read_all(&again);
    let named: Vec<RecordKey> = others.iter().map(|(key, _)| *key).collect();
    let [claim, _, _, seal] = named[..] else {
        panic!("{named:?}");
    };
    assert_eq!(buried(&desk.end()), BTreeSet::from([claim, seal]));
    assert_eq!(desk.end(), [], "not each time");
    desk.read(&(claim, None));
    desk.now_ms += ANSWER_MS;
    assert_eq!(buried(&desk.end()), BTreeSet::from([seal]), "it was lost");
}

#[test]
fn deletes_nothing_while_the_next_seal_is_in_progress() {
    let mut desk = Desk::sealed();
    desk.read(&claim(0));
    let blobs = sent(&desk.step(OwnerInput::State(state(20, &[("totals", "2")]))));
    desk.read_all(&blobs);
    assert_eq!(desk.end(), [], "its blob is under way");
    let seal = sent(&desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0))));
    assert_eq!(desk.end(), [], "it is not in force yet");
    desk.read_all(&seal);
    assert!(buried(&desk.end()).contains(&RecordKey::Claim(session(0))));
}

/// A higher claim is read. Returns the number of the commit.
#[track_caller]
fn supersede(desk: &mut Desk, epoch: u64) -> u64 {
    match desk.read(&claim(epoch))[..] {
        [OwnerCommand::Commit { number }] => number,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_superseded_owner_seals_nothing_and_asks_the_group() {
    let mut desk = Desk::sealed();
    let blobs = sent(&desk.step(OwnerInput::State(state(20, &[("totals", "2")]))));
    supersede(&mut desk, 9);
    assert_eq!(
        desk.step(OwnerInput::Log(PartitionEvent::Acknowledged(blobs[0].0))),
        []
    );
    assert_eq!(desk.step(OwnerInput::State(state(30, &[]))), []);
    assert_eq!(desk.owner.wants(), Urgency::No);
}

#[test]
fn a_member_known_to_the_group_claims_again() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    let known = OwnerInput::Committed {
        number,
        is_known: true,
    };
    assert_eq!(claim_of(&desk.step(known)).epoch, 10);
}

#[test]
fn a_member_unknown_to_the_group_drops_the_pair() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    let unknown = OwnerInput::Committed {
        number,
        is_known: false,
    };
    assert_eq!(desk.step(unknown), [OwnerCommand::Drop]);
    assert_eq!(desk.shown(), ShownState::default());
    desk.claims();
    assert!(!desk.end().contains(&OwnerCommand::Begin), "there is a seal");
}

#[test]
fn ignores_the_answer_to_an_earlier_commit() {
    let mut desk = Desk::sealed();
    let first = supersede(&mut desk, 9);
    let answer = |number| OwnerInput::Committed {
        number,
        is_known: true,
    };
    let commands = desk.step(answer(first));
    desk.read_all(&sent(&commands));
    desk.end();
    let second = supersede(&mut desk, 20);
    assert_eq!(desk.step(answer(first)), []);
    claim_of(&desk.step(answer(second)));
}

#[test]
fn repeats_an_unanswered_commit() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    assert_eq!(desk.later(ANSWER_MS), [OwnerCommand::Commit { number }]);
}

/// Has it superseded by a session that never seals, so that it claims again. Returns its commands at the end that has its claim.
fn claim_again(desk: &mut Desk) -> Vec<OwnerCommand> {
    let number = supersede(desk, 9);
    let known = OwnerInput::Committed {
        number,
        is_known: true,
    };
    let claim = sent(&desk.step(known));
    desk.read_all(&claim);
    desk.end()
}

#[test]
fn keeps_memory_that_has_passed_through_the_base() {
    let mut desk = Desk::sealed();
    let late = desk.seals(&state(20, &[("totals", "2")]));
    let commands = claim_again(&mut desk);
    let (_, again) = seal_of(&sent(&commands));
    let (_, sealed) = seal_of(&late[1..]);
    assert_eq!((commands.len(), again), (1, sealed));
}

#[test]
fn restores_memory_that_has_not_passed_through_the_base() {
    let mut desk = Desk::sealed();
    let mut other = Desk::new(2);
    other.read(&claim(5));
    other.claims();
    other.end();
    let records = other.seals(&state(30, &[("totals", "3")]));
    desk.read_all(&records);
    let commands = claim_again(&mut desk);
    assert!(
        matches!(commands[0], OwnerCommand::Restore { .. }),
        "{commands:?}"
    );
}

#[test]
fn keeps_showing_until_a_higher_claim_has_sealed() {
    let mut desk = Desk::sealed();
    supersede(&mut desk, 9);
    assert!(desk.shown().live && desk.shown().settled.is_some());
    let id = SealId {
        session: session(9),
        number: 0,
    };
    let seal = Seal::new(state(30, &[]).header, [].into());
    desk.read(&(RecordKey::Seal(id), Some(seal.encode().into())));
    assert_eq!(desk.shown(), ShownState::default());
}

#[test]
fn settled_numbers_expire_with_their_lease() {
    let mut desk = Desk::sealed();
    let question = desk.owner.question(desk.now_ms);
    desk.later(4_000);
    desk.step(OwnerInput::Log(PartitionEvent::End(question)));
    for _ in 0..11 {
        desk.later(1_000);
    }
    assert!(desk.shown().settled.is_some());
    desk.later(1);
    assert_eq!(
        desk.shown(),
        ShownState {
            live: true,
            settled: None
        }
    );
    desk.end();
    assert!(desk.shown().settled.is_some());
}

#[test]
fn the_lease_is_not_renewed_while_the_highest_seal_contains_more() {
    let mut desk = Desk::sealed();
    desk.seals(&state(20, &[]));
    for _ in 0..16 {
        desk.later(1_000);
    }
    let again = claim_again(&mut desk);
    assert_eq!(desk.shown().settled, None);
    desk.read_all(&sent(&again));
    desk.end();
    assert!(desk.shown().settled.is_some());
}

#[test]
fn a_stalled_loop_shows_nothing() {
    let desk = Desk::sealed();
    assert!(desk.owner.showing().shown(desk.now_ms + 5_000).live);
    assert_eq!(
        desk.owner.showing().shown(desk.now_ms + 5_001),
        ShownState::default()
    );
}

#[test]
fn a_resumed_loop_shows_nothing_until_an_end_requested_since() {
    let mut desk = Desk::sealed();
    let before = desk.owner.question(desk.now_ms);
    desk.later(5_001);
    assert_eq!(desk.shown(), ShownState::default());
    desk.step(OwnerInput::Log(PartitionEvent::End(before)));
    assert_eq!(desk.shown(), ShownState::default());
    desk.end();
    assert!(desk.shown().live && desk.shown().settled.is_some());
}

#[test]
fn a_returning_pair_resumes_its_claim() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(OwnerInput::Revoked), []);
    assert_eq!(desk.shown(), ShownState::default());
    assert_eq!(desk.step(OwnerInput::State(state(20, &[]))), []);
    desk.step(OwnerInput::Assigned);
    let content = state(10, &[("arms", "a"), ("totals", "1")]).content;
    assert_eq!(desk.end(), [OwnerCommand::Show { content }]);
    assert_ne!(desk.step(OwnerInput::State(state(20, &[]))), []);
}

#[test]
fn a_pair_returning_from_another_owner_is_claimed_again() {
    let mut desk = Desk::sealed();
    desk.step(OwnerInput::Revoked);
    assert_eq!(desk.read(&claim(9)), []);
    desk.step(OwnerInput::Assigned);
    assert_eq!(claim_of(&desk.end()).epoch, 10);
}

#[test]
fn refuses_state_of_another_log_before_claiming() {
    let mut foreign = state(10, &[]).header;
    foreign.identity.topics[0].id += 1;
    let id = SealId {
        session: session(3),
        number: 0,
    };
    let unreadable = Refusal::Seal {
        id,
        error: RecordError::Version(2),
    };
    let other = Refusal::Identity {
        id,
        difference: LogDifference::MadeAnew {
            topic: "served".to_owned(),
            stored: 8,
            now: 7,
        },
    };
    let mut newer = Seal::new(state(10, &[]).header, [].into()).encode();
    newer[0] = 2;
    let foreign = Seal::new(foreign, [].into()).encode();
    for (value, refusal) in [(newer, unreadable), (foreign, other)] {
        let mut desk = Desk::new(1);
        desk.step(OwnerInput::Assigned);
        desk.read(&(RecordKey::Seal(id), Some(value.into())));
        assert_eq!(desk.end(), [OwnerCommand::Refuse(refusal)]);
        assert_eq!(desk.end(), []);
        // Until the group gives it again.
        desk.step(OwnerInput::Revoked);
        desk.step(OwnerInput::Assigned);
        assert!(matches!(desk.end()[..], [OwnerCommand::Refuse(_)]));
    }
}

/// Brokers that reported no ids report them after an upgrade.
#[test]
fn resumes_state_that_was_stored_without_topic_ids() {
    let state = State::new(
        {
            let mut header = state(10, &[]).header;
            header.identity.topics.iter_mut().for_each(|topic| topic.id = 0);
            header
        },
        [].into(),
    );
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&state));
    desk.claims();
    assert!(matches!(desk.end()[0], OwnerCommand::Restore { .. }));
}

#[test]
fn refuses_state_written_by_a_newer_version() {
    let mut desk = Desk::new(1);
    desk.step(OwnerInput::Assigned);
    let key = format!("2|{}|seal|3", namespace());
    desk.read_text(&key, Some(b""));
    assert_eq!(desk.end(), [OwnerCommand::Refuse(Refusal::Key(key))]);
}

#[test]
fn refuses_an_incomplete_base() {
    let mut records = state_of_another(&state(10, &[("totals", "1")]));
    for damage in [None, Some(SharedBytes::from(&b"2"[..]))] {
        records[1].1 = damage;
        let mut desk = Desk::new(1);
        desk.read_all(&records);
        desk.claims();
        let commands = desk.end();
        let [OwnerCommand::Refuse(Refusal::Damage(damage))] = &commands[..] else {
            panic!("{commands:?}");
        };
        assert_eq!(&*damage.role, "totals");
    }
}

#[test]
fn a_running_owner_rewrites_a_lost_log() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(OwnerInput::Log(PartitionEvent::StartOver)), []);
    let claim = sent(&desk.end());
    desk.read_all(&claim);
    let again = sent(&desk.end());
    assert_eq!(again.len(), 2, "both blobs, for memory is there");
    assert_eq!(desk.owner.trouble(), Some(StateFault::Lost(Loss::Log)));
    desk.writes(again);
    desk.end();
    assert_eq!(desk.owner.trouble(), None);
}

#[test]
fn ignores_an_end_requested_before_the_loss() {
    let mut desk = Desk::sealed();
    let question = desk.owner.question(desk.now_ms);
    desk.step(OwnerInput::Log(PartitionEvent::StartOver));
    assert_eq!(desk.step(OwnerInput::Log(PartitionEvent::End(question))), []);
}
