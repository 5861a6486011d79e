//! Each handler alone: what it does with an input, and what it leaves unchanged.

use std::collections::BTreeSet;

use super::{Command, Input, Loss, Owner, Refusal, Settings, Shown, Trouble, Wanted};
use crate::journal::content::{Bytes, State};
use crate::journal::fixture::{header, identity, roles, state};
use crate::journal::identity::Difference;
use crate::journal::key::{Key, Namespace, SealId, Session};
use crate::journal::record::{Claim, RecordError, Seal};

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
type Sent = (Key, Option<Bytes>);

impl Desk {
    fn new(seed: u64) -> Desk {
        let settings = Settings {
            namespace: namespace(),
            identity: identity(),
            claim: Claim::default(),
            answer_ms: ANSWER_MS,
            lease_ms: LEASE_MS,
            still_ms: 5_000,
        };
        Desk {
            owner: Owner::new(settings, seed),
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

    fn step(&mut self, input: Input) -> Vec<Command> {
        self.owner.step(self.now_ms, input)
    }

    fn later(&mut self, ms: i64) -> Vec<Command> {
        self.now_ms += ms;
        self.step(Input::Tick)
    }

    fn read(&mut self, (key, value): &Sent) -> Vec<Command> {
        self.read_text(&key.text(namespace()), value.as_deref())
    }

    fn read_text(&mut self, key: &str, value: Option<&[u8]>) -> Vec<Command> {
        self.end += 1;
        self.step(Input::Record {
            offset: self.end - 1,
            key: key.as_bytes(),
            value,
        })
    }

    fn read_all(&mut self, records: &[Sent]) {
        for record in records {
            self.read(record);
        }
    }

    fn end(&mut self) -> Vec<Command> {
        let question = self.owner.question(self.now_ms);
        self.step(Input::End(question))
    }

    fn shown(&self) -> Shown {
        self.owner.showing().shown(self.now_ms)
    }

    /// Is assigned, claims, and reads its claim.
    fn claims(&mut self) -> Session {
        self.step(Input::Assigned);
        let commands = self.end();
        let session = claim_of(&commands);
        self.read_all(&sent(&commands));
        session
    }

    /// Offers a state; all that is sent is acknowledged and read. Returns it.
    fn seals(&mut self, state: &State) -> Vec<Sent> {
        let blobs = sent(&self.step(Input::State(state.clone())));
        self.writes(blobs)
    }

    /// Acknowledges and reads all records, and the ones sent in response. Returns all of them.
    fn writes(&mut self, mut records: Vec<Sent>) -> Vec<Sent> {
        let mut n_acknowledged = 0;
        while let Some((key, value)) = records.get(n_acknowledged).cloned() {
            n_acknowledged += 1;
            if value.is_some() {
                records.extend(sent(&self.step(Input::Acknowledged(key))));
            }
        }
        self.read_all(&records);
        records
    }
}

fn sent(commands: &[Command]) -> Vec<Sent> {
    let sent = commands.iter().filter_map(|command| match command {
        Command::Send { key, value } => Some((*key, value.clone())),
        _ => None,
    });
    sent.collect()
}

#[track_caller]
fn claim_of(commands: &[Command]) -> Session {
    match commands {
        [
            Command::Send {
                key: Key::Claim(session),
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
        [(Key::Seal(id), Some(value))] => (*id, Seal::decode(value).expect("it is a seal")),
        other => panic!("{other:?}"),
    }
}

fn session(epoch: u64) -> Session {
    Session { epoch, unique: 99 }
}

fn claim(epoch: u64) -> Sent {
    (Key::Claim(session(epoch)), Some(Claim::default().encode().into()))
}

fn buried(commands: &[Command]) -> BTreeSet<Key> {
    let sent = sent(commands);
    sent.iter()
        .filter(|(_, value)| value.is_none())
        .map(|(key, _)| *key)
        .collect()
}

#[test]
fn claims_at_the_end_and_higher_than_what_it_has_read() {
    let mut desk = Desk::new(1);
    assert_eq!(desk.step(Input::Assigned), []);
    assert_eq!(desk.read(&claim(6)), []);
    assert_eq!(claim_of(&desk.end()).epoch, 7);
}

#[test]
fn an_end_that_was_asked_for_before_the_last_record_is_none() {
    let mut desk = Desk::new(1);
    desk.step(Input::Assigned);
    let question = desk.owner.question(desk.now_ms);
    desk.read(&claim(6));
    assert_eq!(desk.step(Input::End(question)), []);
}

#[test]
fn who_hears_nothing_more_claims_and_does_nothing_else() {
    let quiet = |desk: &mut Desk| {
        let question = desk.owner.question(desk.now_ms);
        desk.step(Input::Quiet(question))
    };
    let mut desk = Desk::sealed();
    assert_eq!(quiet(&mut desk), [], "no lease, no garbage");
    desk.step(Input::Revoked);
    desk.step(Input::Assigned);
    claim_of(&quiet(&mut desk));
    assert_eq!(quiet(&mut desk), []);
}

#[test]
fn claims_again_higher_and_as_another_one_if_no_answer_comes() {
    let mut desk = Desk::new(1);
    desk.step(Input::Assigned);
    let first = claim_of(&desk.end());
    assert_eq!(desk.later(ANSWER_MS - 1), []);
    let second = claim_of(&desk.later(1));
    assert_eq!(second.epoch, first.epoch + 1);
    assert_ne!(second.unique, first.unique);
    desk.step(Input::Acknowledged(Key::Claim(first)));
    assert_eq!(claim_of(&desk.later(ANSWER_MS)).epoch, first.epoch + 2);
}

#[test]
fn an_acknowledged_claim_is_waited_for_until_an_end_that_was_asked_for_since_lacks_it() {
    let mut desk = Desk::new(1);
    desk.step(Input::Assigned);
    let lost = claim_of(&desk.end());
    let before = desk.owner.question(desk.now_ms);
    desk.step(Input::Acknowledged(Key::Claim(lost)));
    assert_eq!(desk.later(10 * ANSWER_MS), []);
    assert_eq!(desk.step(Input::End(before)), [], "it may lie behind that end");
    let next = claim_of(&desk.end());
    assert_eq!(next.epoch, lost.epoch + 1);
    assert_ne!(next.unique, lost.unique);
}

/// A replica that lacked it has become the leader.
#[test]
fn an_acknowledged_seal_is_waited_for_until_an_end_that_was_asked_for_since_lacks_it() {
    let mut desk = Desk::sealed();
    let offered = state(20, &[("totals", "2")]);
    let seals = |desk: &mut Desk| {
        let blobs = sent(&desk.step(Input::State(offered.clone())));
        seal_of(&sent(&desk.step(Input::Acknowledged(blobs[0].0))))
    };
    let (lost, _) = seals(&mut desk);
    let before = desk.owner.question(desk.now_ms);
    desk.step(Input::Acknowledged(Key::Seal(lost)));
    desk.later(10 * ANSWER_MS);
    desk.step(Input::End(before));
    assert_eq!(desk.owner.wants(), Wanted::No, "it may lie behind that end");
    desk.end();
    assert_eq!(desk.owner.wants(), Wanted::AtOnce);
    let (next, seal) = seals(&mut desk);
    assert_eq!((next.number, seal.content), (lost.number + 1, offered.content));
}

#[test]
fn a_base_whose_seal_was_acknowledged_and_is_lost_is_sealed_again() {
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&state(10, &[("totals", "1")])));
    desk.claims();
    let (lost, seal) = seal_of(&sent(&desk.end()));
    desk.step(Input::Acknowledged(Key::Seal(lost)));
    desk.now_ms += 1;
    let (next, again) = seal_of(&sent(&desk.end()));
    assert_eq!((next.number, again), (lost.number + 1, seal));
}

#[test]
fn begins_and_wants_a_state_at_once_where_there_is_none() {
    let mut desk = Desk::new(1);
    desk.claims();
    assert_eq!(desk.owner.wants(), Wanted::No);
    assert_eq!(desk.end(), [Command::Begin]);
    assert_eq!(desk.owner.wants(), Wanted::AtOnce);
}

/// A state of somebody else, as it lies in the log.
fn state_of_another(content: &State) -> Vec<Sent> {
    let mut other = Desk::new(2);
    let claim = other.claims();
    other.end();
    let mut records = vec![(Key::Claim(claim), Some(Claim::default().encode().into()))];
    records.extend(other.seals(content));
    records
}

#[test]
fn goes_on_from_the_highest_seal_and_seals_it_again_with_its_blobs() {
    let base = state(10, &[("totals", "1")]);
    let records = state_of_another(&base);
    let mut desk = Desk::new(1);
    desk.read_all(&records);
    let session = desk.claims();
    let commands = desk.end();
    let Command::Restore { seal, roles } = &commands[0] else {
        panic!("{commands:?}");
    };
    assert_eq!((seal.content, &*roles["totals"]), (base.content, &b"1"[..]));
    let (id, again) = seal_of(&sent(&commands));
    assert_eq!(id, SealId { session, number: 0 });
    assert_eq!(again, **seal);
    assert_eq!(desk.owner.wants(), Wanted::No, "the base comes first");
}

#[test]
fn the_base_is_shown_once_it_is_sealed_again() {
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
        Command::Show {
            content: base.content
        }
    );
    assert_eq!(desk.shown().settled, Some(base.content));
}

#[test]
fn a_base_that_is_not_answered_is_sealed_again_under_another_key() {
    let mut desk = Desk::new(1);
    desk.read_all(&state_of_another(&state(10, &[("totals", "1")])));
    desk.claims();
    let (first, seal) = seal_of(&sent(&desk.end()));
    assert_eq!(desk.later(ANSWER_MS - 1), []);
    let (second, again) = seal_of(&sent(&desk.later(1)));
    assert_eq!((second.number, again), (first.number + 1, seal));
}

#[test]
fn a_seal_is_sent_once_its_blobs_are_acknowledged() {
    let mut desk = Desk::holder();
    let offered = state(10, &[("arms", "a"), ("totals", "1")]);
    let blobs = sent(&desk.step(Input::State(offered.clone())));
    assert_eq!(blobs.len(), 2);
    assert_eq!(desk.step(Input::Acknowledged(blobs[0].0)), []);
    assert_eq!(desk.step(Input::Acknowledged(blobs[0].0)), [], "the same");
    let (_, seal) = seal_of(&sent(&desk.step(Input::Acknowledged(blobs[1].0))));
    assert_eq!(seal.content, offered.content);
}

#[test]
fn blobs_that_did_not_change_are_named_again() {
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
fn of_a_role_that_grows_only_the_last_part_is_sent_again() {
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
fn equal_bytes_are_one_blob() {
    let mut desk = Desk::holder();
    let offered = state(10, &[("cell 0 1", "same"), ("cell 1 1", "same")]);
    let records = desk.seals(&offered);
    let (_, seal) = seal_of(&records[1..]);
    assert_eq!(seal.table["cell 0 1"], seal.table["cell 1 1"]);
}

#[test]
fn a_state_whose_seal_would_not_fit_into_a_record_is_refused_and_not_sent() {
    let mut desk = Desk::holder();
    let bytes: String = (0..20_000).map(|number| format!("{number:08}")).collect();
    let large = State::cut(header(10), roles(&[("totals", &bytes)]), 8);
    let commands = desk.step(Input::State(large));
    assert!(
        matches!(commands[..], [Command::Refuse(Refusal::TooLarge { .. })]),
        "{commands:?}"
    );
}

#[test]
fn blobs_that_are_answered_one_by_one_are_waited_for() {
    let mut desk = Desk::holder();
    let blobs = sent(&desk.step(Input::State(state(10, &[("arms", "a"), ("totals", "1")]))));
    desk.later(ANSWER_MS - 1);
    desk.step(Input::Acknowledged(blobs[0].0));
    desk.later(ANSWER_MS - 1);
    seal_of(&sent(&desk.step(Input::Acknowledged(blobs[1].0))));
}

#[test]
fn memory_that_is_gone_is_made_anew_by_a_new_claim() {
    for is_away in [false, true] {
        let mut desk = Desk::sealed();
        if is_away {
            desk.step(Input::Revoked);
        }
        desk.step(Input::Forgotten);
        assert_eq!(desk.shown(), Shown::default());
        desk.claims();
        let commands = desk.end();
        assert!(matches!(commands[0], Command::Restore { .. }), "{commands:?}");
    }
}

#[test]
fn a_state_is_shown_once_it_is_in_force() {
    let mut desk = Desk::holder();
    let offered = state(10, &[]);
    let records = sent(&desk.step(Input::State(offered.clone())));
    let (id, _) = seal_of(&records);
    assert_eq!(desk.step(Input::Acknowledged(Key::Seal(id))), []);
    desk.read_all(&records);
    assert_eq!(desk.shown().settled, None);
    let content = offered.content;
    assert_eq!(desk.end()[0], Command::Show { content });
    assert_eq!(
        desk.shown(),
        Shown {
            live: true,
            settled: Some(content)
        }
    );
}

#[test]
fn the_same_state_is_not_sealed_twice() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.owner.wants(), Wanted::WhenDue);
    let same = state(10, &[("arms", "a"), ("totals", "1")]);
    assert_eq!(desk.step(Input::State(same)), []);
}

#[test]
fn a_state_that_was_read_less_far_is_not_sealed() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(Input::State(state(9, &[]))), []);
    assert_ne!(desk.step(Input::State(state(11, &[]))), []);
}

