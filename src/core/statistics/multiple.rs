//! Corrections for several hypotheses. A hypothesis is rejected if its corrected p is at most α.

/// Bonferroni: p_adj = min(1, m p).
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    p.iter().map(|p| (m * p).min(1.0)).collect()
}

/// Holm, step-down: p_adj(k) = max over j ≤ k of min(1, (m − j + 1) p(j)), p ascending. The probability of any false alarm is at
/// most α. Holm, Scand. J. Stat. 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        // A corrected p is never below an earlier one, or a hypothesis could be rejected although a stronger one was not.
        largest = largest.max((p.len() - rank) as f64 * p[at]).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

/// Benjamini and Yekutieli, step-up: p_adj(k) = min over j ≥ k of min(1, m H p(j)/j) with H = 1 + 1/2 + … + 1/m, p ascending. On
/// average, at most a share α of the rejected hypotheses is false, under any dependence. Benjamini and Yekutieli, Ann. Stat. 2001.
pub fn benjamini_yekutieli(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    let harmonic: f64 = (1..=p.len()).map(|j| 1.0 / j as f64).sum();
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        // From the largest p down, so that corrected values keep the order of the p.
        smallest = smallest.min(m * harmonic / (rank + 1) as f64 * p[at]);
        adjusted[at] = smallest;
    }
    adjusted
}

/// e-BH, from logarithms of e-values: p_adj(k) = min over j ≥ k of min(1, m/(j e(j))), e descending. On average, at most
/// a share α of the rejected hypotheses is false, under any dependence. Wang and Ramdas, J. R. Stat. Soc. B 2022.
pub fn e_bh(ln_e: &[f64]) -> Vec<f64> {
    let m = ln_e.len() as f64;
    let falling: Vec<f64> = ln_e.iter().map(|ln_e| -ln_e).collect();
    let mut adjusted = vec![1.0; ln_e.len()];
    let mut smallest = 1.0_f64;
    for (rank, at) in ascending(&falling).into_iter().enumerate().rev() {
        // From the smallest e up, so that corrected values keep the order of the e.
        smallest = smallest.min(m / (rank + 1) as f64 * falling[at].exp());
        adjusted[at] = smallest;
    }
    adjusted
}

fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_hypotheses_by_hand() {
        let p = [0.03, 0.01, 0.5];
        assert_eq!(bonferroni(&p), [0.09, 0.03, 1.0]);
        assert_eq!(holm(&p), [0.06, 0.03, 0.5]);
        // H = 11/6: 3 · 11/6 · 0.03/2, 3 · 11/6 · 0.01/1, 3 · 11/6 · 0.5/3.
        for (found, expected) in benjamini_yekutieli(&p).iter().zip([0.0825, 0.055, 5.5 / 6.0]) {
            assert!((found - expected).abs() < 1e-12);
        }
        let e = [f64::from(40).ln(), f64::from(100).ln(), 2.0_f64.ln()];
        let found = e_bh(&e);
        // 3/(2 · 40), 3/(1 · 100), 3/(3 · 2).
        for (found, expected) in found.iter().zip([0.0375, 0.03, 0.5]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn adjusted_values_keep_the_order_and_lie_between_p_and_bonferroni(
            p in prop::collection::vec(0.0_f64..=1.0, 1..12)
        ) {
            let [holm, bonferroni] = [holm(&p), bonferroni(&p)];
            let by = benjamini_yekutieli(&p);
            for one in 0..p.len() {
                prop_assert!(p[one] <= by[one] && by[one] <= 1.0);
                prop_assert!(p[one] <= holm[one] && holm[one] <= bonferroni[one]);
                for other in 0..p.len() {
                    prop_assert!(p[one] > p[other] || holm[one] <= holm[other]);
                    prop_assert!(p[one] > p[other] || by[one] <= by[other]);
                }
            }
        }

        /// Definition: reject the k largest, for the largest k with e(k) ≥ m/(k α).
        #[test]
        fn e_bh_follows_its_definition(e in prop::collection::vec(0.01_f64..500.0, 1..12)) {
            let (m, alpha) = (e.len() as f64, 0.05);
            let mut falling = e.clone();
            falling.sort_by(|one, other| other.total_cmp(one));
            let k = (1..=e.len()).rev().find(|k| falling[k - 1] >= m / (*k as f64 * alpha));
            let least = k.map(|k| falling[k - 1]);
            let ln_e: Vec<f64> = e.iter().map(|e| e.ln()).collect();
            for (e, adjusted) in e.iter().zip(e_bh(&ln_e)) {
                prop_assert_eq!(adjusted <= alpha, least.is_some_and(|least| *e >= least));
            }
        }
    }
}
