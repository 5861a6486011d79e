//! Clauses of the recovery rules. Tests can leave out each of them to show that numbers go wrong, or that the pair never comes
//! to rest.

/// Declares the clauses and the list of all of them.
macro_rules! clauses {
    ($($(#[$doc:meta])* $clause:ident,)+) => {
        /// Requirement of a rule. docs/recovery-proof.md describes what happens without it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Clause {
            $($(#[$doc])* $clause,)+
        }

        impl Clause {
            pub const ALL: [Clause; [$(Clause::$clause),+].len()] = [$(Clause::$clause),+];
        }
    };
}

clauses! {
    /// S1: an end counts if it was asked for after the last record that was read.
    EndIsAskedForAfterTheLastRecord,
    /// S1: no claim is higher than the claim of the highest seal.
    NoClaimIsHigher,
    /// S2: an acknowledged seal is not shown before it is in force.
    ShowWhatIsInForce,
    /// S2: nothing is shown before its seal.
    ShowNothingUnsealed,
    /// S2: a base is shown once it is sealed again.
    ShowTheBaseOnceSealed,
    /// S3: a claim is higher than all claims read before.
    ClaimHigher,
    /// S3: each claim has a unique u.
    EachClaimIsNew,
    /// S3: an unanswered claim is repeated with a higher number.
    ClaimAgainUnanswered,
    /// S3: an acknowledged claim is also repeated if an end asked for since then does not contain it.
    ClaimAgainOnceLost,
    /// S3: the base is read up to an end that contains the own claim.
    BaseIsReadAfterTheClaim,
    /// S3: the session with the highest claim at that end holds the pair.
    TheHighestClaimHolds,
    /// S3: the base is sealed again immediately.
    SealTheBaseAgain,
    /// S3: the start of counting is sealed immediately.
    SealTheBegin,
    /// S4: the base is in force again before a new state is sealed.
    TheBaseComesFirst,
    /// S4: read positions are not below the positions in the state it builds on.
    SealNoLessThanTheBase,
    /// S4: a seal names only blobs of the state it builds on, and blobs sent for it.
    NameBlobsOfTheLastSeal,
    /// S4: a seal is sent once its blobs are acknowledged.
    BlobsComeFirst,
    /// S4: if a seal is in doubt, another one follows.
    SealAgainInDoubt,
    /// S4: that one has new keys.
    NewKeysInDoubt,
    /// S4: another one also follows if the seal was acknowledged, but an end asked for since then does not contain it.
    SealAgainOnceLost,
    /// S5: garbage is collected.
    CollectGarbage,
    /// S5: collection waits until the own seal is in force.
    CollectOnceInForce,
    /// S5: that seal is the last one sent.
    CollectAfterTheLastSeal,
    /// S5: no blob of the next seal is in flight.
    CollectBetweenSeals,
    /// S5: the own claim is not garbage.
    KeepTheClaim,
    /// S6: a superseded session seals nothing more.
    SealNothingSuperseded,
    /// S6: a pair is hidden when a seal with a higher claim is read.
    HideAtAHigherSeal,
    /// S6: a superseded session asks the group before it claims again.
    AskTheGroup,
    /// S6: a member that the group does not know drops the pair.
    DropWhatTheGroupTook,
    /// S6: in-memory state is kept only if it has passed through the new base.
    KeepMemoryIfItPassedThrough,
    /// S7: settled numbers are shown for the duration of a lease.
    ShowForALease,
    /// S7: the lease starts when the end was asked for.
    LeaseFromTheQuestion,
    /// S7: at that end, the highest seal contained the shown state.
    LeaseForTheHighestSeal,
    /// S7: nothing is shown while the loop is stalled.
    HideIfTheLoopStandsStill,
    /// S7: after a stall nothing is shown until an end asked for since then has the own claim as the highest.
    ShowAgainAfterAnEnd,
}

/// Rules in use: all of them, except in tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct JournalRules {
    without: Option<Clause>,
}

impl JournalRules {
    /// Leaves out a clause, for tests that show its purpose.
    #[doc(hidden)]
    pub fn without(clause: Clause) -> JournalRules {
        JournalRules {
            without: Some(clause),
        }
    }

    pub(super) fn hold(self, clause: Clause) -> bool {
        self.without != Some(clause)
    }
}