#[test]
fn in_doubt_the_next_seal_has_other_keys_and_is_wanted_at_once() {
    let mut desk = Desk::sealed();
    let (lost, _) = seal_of(&sent(&desk.step(Input::State(state(20, &[])))));
    assert_eq!(desk.owner.wants(), Wanted::No);
    desk.later(ANSWER_MS);
    assert_eq!(desk.owner.wants(), Wanted::AtOnce);
    let (next, _) = seal_of(&sent(&desk.step(Input::State(state(20, &[])))));
    assert_eq!(next.number, lost.number + 1);
}

#[test]
fn a_seal_whose_blobs_are_not_answered_is_given_up() {
    let mut desk = Desk::sealed();
    let first = sent(&desk.step(Input::State(state(20, &[("totals", "2")]))));
    desk.later(ANSWER_MS);
    let second = sent(&desk.step(Input::State(state(20, &[("totals", "2")]))));
    assert_ne!(first[0].0, second[0].0);
    assert_eq!(desk.step(Input::Acknowledged(first[0].0)), []);
    seal_of(&sent(&desk.step(Input::Acknowledged(second[0].0))));
}

#[test]
fn an_acknowledged_seal_is_waited_for() {
    let mut desk = Desk::sealed();
    let (id, _) = seal_of(&sent(&desk.step(Input::State(state(20, &[])))));
    desk.step(Input::Acknowledged(Key::Seal(id)));
    desk.later(10 * ANSWER_MS);
    assert_eq!(desk.owner.wants(), Wanted::No);
}

