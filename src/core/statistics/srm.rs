//! Sample ratio mismatch: a test at every look that arms get their shares of users.
//!
//! ```text
//! ln BF = lnΓ(c) − lnΓ(c + N) + Σ [lnΓ(c θ_k + n_k) − lnΓ(c θ_k)] − Σ n_k ln θ_k ;  p = min(1, 1/max BF)
//! ```
//! n are exact counts of first exposures, never of requests and never from a sketch. θ are expected shares, c = 1000.
//! Source: Lindon and Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022.

use libm::lgamma;

use super::probability;

/// c: expected closeness of the alternative to θ.
const CONCENTRATION: f64 = 1000.0;

/// Largest p at which arms count as not getting their shares.
pub const ALARM: f64 = 0.001;

/// Writes the result of the test: "traffic split OK (p = 0.830)".
pub fn in_words(p: f64) -> String {
    let result = if p <= ALARM { "not as planned" } else { "OK" };
    format!("traffic split {result} ({})", probability::in_words(p))
}

/// An arm's first exposures n_k and expected share θ_k in an epoch. Shares need not add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExposedArm {
    pub users: f64,
    pub share: f64,
}

/// Returns ln of the Bayes factor against the expected shares in one epoch. None without shares above 0. The factors of several
/// epochs are added up as logarithms, because each epoch has its own shares.
pub fn ln_bayes_factor(arms: &[ExposedArm]) -> Option<f64> {
    let sum: f64 = arms.iter().map(|arm| arm.share).sum();
    let users: f64 = arms.iter().map(|arm| arm.users).sum();
    let of_arm = |arm: &ExposedArm| {
        // Shares may have any unit, such as percent.
        let share = arm.share / sum;
        let prior = CONCENTRATION * share;
        lgamma(prior + arm.users) - lgamma(prior) - arm.users * share.ln()
    };
    let arms: f64 = arms.iter().map(of_arm).sum();
    let value = lgamma(CONCENTRATION) - lgamma(CONCENTRATION + users) + arms;
    (sum > 0.0 && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn the_result_is_in_plain_words() {
        assert_eq!(in_words(0.83), "traffic split OK (p = 0.830)");
        assert_eq!(in_words(1.0), "traffic split OK (p = 1)");
        assert_eq!(in_words(ALARM), "traffic split not as planned (p = 0.001)");
        assert_eq!(in_words(1e-9), "traffic split not as planned (p < 0.001)");
    }

    use super::*;

    #[test]
    fn the_first_user_is_no_evidence_by_hand() {
        // Γ(c)/Γ(c+1) · Γ(cθ+1)/Γ(cθ) · 1/θ = cθ/(cθ).
        let found = ln_bayes_factor(&[exposed(1, 0.9), exposed(0, 0.1)]).expect("shares are there");
        assert!(found.abs() < 1e-11);
    }

    #[test]
    fn two_users_of_one_arm_by_hand() {
        // 500 · 501/(1000 · 1001) · 4.
        let found = ln_bayes_factor(&[exposed(2, 0.5), exposed(0, 0.5)]).expect("shares are there");
        assert!((found - (2.0 * 501.0 / 1001.0_f64).ln()).abs() < 1e-11);
    }

    #[test]
    fn missing_or_zero_shares_have_no_bayes_factor() {
        assert_eq!(ln_bayes_factor(&[]), None);
        assert_eq!(ln_bayes_factor(&[exposed(5, 0.0), exposed(5, 1.0)]), None);
    }

    proptest! {
        /// Product user by user: the probability of the next user's arm, given the users before, over its share.
        #[test]
        fn the_bayes_factor_is_the_product_over_users(arms in prop::collection::vec(0_usize..3, 0..200)) {
            let shares = [0.5, 0.3, 0.2];
            let mut users = [0_u32; 3];
            let mut twin = 0.0;
            for arm in arms {
                let seen = f64::from(users.iter().sum::<u32>());
                let predicted = (CONCENTRATION * shares[arm] + f64::from(users[arm])) / (CONCENTRATION + seen);
                twin += (predicted / shares[arm]).ln();
                users[arm] += 1;
            }
            let arms = [0, 1, 2].map(|arm| exposed(users[arm], shares[arm]));
            prop_assert!((ln_bayes_factor(&arms).unwrap() - twin).abs() < 1e-9);
        }

        #[test]
        fn the_bayes_factor_ignores_order_and_unit_of_shares(users in prop::collection::vec(0_u32..5000, 3)) {
            let arms = |scale: f64| [0.5, 0.3, 0.2].iter().zip(&users)
                .map(|(share, users)| exposed(*users, share * scale)).collect::<Vec<_>>();
            let [shares, percent] = [arms(1.0), arms(100.0).into_iter().rev().collect()];
            let [one, other] = [shares, percent].map(|arms| ln_bayes_factor(&arms).unwrap());
            prop_assert!((one - other).abs() < 1e-8);
        }
    }

    fn exposed(users: u32, share: f64) -> ExposedArm {
        ExposedArm {
            users: users.into(),
            share,
        }
    }
}
