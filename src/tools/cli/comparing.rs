//! Flags for the comparison of arms, for all experiments or for a single one.
//!
//! A value for a single experiment starts with its name: `ranker=base` for a control, `ranker:…` for everything else. After a
//! backslash, the next character is part of a name.

use abgauge_core::statistics::Unit;
use clap::Args;

use crate::settings::UNITS;

/// Heading in the help.
pub(super) const COMPARISON: &str = "Comparison of arms";

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Also compare each arm with this one: differences, lifts with their intervals, and p
    ///
    /// Applies to every experiment with such an arm, or as EXPERIMENT=CONTROL to one; may be repeated. The whole input is one analysis: the
    /// result is valid only if the end date was chosen before looking at results. Lists of one user count together, so events should
    /// carry a `user_id`. In names write `\=`, `\:`, `\,` and `\\` for these characters.
    #[arg(help_heading = COMPARISON, long, value_name = "CONTROL", value_parser = parse_control)]
    pub compare: Vec<Scoped<String>>,
    /// Expected shares of users, such as control=0.5,neural=0.5: without them nothing is decided
    ///
    /// Shares apply to the experiments that have most of these arms; others are compared without shares. If one of the arms has no
    /// list, the comparison is invalid(srm). To set the shares of one experiment, write ranker:control=0.5,neural=0.5. The flags below
    /// take such a prefix too: a value for one experiment overrides the value for all.
    #[arg(help_heading = COMPARISON, long, value_name = "ARM=SHARE,…", value_parser = parse_numbers, requires = "compare")]
    pub shares: Vec<Scoped<Vec<(String, f64)>>>,
    /// Metrics that decide, such as hit_rate@10, or ranker:hit_rate@10
    #[arg(help_heading = COMPARISON, long, value_name = "METRIC,…", value_parser = parse_names, requires = "compare")]
    pub primary: Vec<Scoped<Vec<String>>>,
    /// Metrics that must not fall by more than this share, such as ctr@10=0.02, or ranker:ctr@10=0.02
    #[arg(help_heading = COMPARISON, long, value_name = "METRIC=MARGIN,…", value_parser = parse_numbers, requires = "compare")]
    pub guardrail: Vec<Scoped<Vec<(String, f64)>>>,
    /// The smallest relative difference that matters, such as 0.02, or ranker:0.02 [default: 0.05]
    #[arg(help_heading = COMPARISON, long, value_name = "SHARE", value_parser = parse_mde, requires = "compare")]
    pub mde: Vec<Scoped<f64>>,
    /// Unit that was assigned to arms: user or request, or ranker:request [default: user]
    ///
    /// If more than 20% of the lists of an arm have no user, the comparison is invalid(users), unless requests were assigned. With
    /// `request`, a list without a user counts as a unit of its own, no sample ratio is tested, and metrics per user cannot decide.
    #[arg(help_heading = COMPARISON, long, value_name = "UNIT", value_parser = parse_unit, requires = "compare")]
    pub unit: Vec<Scoped<Unit>>,
    /// Count only the first lists of each user in comparisons, such as 200
    ///
    /// Use it against crawlers and very heavy users. The result shows how many lists were left out; values of metrics keep all lists.
    #[arg(help_heading = COMPARISON, long, value_name = "LISTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000), requires = "compare")]
    pub max_lists_per_user: Option<u32>,
}

/// Value of a flag for all experiments, or for a single one.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoped<T> {
    /// Name of the experiment. `None`: all of them.
    pub experiment: Option<String>,
    pub value: T,
}

/// Parses `CONTROL` or `EXPERIMENT=CONTROL`.
fn parse_control(text: &str) -> Result<Scoped<String>, String> {
    match split(text, '=')[..] {
        [control] => Ok(Scoped {
            experiment: None,
            value: name(control)?,
        }),
        [experiment, control] => Ok(Scoped {
            experiment: Some(name(experiment)?),
            value: name(control)?,
        }),
        _ => Err("write CONTROL or EXPERIMENT=CONTROL, and \\= for each = that is part of a name".to_owned()),
    }
}

fn parse_names(text: &str) -> Result<Scoped<Vec<String>>, String> {
    scoped(text, |rest| split(rest, ',').into_iter().map(name).collect())
}

fn parse_numbers(text: &str) -> Result<Scoped<Vec<(String, f64)>>, String> {
    scoped(text, |rest| split(rest, ',').into_iter().map(number).collect())
}

fn parse_mde(text: &str) -> Result<Scoped<f64>, String> {
    scoped(text, parse_share)
}

fn parse_unit(text: &str) -> Result<Scoped<Unit>, String> {
    scoped(text, |rest| {
        let mut units = UNITS.into_iter();
        let unit = units.find(|(word, _)| *word == rest.trim());
        unit.map(|(_, unit)| unit)
            .ok_or_else(|| format!("write {}", UNITS.map(|(word, _)| word).join(" or ")))
    })
}