#[test]
fn all_but_the_seal_in_force_its_blobs_and_the_claim_is_buried() {
    let mut desk = Desk::new(1);
    let others = state_of_another(&state(10, &[("arms", "a"), ("totals", "1")]));
    desk.read_all(&others);
    desk.claims();
    let again = sent(&desk.end());
    desk.read_all(&again);
    let named: Vec<Key> = others.iter().map(|(key, _)| *key).collect();
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
fn nothing_is_buried_while_the_next_seal_is_under_way() {
    let mut desk = Desk::sealed();
    desk.read(&claim(0));
    let blobs = sent(&desk.step(Input::State(state(20, &[("totals", "2")]))));
    desk.read_all(&blobs);
    assert_eq!(desk.end(), [], "its blob is under way");
    let seal = sent(&desk.step(Input::Acknowledged(blobs[0].0)));
    assert_eq!(desk.end(), [], "it is not in force yet");
    desk.read_all(&seal);
    assert!(buried(&desk.end()).contains(&Key::Claim(session(0))));
}

/// A higher claim is read. Returns the number of the commit.
#[track_caller]
fn supersede(desk: &mut Desk, epoch: u64) -> u64 {
    match desk.read(&claim(epoch))[..] {
        [Command::Commit { number }] => number,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_superseded_seals_nothing_and_asks_the_group() {
    let mut desk = Desk::sealed();
    let blobs = sent(&desk.step(Input::State(state(20, &[("totals", "2")]))));
    supersede(&mut desk, 9);
    assert_eq!(desk.step(Input::Acknowledged(blobs[0].0)), []);
    assert_eq!(desk.step(Input::State(state(30, &[]))), []);
    assert_eq!(desk.owner.wants(), Wanted::No);
}

#[test]
fn whom_the_group_knows_claims_again() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    let known = Input::Committed {
        number,
        is_known: true,
    };
    assert_eq!(claim_of(&desk.step(known)).epoch, 10);
}

#[test]
fn whom_the_group_does_not_know_drops_the_pair() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    let unknown = Input::Committed {
        number,
        is_known: false,
    };
    assert_eq!(desk.step(unknown), [Command::Drop]);
    assert_eq!(desk.shown(), Shown::default());
    desk.claims();
    assert!(!desk.end().contains(&Command::Begin), "there is a seal");
}

#[test]
fn an_answer_to_an_earlier_question_says_nothing() {
    let mut desk = Desk::sealed();
    let first = supersede(&mut desk, 9);
    let answer = |number| Input::Committed {
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
fn a_commit_without_an_answer_is_repeated() {
    let mut desk = Desk::sealed();
    let number = supersede(&mut desk, 9);
    assert_eq!(desk.later(ANSWER_MS), [Command::Commit { number }]);
}

/// Has it superseded by a session that never seals, so that it claims again. Returns its commands at the end that has its claim.
fn claim_again(desk: &mut Desk) -> Vec<Command> {
    let number = supersede(desk, 9);
    let known = Input::Committed {
        number,
        is_known: true,
    };
    let claim = sent(&desk.step(known));
    desk.read_all(&claim);
    desk.end()
}

#[test]
fn memory_that_has_passed_through_the_base_is_kept() {
    let mut desk = Desk::sealed();
    let late = desk.seals(&state(20, &[("totals", "2")]));
    let commands = claim_again(&mut desk);
    let (_, again) = seal_of(&sent(&commands));
    let (_, sealed) = seal_of(&late[1..]);
    assert_eq!((commands.len(), again), (1, sealed));
}

#[test]
fn memory_that_has_not_is_made_anew() {
    let mut desk = Desk::sealed();
    let mut other = Desk::new(2);
    other.read(&claim(5));
    other.claims();
    other.end();
    let records = other.seals(&state(30, &[("totals", "3")]));
    desk.read_all(&records);
    let commands = claim_again(&mut desk);
    assert!(matches!(commands[0], Command::Restore { .. }), "{commands:?}");
}

#[test]
fn what_is_shown_stays_until_a_higher_claim_has_sealed() {
    let mut desk = Desk::sealed();
    supersede(&mut desk, 9);
    assert!(desk.shown().live && desk.shown().settled.is_some());
    let id = SealId {
        session: session(9),
        number: 0,
    };
    let seal = Seal::new(state(30, &[]).header, [].into());
    desk.read(&(Key::Seal(id), Some(seal.encode().into())));
    assert_eq!(desk.shown(), Shown::default());
}

#[test]
fn what_is_settled_is_shown_for_a_lease_after_the_question() {
    let mut desk = Desk::sealed();
    let question = desk.owner.question(desk.now_ms);
    desk.later(4_000);
    desk.step(Input::End(question));
    for _ in 0..11 {
        desk.later(1_000);
    }
    assert!(desk.shown().settled.is_some());
    desk.later(1);
    assert_eq!(
        desk.shown(),
        Shown {
            live: true,
            settled: None
        }
    );
    desk.end();
    assert!(desk.shown().settled.is_some());
}

#[test]
fn the_lease_is_not_prolonged_while_the_highest_seal_holds_more() {
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
fn nothing_is_shown_of_a_loop_that_stands_still() {
    let desk = Desk::sealed();
    assert!(desk.owner.showing().shown(desk.now_ms + 5_000).live);
    assert_eq!(desk.owner.showing().shown(desk.now_ms + 5_001), Shown::default());
}

#[test]
fn a_loop_that_stood_still_shows_nothing_until_an_end_that_was_asked_for_since() {
    let mut desk = Desk::sealed();
    let before = desk.owner.question(desk.now_ms);
    desk.later(5_001);
    assert_eq!(desk.shown(), Shown::default());
    desk.step(Input::End(before));
    assert_eq!(desk.shown(), Shown::default());
    desk.end();
    assert!(desk.shown().live && desk.shown().settled.is_some());
}

#[test]
fn a_pair_that_comes_back_goes_on_with_its_claim() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(Input::Revoked), []);
    assert_eq!(desk.shown(), Shown::default());
    assert_eq!(desk.step(Input::State(state(20, &[]))), []);
    desk.step(Input::Assigned);
    let content = state(10, &[("arms", "a"), ("totals", "1")]).content;
    assert_eq!(desk.end(), [Command::Show { content }]);
    assert_ne!(desk.step(Input::State(state(20, &[]))), []);
}

#[test]
fn a_pair_that_comes_back_from_another_is_claimed() {
    let mut desk = Desk::sealed();
    desk.step(Input::Revoked);
    assert_eq!(desk.read(&claim(9)), []);
    desk.step(Input::Assigned);
    assert_eq!(claim_of(&desk.end()).epoch, 10);
}

#[test]
fn state_of_another_log_is_refused_before_it_is_claimed() {
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
        difference: Difference::MadeAnew {
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
        desk.step(Input::Assigned);
        desk.read(&(Key::Seal(id), Some(value.into())));
        assert_eq!(desk.end(), [Command::Refuse(refusal)]);
        assert_eq!(desk.end(), []);
        // Until the group gives it again.
        desk.step(Input::Revoked);
        desk.step(Input::Assigned);
        assert!(matches!(desk.end()[..], [Command::Refuse(_)]));
    }
}

/// Brokers that reported no ids report them after an upgrade.
#[test]
fn state_that_was_stored_without_ids_of_topics_is_gone_on_from_with_them() {
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
    assert!(matches!(desk.end()[0], Command::Restore { .. }));
}

#[test]
fn what_a_newer_version_has_written_is_not_gone_on_from() {
    let mut desk = Desk::new(1);
    desk.step(Input::Assigned);
    let key = format!("2|{}|seal|3", namespace());
    desk.read_text(&key, Some(b""));
    assert_eq!(desk.end(), [Command::Refuse(Refusal::Key(key))]);
}

#[test]
fn a_base_that_is_not_whole_is_refused() {
    let mut records = state_of_another(&state(10, &[("totals", "1")]));
    for damage in [None, Some(Bytes::from(&b"2"[..]))] {
        records[1].1 = damage;
        let mut desk = Desk::new(1);
        desk.read_all(&records);
        desk.claims();
        let commands = desk.end();
        let [Command::Refuse(Refusal::Damage(damage))] = &commands[..] else {
            panic!("{commands:?}");
        };
        assert_eq!(&*damage.role, "totals");
    }
}

#[test]
fn who_lives_writes_again_what_the_topic_has_lost() {
    let mut desk = Desk::sealed();
    assert_eq!(desk.step(Input::StartOver), []);
    let claim = sent(&desk.end());
    desk.read_all(&claim);
    let again = sent(&desk.end());
    assert_eq!(again.len(), 2, "both blobs, for memory is there");
    assert_eq!(desk.owner.trouble(), Some(Trouble::Lost(Loss::Log)));
    desk.writes(again);
    desk.end();
    assert_eq!(desk.owner.trouble(), None);
}

#[test]
fn an_answer_to_a_question_before_the_loss_is_none() {
    let mut desk = Desk::sealed();
    let question = desk.owner.question(desk.now_ms);
    desk.step(Input::StartOver);
    assert_eq!(desk.step(Input::End(question)), []);
}
