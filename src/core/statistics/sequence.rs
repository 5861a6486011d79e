//! Tests and intervals that hold at every look: the normal mixture, with Student's t in place of unknown variances.
//!
//! ```text
//! x = τ²/V ;  c(x, α) = √((1 + 1/x)(ln(1 + x) + 2 ln(1/α))) ;  c_t = t_ν.isf(Φ.sf(c)) ;  Δ ± c_t √V
//! z* = sign(T) Φ.isf(t_ν.sf(|T|)) ;  ln E = −½ ln(1 + x) + ½ · x/(1 + x) · z*² ;  p = min(1, 1/max over time of E)
//! ```
//! Sources: Robbins 1970; Howard et al., Time-uniform, nonparametric, nonasymptotic confidence sequences, Ann. Stat. 2021,
//! section 3.2; Johari et al., Always valid inference, Oper. Res. 2022. The guarantee is asymptotic, and checked by simulation.

use std::f64::consts::LN_2;

use super::effect::{Effect, Spread};
use super::root::root;
use super::student;

/// Computes c(x, α) in standard errors, from the logarithm of α. At least 1, and infinite at x = 0.
pub fn boundary(x: f64, ln_alpha: f64) -> f64 {
    ((1.0 + 1.0 / x) * (x.ln_1p() - 2.0 * ln_alpha)).sqrt()
}

/// Computes c_t, the t with the same tail as the normal deviate c. Infinite beyond the range of floats.
pub fn boundary_t(x: f64, ln_alpha: f64, degrees: f64) -> f64 {
    student::at_normal(boundary(x, ln_alpha), degrees)
}

/// Computes z*, the normal deviate with the same tail as `t`.
pub fn z_star(t: f64, degrees: f64) -> f64 {
    student::to_normal(t.abs(), degrees).copysign(t)
}

/// Computes ln E of a two-sided test with a normal mixture of variance τ² = x V.
pub fn ln_e(x: f64, z: f64) -> f64 {
    0.5 * (x / (1.0 + x) * z * z - x.ln_1p())
}

/// Evidence of an effect at this look, for a mixture with variance τ².
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// x = τ²/V.
    pub x: f64,
    /// z*.
    pub z: f64,
}

impl Evidence {
    /// Computes the evidence. `tau` has the unit of the effect.
    pub fn new(effect: &Effect, tau: f64) -> Evidence {
        Evidence {
            x: x(tau, &effect.spread),
            z: z_star(effect.t(), effect.spread.degrees),
        }
    }

    /// Returns ln E. None if it is not finite.
    pub fn ln_e(self) -> Option<f64> {
        finite(ln_e(self.x, self.z))
    }
}

/// Computes ln E of an effect at this look. None if it is not finite.
pub fn ln_e_now(effect: &Effect, tau: f64) -> Option<f64> {
    Evidence::new(effect, tau).ln_e()
}

/// Computes c_t √V, half the width of the sequence's interval. May be infinite.
pub fn half_width(effect: &Effect, tau: f64, alpha: f64) -> f64 {
    of_one(&effect.spread, tau, alpha.ln())
}

/// Computes h(α), half the width of the strict interval: the sum over both arms, each at α/2. May be infinite.
pub fn strict_half_width(effect: &Effect, tau: f64, alpha: f64) -> f64 {
    strict(effect, tau, alpha.ln())
}

/// Computes −ln of the smallest strict p, from `so_far` and this look. The p of a look has h(p) = |value|, or is 1 if h(1)
/// reaches it. None if nothing can be tested.
pub fn strict_surprise(effect: &Effect, tau: f64, so_far: f64) -> Option<f64> {
    let excess = |surprise: f64| {
        let excess = strict(effect, tau, -surprise).ln() - effect.value.abs().ln();
        excess.clamp(-FAR, FAR)
    };
    let at_once = excess(so_far);
    // h grows as p falls. If h at the smallest p so far already reaches the value, this look has no smaller p.
    if at_once.is_nan() || at_once >= 0.0 {
        return finite(so_far).filter(|_| !at_once.is_nan());
    }
    // Doubles the step until it brackets the root.
    let mut further = 1.0;
    while excess(so_far + further) < 0.0 {
        further *= 2.0;
    }
    finite(root(excess, [so_far, so_far + further], TOLERANCE))
}

/// Computes p from the largest surprise so far, which is ln E or −ln p.
pub fn p_of(surprise: f64) -> f64 {
    (-surprise).exp().min(1.0)
}

/// Computes x = τ²/V, the information relative to the effect of interest.
pub fn x(tau: f64, spread: &Spread) -> f64 {
    tau * tau / spread.variance
}

/// Bound on ln h − ln |value|, of which only the sign matters.
const FAR: f64 = 1e3;
/// Tolerance of ln p. 1e-7 would be enough.
const TOLERANCE: f64 = 1e-12;

