//! Quality of the lists of an arm and its control: lists without a user, lists of one heavy user, and missing lists. Intervals
//! are wide enough only if few lists lack a user, and arms are comparable only if they miss the same share.

use super::refused::RefusalShares;
use super::settings::{Settings, Unit};
use super::totals::{ArmTotals, Totals};

/// Shares of lists, over all epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct UnitShares {
    /// Lists without a user, in the arm and in its control. None if requests are assigned.
    pub without_user: Option<[f64; 2]>,
    /// Lists of the user with the most, in the arm or the control, whichever share is larger. None if not counted.
    pub top_user: Option<f64>,
    /// Lists left out by the cap, in the arm and in its control. None without a cap.
    pub capped: Option<[f64; 2]>,
    pub refused: RefusalShares,
}

impl UnitShares {
    pub fn new(totals: &Totals, settings: &Settings, arm: &str) -> UnitShares {
        let sides = [arm, &settings.control].map(|name| ArmUnits::new(totals, name));
        let top_users = sides
            .iter()
            .filter_map(|side| Some(share(side.top_user?, side.lists)));
        // Capped lists are not among `lists`.
        let capped = sides.map(|side| share(side.capped, side.lists + side.capped));
        UnitShares {
            without_user: (settings.unit == Unit::User)
                .then(|| sides.map(|side| share(side.without_user, side.lists))),
            top_user: top_users.reduce(f64::max),
            capped: capped.iter().any(|share| *share > 0.0).then_some(capped),
            refused: RefusalShares::new(totals, settings, arm),
        }
    }
}

/// An arm over all epochs.
#[derive(Debug, Clone, Copy, Default)]
struct ArmUnits {
    lists: f64,
    without_user: f64,
    capped: f64,
    top_user: Option<f64>,
}

impl ArmUnits {
    fn new(totals: &Totals, name: &str) -> ArmUnits {
        let mut side = ArmUnits::default();
        for arm in totals.epochs.iter().filter_map(|epoch| epoch.arms.get(name)) {
            let ArmTotals {
                lists,
                lists_without_user,
                capped_lists,
                top_user_lists,
                ..
            } = arm;
            side.lists += lists.iter().sum::<f64>();
            side.without_user += lists_without_user;
            side.capped += capped_lists;
            let top_users = [side.top_user, *top_user_lists];
            side.top_user = top_users.into_iter().flatten().reduce(f64::max);
        }
        side
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::totals::Epoch;
    use super::*;

    #[test]
    fn shares_by_hand() {
        let arm = |lists: f64, without: f64, capped: f64, top: f64| ArmTotals {
            lists: vec![lists / 2.0; 2],
            lists_without_user: without,
            capped_lists: capped,
            top_user_lists: Some(top),
            ..ArmTotals::default()
        };
        let arms = [
            ("a".to_owned(), arm(10.0, 2.0, 30.0, 5.0)),
            ("b".to_owned(), arm(20.0, 1.0, 0.0, 2.0)),
        ];
        let totals = Totals {
            epochs: vec![Epoch {
                arms: arms.into(),
                ..Epoch::default()
            }],
            multi_arm_users: None,
        };
        let settings = Settings::new("b");
        let units = UnitShares::new(&totals, &settings, "a");
        assert_eq!(units.without_user, Some([0.2, 0.05]));
        assert_eq!(units.top_user, Some(0.5));
        assert_eq!(units.capped, Some([0.75, 0.0]));
        let by_request = Settings {
            unit: Unit::Request,
            ..settings
        };
        assert_eq!(UnitShares::new(&totals, &by_request, "a").without_user, None);
    }
}
