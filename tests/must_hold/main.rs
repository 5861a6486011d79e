//! What comparisons must hold, in small: few seeded weeks of few users, through the code that ships.
#[path = "../../benches/statistics/checks/mod.rs"]
mod checks;