fn strict(effect: &Effect, tau: f64, ln_alpha: f64) -> f64 {
    let of_arm = |spread: &Spread| of_one(spread, tau, ln_alpha - LN_2);
    effect.arms.iter().map(of_arm).sum()
}

fn of_one(spread: &Spread, tau: f64, ln_alpha: f64) -> f64 {
    if spread.variance <= 0.0 {
        return 0.0; // limit of c √V as V goes to 0
    }
    boundary_t(x(tau, spread), ln_alpha, spread.degrees) * spread.error()
}

pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_boundary_by_hand() {
        // x = 1: √(2 (ln 2 + 2 ln 20)).
        let expected = (2.0 * (2.0_f64.ln() + 2.0 * 20.0_f64.ln())).sqrt();
        assert!((boundary(1.0, 0.05_f64.ln()) - expected).abs() < 1e-14);
        // x = 3, z = 2: −ln 2 + ½ · ¾ · 4.
        assert!((ln_e(3.0, 2.0) - (1.5 - LN_2)).abs() < 1e-15);
        assert_eq!(boundary(0.0, -1.0), f64::INFINITY);
    }

    #[test]
    fn the_interval_excludes_zero_when_e_reaches_one_over_alpha() {
        let (x, ln_alpha) = (2.5, 0.05_f64.ln());
        assert!((ln_e(x, boundary(x, ln_alpha)) + ln_alpha).abs() < 1e-13);
    }

    #[test]
    fn strict_p_is_one_inside_and_tiny_far_outside() {
        assert_eq!(strict_surprise(&effect(0.5, 1.0, 100.0), 1.0, 0.0), Some(0.0));
        assert_eq!(strict_surprise(&effect(0.0, 1.0, 100.0), 1.0, 0.0), Some(0.0));
        assert_eq!(strict_surprise(&effect(0.5, 1.0, 100.0), 1.0, 2.5), Some(2.5));
        let far = strict_surprise(&effect(1e3, 1.0, 255.0), 1.0, 0.0).expect("it is finite");
        assert!(far > 300.0 && p_of(far) < 1e-100);
    }

    #[test]
    fn an_arm_without_spread_adds_no_width() {
        let mut one_sided = effect(1.0, 1.0, 50.0);
        one_sided.arms[0].variance = 0.0;
        let width = strict_half_width(&one_sided, 1.0, 0.1);
        assert!((2.0 * width - strict_half_width(&effect(1.0, 1.0, 50.0), 1.0, 0.1)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn intervals_nest_in_alpha(effect in effects(), tau in 0.01_f64..10.0) {
            for width in [half_width, strict_half_width] {
                prop_assert!(width(&effect, tau, 0.2) <= width(&effect, tau, 0.05));
                prop_assert!(width(&effect, tau, 0.05) <= width(&effect, tau, 1e-5));
            }
        }

        #[test]
        fn the_sequence_is_wider_than_one_look(effect in effects(), tau in 0.01_f64..10.0) {
            prop_assert!(half_width(&effect, tau, 0.05) > effect.spread.half_width(0.05));
        }

        #[test]
        fn swapping_the_arms_keeps_the_evidence(effect in effects(), tau in 0.01_f64..10.0) {
            let [arm, control] = effect.arms;
            let swapped = Effect { value: -effect.value, arms: [control, arm], ..effect };
            prop_assert_eq!(ln_e_now(&effect, tau), ln_e_now(&swapped, tau));
            let [one, other] = [effect, swapped].map(|effect| strict_surprise(&effect, tau, 0.0).unwrap());
            prop_assert!((one - other).abs() <= 1e-9 * (1.0 + one));
        }

        #[test]
        fn the_strict_p_is_the_level_at_which_the_interval_ends_at_zero(effect in effects(), tau in 0.01_f64..10.0) {
            let surprise = strict_surprise(&effect, tau, 0.0).expect("it is finite");
            prop_assert!(surprise >= 0.0);
            let width = strict(&effect, tau, -surprise);
            let ends_there = (width / effect.value.abs() - 1.0).abs() < 1e-8;
            prop_assert!(ends_there || (surprise == 0.0 && width >= effect.value.abs()));
        }
    }

    fn effects() -> impl Strategy<Value = Effect> {
        (-8.0_f64..8.0, 0.01_f64..4.0, 29.0_f64..255.0)
            .prop_map(|(value, variance, degrees)| effect(value, variance, degrees.floor()))
    }

    fn effect(value: f64, variance: f64, degrees: f64) -> Effect {
        let arms = [0.4, 0.6].map(|share| Spread {
            variance: share * variance,
            degrees,
        });
        let spread = Spread { variance, degrees };
        Effect {
            value,
            spread,
            arms: if degrees == 50.0 { [spread; 2] } else { arms },
        }
    }
}
