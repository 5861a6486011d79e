//! Root finding.

/// Finds the x in [low, high] at which the continuous `function` changes its sign, to `tolerance`. Ridders, A new algorithm for
/// computing a single root of a real continuous function, IEEE Trans. Circuits Syst. 26, 1979: the bracket at least halves with
/// each step.
pub fn root(function: impl Fn(f64) -> f64, [mut low, mut high]: [f64; 2], tolerance: f64) -> f64 {
    let [mut at_low, mut at_high] = [function(low), function(high)];
    let mut last = f64::NAN;
    for _ in 0..N_STEPS {
        let middle = 0.5 * (low + high);
        let at_middle = function(middle);
        let scale = (at_middle * at_middle - at_low * at_high).sqrt();
        if at_middle == 0.0 || scale == 0.0 {
            return middle;
        }
        let x = middle + (middle - low) * (at_low - at_high).signum() * at_middle / scale;
        if (x - last).abs() <= tolerance {
            return x;
        }
        last = x;
        let at_x = function(x);
        // Keeps the smallest bracket in which the sign changes.
        if differ(at_middle, at_x) {
            [low, at_low, high, at_high] = [middle, at_middle, x, at_x];
        } else if differ(at_low, at_x) {
            [high, at_high] = [x, at_x];
        } else {
            [low, at_low] = [x, at_x];
        }
    }
    last
}

/// Limit on the steps: as many as bisection alone would need.
const N_STEPS: usize = 100;

fn differ(one: f64, other: f64) -> bool {
    (one < 0.0) != (other < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_zeros_of_rising_and_falling_functions() {
        let cube = |x: f64| x * x * x - 2.0;
        assert!((root(cube, [0.0, 5.0], 1e-13) - 2.0_f64.cbrt()).abs() < 1e-12);
        let falling = |x: f64| 3.0 - x.exp();
        assert!((root(falling, [-50.0, 2.0], 1e-13) - 3.0_f64.ln()).abs() < 1e-12);
        let steep = |x: f64| x.powi(9);
        assert!(root(steep, [-1.0, 3.0], 1e-13).abs() < 1e-2);
    }
}
