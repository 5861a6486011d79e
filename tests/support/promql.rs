//! Parser for the series that a PromQL expression or Grafana's `label_values(SERIES, LABEL)` selects.

/// One use of a metric.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// Metric name, or the regular expression of the matcher `__name__=~` if the selector has no name.
    pub name: String,
    /// Text between the braces.
    pub matchers: String,
    /// Function that takes the selector as a range, such as `rate`, or empty.
    pub function: String,
}

impl Selector {
    /// Returns the names of the labels in the matchers.
    pub fn labels(&self) -> Vec<&str> {
        let outside_quotes = self.matchers.split('"').step_by(2);
        let parts = outside_quotes.flat_map(|text| text.split(','));
        parts
            .filter_map(|part| part.split_once(['=', '!']))
            .map(|(label, _)| label.trim())
            .collect()
    }

    /// Returns the selector as an expression of its own.
    pub fn text(&self) -> String {
        match self.name.chars().all(is_of_word) {
            true => format!("{}{{{}}}", self.name, self.matchers),
            false => format!("{{{NAMED}{}\",{}}}", self.name, self.matchers),
        }
    }
}

/// Start of a selector that has a regular expression as its name.
const NAMED: &str = "__name__=~\"";

/// Returns every use of a metric, in order.
pub fn selectors(expression: &str) -> Vec<Selector> {
    let mut selectors = Vec::new();
    let mut rest = expression;
    let mut function = "";
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = after(&rest[1..], '"');
        } else if first == '$' {
            // A variable can take the place of a number.
            rest = word(&rest[1..]).1;
        } else if first == '[' {
            rest = after(rest, ']');
        } else if let Some((inner, following)) = named(rest) {
            let (name, matchers) = inner.split_once('"').expect("the quotes close");
            selectors.push(Selector {
                name: name.to_owned(),
                matchers: matchers.trim_start_matches(',').to_owned(),
                function: if following.starts_with('[') { function } else { "" }.to_owned(),
            });
            rest = label_of_lookup(function, following);
        } else if first.is_ascii_digit() {
            rest = word(rest).1;
        } else if is_of_word(first) {
            let (name, following) = word(rest);
            rest = following.trim_start();
            match role(name, rest) {
                Role::Function => function = name,
                Role::Labels => rest = after(rest, ')'),
                Role::Word => {}
                Role::Metric => {
                    let (matchers, following) = braces(rest);
                    selectors.push(Selector {
                        name: name.to_owned(),
                        matchers: matchers.to_owned(),
                        function: if following.starts_with('[') { function } else { "" }.to_owned(),
                    });
                    rest = label_of_lookup(function, following);
                }
            }
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    selectors
}

enum Role {
    Function,
    /// A keyword, followed by labels in parentheses or by nothing.
    Labels,
    Word,
    Metric,
}

fn role(name: &str, following: &str) -> Role {
    match name {
        "by" | "without" | "on" | "ignoring" => Role::Labels,
        "group_left" | "group_right" if following.starts_with('(') => Role::Labels,
        "group_left" | "group_right" | "and" | "or" | "unless" | "bool" | "offset" => Role::Word,
        _ if following.starts_with('(') => Role::Function,
        // Aggregations may have their labels before the operand.
        _ if ["by", "without"].contains(&word(following).0) => Role::Function,
        _ => Role::Metric,
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Splits the leading word off a text.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn after(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// Splits a leading pair of braces off, and returns its content and the rest. No quoted matcher contains a brace.
fn braces(text: &str) -> (&str, &str) {
    let inner = text.strip_prefix('{').and_then(|inner| inner.split_once('}'));
    inner.unwrap_or(("", text))
}

/// Like `braces`, for a pair that starts with `__name__=~"`. The content starts after the quote.
fn named(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{')?.strip_prefix(NAMED)?;
    inner.split_once('}')
}

/// Skips the second argument of `label_values`, which is a label, not a metric.
fn label_of_lookup<'a>(function: &str, text: &'a str) -> &'a str {
    if function == "label_values" {
        after(text, ')')
    } else {
        text
    }
}
