//! The clauses of the rules, each of which can be left out: tests show that numbers go wrong, or peace is lost, without it.

/// What a rule demands. docs/recovery-proof.md says what happens without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clause {
    /// S1: an end counts if it was asked for after the last record that was read.
    EndIsAskedForAfterTheLastRecord,
    /// S1: no claim is higher than that of the highest seal.
    NoClaimIsHigher,
    /// S2: nothing is shown at an acknowledgement.
    ShowWhatIsInForce,
    /// S2: nothing is shown ahead of its seal.
    ShowNothingUnsealed,
    /// S2: a base is shown once it is sealed again.
    ShowTheBaseOnceSealed,
    /// S3: a claim is higher than all that were read.
    ClaimHigher,
    /// S3: each claim has a u of its own.
    EachClaimIsNew,
    /// S3: a claim without an answer is repeated, higher.
    ClaimAgainUnanswered,
    /// S3: so is one that was acknowledged, if an end that was asked for since does not have it.
    ClaimAgainOnceLost,
    /// S3: the base is what stands at an end that has the own claim.
    BaseIsReadAfterTheClaim,
    /// S3: he holds whose claim is the highest at that end.
    TheHighestClaimHolds,
    /// S3: the base is sealed again at once.
    SealTheBaseAgain,
    /// S3: where counting begins is sealed at once.
    SealTheBegin,
    /// S4: the base is in force again before a state is sealed.
    TheBaseComesFirst,
    /// S4: read positions are not below those of what it is on top of.
    SealNoLessThanTheBase,
    /// S4: blobs that are named are those of what it is on top of, or were sent for it.
    NameBlobsOfTheLastSeal,
    /// S4: a seal is sent when its blobs are acknowledged.
    BlobsComeFirst,
    /// S4: in doubt, there is a next one.
    SealAgainInDoubt,
    /// S4: the next one has new keys.
    NewKeysInDoubt,
    /// S4: so it is if the seal was acknowledged, and an end that was asked for since does not have it.
    SealAgainOnceLost,
    /// S5: garbage is collected.
    CollectGarbage,
    /// S5: only once the own seal is in force.
    CollectOnceInForce,
    /// S5: and that is the last one that was sent.
    CollectAfterTheLastSeal,
    /// S5: and no blob of a next one is under way.
    CollectBetweenSeals,
    /// S5: the own claim is no garbage.
    KeepTheClaim,
    /// S6: who is superseded seals nothing more.
    SealNothingSuperseded,
    /// S6: what is shown ends when a seal of a higher claim is read.
    HideAtAHigherSeal,
    /// S6: who is superseded asks the group before he claims again.
    AskTheGroup,
    /// S6: who is not known to the group drops the pair.
    DropWhatTheGroupTook,
    /// S6: memory is kept if it has passed through the new base.
    KeepMemoryIfItPassedThrough,
    /// S7: what is settled is shown for a lease.
    ShowForALease,
    /// S7: which begins when the end was asked for.
    LeaseFromTheQuestion,
    /// S7: at which the highest seal held what is shown.
    LeaseForTheHighestSeal,
    /// S7: nothing is shown of a loop that stands still.
    HideIfTheLoopStandsStill,
    /// S7: nor once it goes on, until an end that was asked for since has the own claim as the highest.
    ShowAgainAfterAnEnd,
}

impl Clause {
    pub const ALL: [Clause; 35] = [
        Clause::EndIsAskedForAfterTheLastRecord,
        Clause::NoClaimIsHigher,
        Clause::ShowWhatIsInForce,
        Clause::ShowNothingUnsealed,
        Clause::ShowTheBaseOnceSealed,
        Clause::ClaimHigher,
        Clause::EachClaimIsNew,
        Clause::ClaimAgainUnanswered,
        Clause::ClaimAgainOnceLost,
        Clause::BaseIsReadAfterTheClaim,
        Clause::TheHighestClaimHolds,
        Clause::SealTheBaseAgain,
        Clause::SealTheBegin,
        Clause::TheBaseComesFirst,
        Clause::SealNoLessThanTheBase,
        Clause::NameBlobsOfTheLastSeal,
        Clause::BlobsComeFirst,
        Clause::SealAgainInDoubt,
        Clause::NewKeysInDoubt,
        Clause::SealAgainOnceLost,
        Clause::CollectGarbage,
        Clause::CollectOnceInForce,
        Clause::CollectAfterTheLastSeal,
        Clause::CollectBetweenSeals,
        Clause::KeepTheClaim,
        Clause::SealNothingSuperseded,
        Clause::HideAtAHigherSeal,
        Clause::AskTheGroup,
        Clause::DropWhatTheGroupTook,
        Clause::KeepMemoryIfItPassedThrough,
        Clause::ShowForALease,
        Clause::LeaseFromTheQuestion,
        Clause::LeaseForTheHighestSeal,
        Clause::HideIfTheLoopStandsStill,
        Clause::ShowAgainAfterAnEnd,
    ];
}

/// The rules: all of them, but in tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    without: Option<Clause>,
}

impl Rules {
    /// For tests, which show what the clause is for.
    #[doc(hidden)]
    pub fn without(clause: Clause) -> Rules {
        Rules {
            without: Some(clause),
        }
    }

    pub(super) fn hold(self, clause: Clause) -> bool {
        self.without != Some(clause)
    }
}
