//! Warnings about settings of experiments.

use abgauge_core::looks;
use abgauge_core::nouns::number_of;
use abgauge_core::statistics::{STICKY_NOTE, Settings, Unit};
use abgauge_core::table::visible;

use crate::settings::units::display_ms;
use crate::settings::{Config, Experiment, Start, TopicKey, bare_or_quoted};

/// Share of users below which an arm is a canary.
const CANARY: f64 = 0.1;
const DAY_MS: f64 = 86_400_000.0;
/// Ratio from which on the control is much larger than an arm.
const MUCH_LARGER: f64 = 4.0;

/// Experiment with a control.
struct ComparedExperiment<'a> {
    name: &'a str,
    /// Name of its table.
    shown: String,
    experiment: &'a Experiment,
    settings: &'a Settings,
}

impl Config {
    /// Returns one sentence for each setting that makes the numbers of an experiment differ from the usual expectation.
    pub(super) fn doubts_of_experiments(&self) -> Vec<String> {
        let doubts = self.compared().flat_map(|of| {
            let sticky = sticky_epochs(&of.shown, of.experiment, of.settings);
            let doubts = canaries(&of.shown, of.settings).chain(sticky);
            doubts.chain(self.capped_by_partition(&of)).collect::<Vec<_>>()
        });
        doubts.collect()
    }

    /// Returns one sentence for each result that an experiment will not have, or not as expected.
    pub(super) fn remarks_on_experiments(&self) -> Vec<String> {
        let remarks = self.compared().flat_map(|of| {
            if of.settings.shares.is_empty() {
                return vec![without_shares(&of.shown, of.settings)];
            }
            let is_taken = self.without_primary.contains(of.name);
            let taken = is_taken.then(|| taken_primary(&of.shown, of.settings));
            taken.into_iter().chain(self.days_of_a_restart(&of)).collect()
        });
        let of_all = [self.users_not_counted(), self.no_look_window()];
        remarks.chain(of_all.into_iter().flatten()).collect()
    }

    /// Warns if no window starts and ends at looks, because looks then have no sums of a window.
    fn no_look_window(&self) -> Option<String> {
        let is_missing = !self.experiments.is_empty() && self.look_window().is_none();
        is_missing.then(|| {
            let every_ms = looks::every_ms(self.join.slot_ms);
            format!(
                "none of metrics.windows is a multiple of the time between two analyses ({}): experiments have no intervals in any window, only since their start, and alerts ignore them. Add one, such as \"{}\"",
                display_ms(every_ms),
                display_ms(60 * every_ms)
            )
        })
    }

    /// Warns if sums and days restart with the process: nothing is stored, and a start does not read the whole experiment
    /// again.
    fn days_of_a_restart(&self, of: &ComparedExperiment) -> Option<String> {
        // Windows are sorted by their spans.
        let longest = self.windows.last()?;
        let settings = of.settings;
        let (days, setting) = settings
            .planned_days
            .map_or((settings.min_days, "min_days"), |days| (days, "planned_days"));
        let is_longer = days * DAY_MS > longest.span_ms as f64;
        (self.state.is_none() && self.kafka.start == Start::Rebuild && is_longer).then(|| {
            let days = number_of(days, "day");
            let (name, span) = (&of.shown, &longest.name);
            let remedy = match of.experiment.start_ms {
                None => format!(
                    "and {name}.start to the start of the experiment, with topics whose retention reaches back that far"
                ),
                Some(_) => "with topics whose retention reaches back to its start".to_owned(),
            };
            format!(
                "{name} needs {days} ({setting}), but a restart keeps only about the longest window ({span}) with kafka.start = \"rebuild\". Set state.topic, or kafka.start = \"earliest\", {remedy}"
            )
        })
    }

