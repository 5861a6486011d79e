//! A strict parser of the Prometheus text format 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

/// One sample of `/metrics` or of an answer from Prometheus.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    /// Unescaped values by label name.
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Sample {
    /// Returns whether the sample carries all of these labels. It may carry others.
    pub fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels
            .iter()
            .all(|(name, value)| self.labels.get(*name).is_some_and(|own| own == value))
    }
}

/// Samples of one scrape, in their order.
#[derive(Debug, Default)]
pub struct Exposition {
    pub samples: Vec<Sample>,
}

impl Exposition {
    /// Parses a body of `/metrics`. In addition to the grammar it enforces what Prometheus' own checks do: each family is
    /// declared once, before its samples, its lines are contiguous, and no series occurs twice.
    pub fn parse(text: &str) -> Result<Exposition, String> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line does not end".to_owned());
        }
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            reader
                .line(line)
                .map_err(|error| format!("line {}: {error}: {line}", index + 1))?;
        }
        Ok(Exposition {
            samples: reader.samples,
        })
    }

    /// Returns the samples with this name that carry all of these labels.
    pub fn select<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&str, &str)],
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.name == name && sample.has(labels))
    }

    /// Returns the value of the only matching sample, or `None` if there is none. Panics if there are several.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.select(name, labels);
        let value = found.next()?.value;
        if let Some(other) = found.next() {
            panic!("{name} {labels:?} names several samples, {other:?} among them");
        }
        Some(value)
    }

    /// Sums all matching samples.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.select(name, labels).map(|sample| sample.value).sum()
    }
}

#[derive(Default)]
struct Reader {
    samples: Vec<Sample>,
    series: BTreeSet<(String, BTreeMap<String, String>)>,
    /// Type by family name.
    types: BTreeMap<String, String>,
    helps: BTreeSet<String>,
    /// Families with at least one sample so far. A family's lines must be contiguous.
    begun: BTreeSet<String>,
    current: Option<String>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        match line.split_once(' ') {
            _ if line.is_empty() => Ok(()),
            Some(("#", rest)) => self.comment(rest),
            _ => self.sample(line),
        }
    }

    fn comment(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.splitn(3, ' ');
        let (kind, family, text) = (
            words.next(),
            words.next().unwrap_or(""),
            words.next().unwrap_or(""),
        );
        match kind {
            Some("TYPE") if !matches!(text, "counter" | "gauge" | "histogram" | "summary" | "untyped") => {
                Err(format!("no type is called {text:?}"))
            }
            Some("TYPE") if self.begun.contains(family) => Err("TYPE after samples of its family".to_owned()),
            Some("TYPE") if self.types.insert(family.to_owned(), text.to_owned()).is_some() => {
                Err("a second TYPE of one family".to_owned())
            }
            Some("HELP") if !self.helps.insert(family.to_owned()) => {
                Err("a second HELP of one family".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let sample = parse_sample(line)?;
        let family = self.family(&sample.name);
        if self.current.as_ref() != Some(&family) {
            if !self.begun.insert(family.clone()) {
                return Err(format!("the lines of family {family} do not stand together"));
            }
            self.current = Some(family);
        }
        if !self.series.insert((sample.name.clone(), sample.labels.clone())) {
            return Err("the same series twice".to_owned());
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Returns the family of a sample: its name without the suffix of a histogram's or summary's parts.
    fn family(&self, name: &str) -> String {
        let stem = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix));
        match stem.map(|stem| (stem, self.types.get(stem).map(String::as_str))) {
            Some((stem, Some("histogram" | "summary"))) => stem.to_owned(),
            _ => name.to_owned(),
        }
    }
}

fn parse_sample(line: &str) -> Result<Sample, String> {
    let (name, mut rest) = take_name(line, true)?;
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = take_name(rest, false)?;
            let quoted = after.strip_prefix("=\"").ok_or("a label without =\"")?;
            let (value, after) = take_quoted(quoted)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("label {label} twice"));
            }
            rest = match after.strip_prefix(',') {
                Some(after) => after,
                None if after.starts_with('}') => after,
                None => return Err("neither , nor } after a label".to_owned()),
            };
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            digits.parse().map_err(|_| format!("{digits:?} is no number"))?
        }
        other => return Err(format!("{other:?} is no value")),
    };
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// Splits `[a-zA-Z_][a-zA-Z0-9_]*` off the front. With `colons`, as in a metric's name, colons are allowed.
fn take_name(text: &str, colons: bool) -> Result<(&str, &str), String> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    let end = text.find(|c| !part(c)).unwrap_or(text.len());
    match text[..end].chars().next() {
        Some(first) if !first.is_ascii_digit() => Ok(text.split_at(end)),
        _ => Err("no name where one is due".to_owned()),
    }
}

/// Unescapes up to the closing quote and returns the rest of the text.
fn take_quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, escaped @ ('\\' | '"'))) => escaped,
                other => return Err(format!("no escape is written \\{:?}", other.map(|(_, c)| c))),
            }),
            c => value.push(c),
        }
    }
    Err("a label's value does not end".to_owned())
}