/// Parses `REST` or `EXPERIMENT:REST`.
fn scoped<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Scoped<T>, String> {
    let first = split(text, ':')[0];
    let rest = text[first.len()..].strip_prefix(':');
    Ok(match rest {
        Some(rest) => Scoped {
            experiment: Some(name(first)?),
            value: parse(rest)?,
        },
        None => Scoped {
            experiment: None,
            value: parse(text)?,
        },
    })
}

/// Parses `NAME=NUMBER`. The name may contain `=`.
fn number(text: &str) -> Result<(String, f64), String> {
    let last = split(text, '=').pop().unwrap_or_default();
    let before = text[..text.len() - last.len()].strip_suffix('=');
    let before = before.ok_or("write NAME=SHARE, such as control=0.5")?;
    Ok((name(before)?, parse_share(last)?))
}

pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .trim()
        .parse()
        .map_err(|_| "write a number between 0 and 1")?;
    let is_inside = share > 0.0 && share < 1.0;
    is_inside
        .then_some(share)
        .ok_or_else(|| "write a number above 0 and below 1".to_owned())
}

/// Splits at a separator, except after a backslash. Returns at least one part.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut is_escaped = false;
    let parts = text.split(|char| {
        let ends = char == separator && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        ends
    });
    parts.collect()
}

/// Parses a name: trims spaces and removes the backslashes before separators.
fn name(text: &str) -> Result<String, String> {
    let mut name = String::with_capacity(text.len());
    let mut chars = text.trim().chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(char @ ('\\' | '=' | ':' | ',')) => name.push(char),
                _ => return Err("write \\\\ for a backslash that is part of a name".to_owned()),
            },
            char => name.push(char),
        }
    }
    match name.is_empty() {
        true => Err("a name is missing".to_owned()),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T>(experiment: &str, value: T) -> Result<Scoped<T>, String> {
        let experiment = Some(experiment.to_owned()).filter(|name| !name.is_empty());
        Ok(Scoped { experiment, value })
    }

    #[test]
    fn a_control_applies_to_all_experiments_or_to_one() {
        assert_eq!(parse_control("base"), of("", "base".to_owned()));
        assert_eq!(parse_control("ranker=base"), of("ranker", "base".to_owned()));
        assert_eq!(parse_control(" a:b = x,y "), of("a:b", "x,y".to_owned()));
        assert_eq!(parse_control(r"a\=b"), of("", "a=b".to_owned()));
        assert_eq!(parse_control(r"a\=b=c\\\=d"), of("a=b", r"c\=d".to_owned()));
        for wrong in ["a=b=c", "=base", "ranker=", "", r"a\b", r"a\"] {
            assert!(parse_control(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_apply_to_all_experiments_or_to_one() {
        let shares = |shares: &[(&str, f64)]| -> Vec<(String, f64)> {
            let shares = shares.iter().map(|(arm, share)| ((*arm).to_owned(), *share));
            shares.collect()
        };
        let halves = shares(&[("neural", 0.5), ("base", 0.5)]);
        assert_eq!(parse_numbers("neural=.5, base=.5"), of("", halves.clone()));
        assert_eq!(parse_numbers("ranker:neural=.5,base=.5"), of("ranker", halves));
        let odd = shares(&[("a=b", 0.25), ("x:y,z", 0.75)]);
        assert_eq!(parse_numbers(r"a=b=.25,x\:y\,z=.75"), of("", odd.clone()));
        assert_eq!(parse_numbers(r"r\:s:a\=b=.25,x:y\,z=.75"), of("r:s", odd));
        for wrong in [
            "neural",
            "neural=",
            "=0.5",
            "ranker:",
            "ranker:neural",
            ":neural=.5",
            "a=.5,",
        ] {
            assert!(parse_numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn metrics_the_effect_and_the_unit_apply_to_all_experiments_or_to_one() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            parse_names("mrr,hit_rate@10"),
            of("", names(&["mrr", "hit_rate@10"]))
        );
        assert_eq!(parse_names("ranker:mrr"), of("ranker", names(&["mrr"])));
        assert_eq!(parse_mde("0.02"), of("", 0.02));
        assert_eq!(parse_mde("ranker:0.02"), of("ranker", 0.02));
        assert_eq!(parse_unit("request"), of("", Unit::Request));
        assert_eq!(parse_unit("ranker: user"), of("ranker", Unit::User));
        assert_eq!(parse_unit("list"), Err("write user or request".to_owned()));
        for wrong in ["0", "1", "x", "ranker:", "ranker:1.5"] {
            assert!(parse_mde(wrong).is_err(), "{wrong}");
        }
    }
}