    /// Warns about a cap if topics are keyed by request: a user's lists are spread over partitions, and each counts up to the
    /// cap.
    fn capped_by_partition(&self, of: &ComparedExperiment) -> Option<String> {
        let max = of.experiment.max_lists_per_user?;
        (self.kafka.key == TopicKey::Request).then(|| {
            format!(
                "{}.max_lists_per_user is {max}, but kafka.key is \"request\": each partition counts up to {max} lists of a user. Key \
                 both topics by the user and set kafka.key = \"user\"",
                of.shown
            )
        })
    }

    fn compared(&self) -> impl Iterator<Item = ComparedExperiment<'_>> {
        self.experiments.iter().filter_map(|(name, experiment)| {
            Some(ComparedExperiment {
                name,
                shown: format!("experiments.{}", visible(name)),
                experiment,
                settings: experiment.settings.as_ref()?,
            })
        })
    }

    /// Warns if topics are keyed by request: a user's lists are spread over partitions, so first exposures are unknown.
    fn users_not_counted(&self) -> Option<String> {
        let is_by_user = |of: ComparedExperiment| of.settings.unit == Unit::User;
        (self.kafka.key == TopicKey::Request && self.compared().any(is_by_user)).then(|| {
            "kafka.key is \"request\", so a user's lists are spread over partitions and users cannot be counted: experiments have no sample ratio and no count of users seen in two arms (intervals and tests are still valid). Key both \
             topics by the user and set kafka.key = \"user\", or unit = \"request\" if no users are assigned to arms"
                .to_owned()
        })
    }
}

fn without_shares(name: &str, settings: &Settings) -> String {
    format!(
        "{name} has a control but no shares: nothing is decided, and there is no sample ratio, no list ratio and no lift per \
         user. Write the planned share of users of each arm, such as shares = {{ {} = 0.5, ARM = 0.5 }}",
        bare_or_quoted(&settings.control)
    )
}

/// Returns the warning about a primary metric that was chosen by default.
fn taken_primary(name: &str, settings: &Settings) -> String {
    match settings.primary.first() {
        Some(metric) => format!(
            "{name} has no primary metric: only {metric} decides. Write primary = [\"{metric}\"] if that is intended, otherwise the metric that the experiment should improve"
        ),
        None => format!(
            "{name} has no primary metric, and no measured metric is a sum over users: nothing is decided. Measure another one (metrics.metrics)"
        ),
    }
}

/// Warns about canaries: a small arm looks worse than it is next to a large one if it has heavy users.
fn canaries(name: &str, settings: &Settings) -> impl Iterator<Item = String> {
    let control = settings.shares.get(&settings.control).copied().unwrap_or(0.0);
    let is_canary = move |share: f64| share < CANARY && control > MUCH_LARGER * share;
    let canaries = settings
        .shares
        .iter()
        .filter(move |(_, share)| is_canary(**share));
    canaries.map(move |(arm, share)| {
        let own = format!("{arm}-control");
        format!(
            "{name}.shares: {} ({share}) is small compared with the control ({control}): its intervals are too narrow, and it looks worse than it is if a few users have many of its lists. Add a control of the same size, an arm that serves its users like the control, and compare these two: control = {}, shares = {{ {} = 0.5, {} = 0.5 }}; unnamed arms are still shown",
            visible(arm),
            toml::Value::from(&*own),
            bare_or_quoted(&own),
            bare_or_quoted(arm)
        )
    })
}

fn sticky_epochs(name: &str, experiment: &Experiment, settings: &Settings) -> Option<String> {
    let changes = |shares| shares != &settings.shares;
    let changing = experiment
        .epochs
        .iter()
        .position(|epoch| changes(&epoch.shares))?;
    // From the first change on, all epochs are left out.
    let n_left_out = experiment.epochs.len() - changing;
    settings.sticky.then(|| {
        format!(
            "{name} is sticky and its shares change: {n_left_out} of its {} later epochs (`epochs`) are left out of all \
             comparisons ({STICKY_NOTE})",
            experiment.epochs.len()
        )
    })
}
