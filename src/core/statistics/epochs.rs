//! Weights of an experiment's epochs, so that a change of shares does not look like an effect.
//!
//! `overlap` uses w_e ∝ N_T N_C/(N_T + N_C), the weights of least variance. `lists` uses w_e ∝ N_T + N_C.

/// Weighting of epochs. N are lists of the arm and of its control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EpochWeights {
    /// w ∝ N_T N_C/(N_T + N_C). A ramp hardly changes the weights of past epochs.
    #[default]
    Overlap,
    /// w ∝ N_T + N_C. A ramp breaks the sequence (6.6% false alarms).
    Lists,
}

impl EpochWeights {
    /// Returns the weights of epochs with these lists of an arm and of its control. They add up to 1, and are 0 if an arm has
    /// no list.
    pub fn of(self, lists: &[[f64; 2]]) -> Vec<f64> {
        let raw: Vec<f64> = lists.iter().map(|lists| self.raw(*lists)).collect();
        let sum: f64 = raw.iter().sum();
        let share = |weight: &f64| if sum > 0.0 { weight / sum } else { 0.0 };
        raw.iter().map(share).collect()
    }

    fn raw(self, [arm, control]: [f64; 2]) -> f64 {
        match self {
            _ if arm <= 0.0 || control <= 0.0 => 0.0,
            EpochWeights::Overlap => arm * control / (arm + control),
            EpochWeights::Lists => arm + control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_hand() {
        let lists = [[10.0, 90.0], [0.0, 500.0], [50.0, 50.0]];
        assert_eq!(EpochWeights::Overlap.of(&lists), [9.0 / 34.0, 0.0, 25.0 / 34.0]);
        assert_eq!(EpochWeights::Lists.of(&lists), [0.5, 0.0, 0.5]);
        assert_eq!(EpochWeights::Overlap.of(&[[0.0, 5.0]]), [0.0]);
    }
}
