//! A live page whose latest look is set by the test. Server and page are real, but there is no stream.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use abgauge::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use abgauge::serve::{About, Exporter, http, server};
use abgauge::settings::{self, AboutExperiment, Config};
use abgauge::telemetry::Telemetry;
use abgauge_core::looks::{ArmLook, ExperimentLook, History, Look, MetricLook, Published, WindowLook};
use abgauge_core::metrics::{ListOutcome, Parts, Ranking};
use abgauge_core::statistics::burn_in::BurnIn;
use abgauge_core::statistics::decision::MultiArm;
use abgauge_core::statistics::{
    AbsoluteEffect, ArmReport, ArmState, Basis, ComparedParts, ComparisonReport, DecidedAt, DecidedLook,
    DecidedMetric, Decision, Goal, GuardrailReport, GuardrailState, HarmBound, InformationGrowth, Interval,
    ListRatio, MetricDecision, MetricReport, MetricRole, PerUser, Settings, Size, SpanLift, Waiting,
};
use tokio_util::sync::CancellationToken;

/// End of the settled view in Unix ms.
const SETTLED_END_MS: i64 = 1_763_596_799_999;
/// Number of the look at the end of the settled view, 8.2 days after the start.
const LOOK: u64 = 1180;
const LOOK_MS: i64 = 600_000;
const START_MS: i64 = SETTLED_END_MS + 1 - LOOK as i64 * LOOK_MS;
const WEEK_MS: i64 = 604_800_000;
/// Look of the decisions.
const DECIDED_AT: DecidedAt = DecidedAt {
    look: 1008,
    as_of_ms: START_MS + WEEK_MS,
    since_ms: START_MS + WEEK_MS,
    day: 7,
    since_day: 7,
    k: Some(1),
};
const NEXT_DECISION_MS: i64 = START_MS + 2 * WEEK_MS;
/// 4 December 2025.
pub const PLANNED_END_MS: i64 = 1_764_806_400_000;
const CONTROL: &str = "base";
/// Experiment with looks.
pub const EXPERIMENT: &str = "ranker";
/// Experiment without a control, whose arms have intervals of their own.
const UNCONTROLLED: &str = "wording";
const OWN_ARMS: [&str; 2] = ["long", "short"];
/// Name of an arm that would have an effect if it were interpreted as HTML.
pub const HOSTILE: &str = "<img src=x onerror=alert(1)>";
/// Arms in order of their names, with their states.
const ARMS: [(&str, Option<ArmState>); 4] = [
    (HOSTILE, Some(ArmState::InvalidSrm)),
    ("blend", Some(ArmState::NoDecision)),
    ("neural", Some(ArmState::Collecting)),
    ("shadow", None),
];

/// A server on its own thread, which runs until this value is dropped.
pub struct LookedAt {
    pub address: SocketAddr,
    exporter: Arc<Exporter>,
    config: Config,
    looks: Arc<Published>,
    /// History of the looks shown so far.
    history: Mutex<History>,
    stop: CancellationToken,
}

impl LookedAt {
    /// Starts the server before the first look, which waits for partition 3.
    pub fn start() -> LookedAt {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let mut config = settings::load(None, [brokers].into_iter()).expect("the defaults are valid");
        config.http.listen = ([127, 0, 0, 1], 0).into();
        let asked = abgauge_core::looks::Experiment {
            settings: Some(settings()),
            ..Default::default()
        };
        let unasked = abgauge_core::looks::Experiment::default();
        let experiments = [(EXPERIMENT, asked), (UNCONTROLLED, unasked)];
        config.experiments = experiments.map(|(name, it)| (name.to_owned(), it)).into();
        let about = AboutExperiment {
            description: Some("<img src=x onerror=alert(1)> \u{202e}New".to_owned()),
            owner: Some("<b>ann</b>".to_owned()),
            planned_users: None,
        };
        config.about_experiments.insert(EXPERIMENT.to_owned(), about);
        let looks = Arc::new(Published::default());
        looks.wait_for(Some(3));
        let exporter = Arc::new(exporter(&config, Arc::clone(&looks)));
        let listener = server::bind(config.http.listen).expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let served = serve(listener, Arc::clone(&exporter), config.http.clone(), stop.clone());
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(served).expect("it serves to its end");
        });
        LookedAt {
            address,
            exporter,
            config,
            looks,
            history: Mutex::default(),
            stop,
        }
    }

    /// Plans this number of users, as a reload does.
    pub fn plan_users(&self, planned_users: u64) {
        let mut config = self.config.clone();
        let about = config.about_experiments.get_mut(EXPERIMENT);
        about.expect("it is described").planned_users = NonZeroU64::new(planned_users);
        self.exporter.about.replace(&config);
    }

    /// Shows a look that is `age_ms` older than the settled view, with `neural` in this state.
    pub fn look(&self, age_ms: i64, neural: ArmState) {
        self.show(report(SETTLED_END_MS + 1 - age_ms, neural));
    }

    /// Shows a look at arms without expected shares.
    pub fn look_without_shares(&self) {
        let mut report = report(SETTLED_END_MS + 1, ArmState::NoDecision);
        report.srm_p = None;
        for arm in report.arms.values_mut() {
            arm.decision = Some(Decision {
                state: ArmState::NoDecision,
                reason: "no shares".to_owned(),
                basis: Basis::Earlier,
            });
            arm.list_ratio = None;
            arm.metrics.remove("lists_per_user");
            for metric in arm.metrics.values_mut() {
                (metric.per_user, metric.decision) = (None, None);
            }
        }
        self.show(report);
    }

    /// Shows a look at which no arm is decided, before the next decision look, with a planned one or none.
    pub fn look_undecided(&self, planned_end_ms: Option<i64>) {
        let mut report = report(SETTLED_END_MS + 1, ArmState::NoDecision);
        report.srm_p = Some(0.8);
        report.next_decision_ms = Some(NEXT_DECISION_MS);
        report.planned_end_ms = planned_end_ms;
        for (name, state) in ARMS {
            let state = state.map(|_| ArmState::NoDecision);
            report.arms.insert(name.to_owned(), arm_report(state));
        }
        let settings = Settings {
            planned_days: planned_end_ms.map(|_| 23.0),
            ..settings()
        };
        self.show_by(settings, report);
    }

    /// Shows a look at which `neural` wins because it is not worse: the goal is not to be worse by more than 5%.
    pub fn look_not_worse(&self) {
        let mut report = sound(ArmState::Win);
        let metric = metric_of(&mut report, "neural", "mrr@5");
        let decision = metric.decision.as_mut().expect("it was decided");
        decision.metric.lift = Some(-0.006);
        decision.metric.interval = Some(Interval {
            lower: -0.03,
            upper: 0.018,
        });
        let settings = Settings {
            goal: Goal::NonInferior,
            ..settings()
        };
        self.show_by(settings, report);
    }

    /// Shows a look at which `neural` does harm by the one-sided test, while the two-sided interval includes 0.
    pub fn look_probably_harmful(&self) {
        let mut report = sound(ArmState::Harm);
        for metric in arm_of(&mut report, "neural").metrics.values_mut() {
            metric.decision = None;
        }
        let metric = metric_of(&mut report, "neural", "mrr@5");
        (metric.lift, metric.interval) = (
            Some(-0.006),
            Some(Interval {
                lower: -0.013,
                upper: 0.001,
            }),
        );
        metric.harm_since_ms = Some(DECIDED_AT.as_of_ms);
        metric.harm = Some(HarmBound {
            bound: -0.004,
            level: 0.975,
        });
        give_reason(
            &mut report,
            "MRR@5 is probably worse by the one-sided test of harm, p of harm < 0.001, since day 7, at least 0.4% worse (one-sided 97.5%)",
        );
        self.show(report);
    }

    /// Shows a look at which the interval of a lost arm includes 0 again.
    pub fn look_lost_and_open_again(&self) {
        let mut report = sound(ArmState::Loss);
        let metric = metric_of(&mut report, "neural", "mrr@5");
        (metric.lift, metric.interval) = (
            Some(-0.05),
            Some(Interval {
                lower: -0.2,
                upper: 0.1,
            }),
        );
        let decision = metric.decision.as_mut().expect("it was decided");
        decision.metric.lift = Some(-0.06);
        decision.metric.interval = Some(Interval {
            lower: -0.09,
            upper: -0.03,
        });
        arm_of(&mut report, "neural").open_again = Some("mrr@5".to_owned());
        give_reason(
            &mut report,
            "MRR@5 was worse, p = 0.010, decided on day 7; since then its interval has come to include 0",
        );
        self.show(report);
    }

    /// Shows a look at which the win of `neural` was confirmed yesterday, a day after its decision.
    pub fn look_confirmed(&self) {
        const DAY_MS: i64 = 86_400_000;
        let mut report = sound(ArmState::Win);
        let arm = arm_of(&mut report, "neural");
        let decisions = arm
            .metrics
            .values_mut()
            .filter_map(|metric| metric.decision.as_mut());
        for decision in decisions {
            decision.at.as_of_ms += DAY_MS;
            decision.at.day += 1;
        }
        give_reason(
            &mut report,
            "MRR@5 is better, p = 0.020, since day 7, last confirmed on day 8",
        );
        self.show(report);
    }

    /// Shows a look at which two arms win, and no guardrail is set.
    pub fn look_two_winners(&self) {
        let mut report = sound(ArmState::Win);
        let decision = &mut arm_of(&mut report, "blend").decision;
        decision.as_mut().expect("it is tested").state = ArmState::Win;
        for arm in report.arms.values_mut() {
            arm.waiting = None;
            for metric in arm.metrics.values_mut() {
                metric.guardrail = None;
            }
        }
        metric_of(&mut report, "neural", "mrr@5").interval = Some(Interval {
            lower: 0.01,
            upper: 0.23,
        });
        let settings = Settings {
            guardrails: BTreeMap::new(),
            ..settings()
        };
        self.show_by(settings, report);
    }

    /// Shows a look at which a check has failed.
    pub fn look_invalid(&self) {
        self.look(0, ArmState::NoDecision);
    }

    fn show(&self, report: ComparisonReport) {
        self.show_by(settings(), report);
    }

    fn show_by(&self, settings: Settings, report: ComparisonReport) {
        let as_of_ms = report.as_of_ms;
        let mut look = ExperimentLook {
            start_ms: START_MS,
            shares_since_ms: START_MS,
            as_of_ms,
            arms: sizes(),
            comparison: Some((settings, report)),
            no_users: None,
            history: Arc::default(),
        };
        let mut history = self.history.lock().expect("nobody panics with it");
        history.add(&look, 600_000);
        look.history = Arc::new(history.clone());
        let own = ExperimentLook {
            history: Arc::default(),
            arms: OWN_ARMS.map(|arm| (arm.to_owned(), own(arm))).into(),
            comparison: None,
            ..look.clone()
        };
        let experiments = [(EXPERIMENT, look), (UNCONTROLLED, own)];
        let looked = Look {
            as_of_ms,
            experiments: experiments
                .map(|(name, look)| (name.to_owned(), Arc::new(look)))
                .into(),
            given_up: None,
        };
        self.looks.show(looked, Some(3));
    }
}

impl Drop for LookedAt {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(
    listener: std::net::TcpListener,
    exporter: Arc<Exporter>,
    http: settings::Http,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let telemetry = Arc::clone(&exporter.telemetry);
    let router = http::router(exporter, &http, stop.clone());
    server::serve(listener, router, None, &http, telemetry, stop, server::GRACE).await
}

fn exporter(config: &Config, looks: Arc<Published>) -> Exporter {
    let telemetry = Telemetry::new("served", "clicks", "0");
    telemetry.set_waiting_for(Vec::new());
    Exporter {
        telemetry: Arc::new(telemetry),
        source: Arc::new(Arms(Ranking::new(&config.measures), config.windows.len() + 1)),
        looks,
        ranking: Ranking::new(&config.measures),
        windows: config.windows.clone(),
        k: config.measures.ks.clone(),
        controls: config.experiment_controls(),
        experiments: config.experiments.clone(),
        about: About::new(config),
        export: config.export.clone(),
        global: None,
        settle_after_ms: 1_920_000,
        started_ms: SETTLED_END_MS,
    }
}

fn settings() -> Settings {
    let shares = ARMS.iter().filter(|(_, state)| state.is_some());
    let shares = shares.map(|(arm, _)| *arm).chain([CONTROL]);
    Settings {
        shares: shares.map(|arm| (arm.to_owned(), 0.25)).collect(),
        primary: vec!["mrr@5".to_owned()],
        guardrails: [("ctr".to_owned(), 0.02)].into(),
        ..Settings::new(CONTROL)
    }
}

/// Arms with one settled list in every window, of which one item was clicked.
struct Arms(Ranking, usize);

impl SnapshotSource for Arms {
    fn snapshot_into(&self, _: Option<usize>, snapshot: &mut Snapshot) {
        let mut sums = vec![0_i64; self.0.width()];
        let list = ListOutcome {
            n_items: 5,
            clicked: &[1],
            n_off_list: 0,
        };
        self.0.contribute(&list, &mut sums);
        let sums: Box<[i128]> = sums.into_iter().map(i128::from).collect();
        let of_view = vec![sums; self.1];
        let names = ARMS.iter().map(|(arm, _)| *arm).chain([CONTROL]);
        let names = names.map(|arm| (EXPERIMENT, arm));
        let names = names.chain(OWN_ARMS.map(|arm| (UNCONTROLLED, arm)));
        let mut arms: Vec<ArmSnapshot> = names
            .map(|(experiment, arm)| ArmSnapshot {
                experiment: experiment.into(),
                arm: arm.into(),
                last_list_ms: SETTLED_END_MS,
                sums: [of_view.clone(), of_view.clone()],
                timelines: None,
            })
            .collect();
        arms.sort_by(|a, b| (&a.experiment, &a.arm).cmp(&(&b.experiment, &b.arm)));
        *snapshot = Snapshot {
            live_end_ms: Some(SETTLED_END_MS + 1_800_000),
            settled_end_ms: Some(SETTLED_END_MS),
            arms,
            ..Snapshot::default()
        };
    }

    fn timelines(&self, _: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        arms.iter().map(|_| None).collect()
    }
}

/// Returns the sizes of the compared arms, each with a value of the primary metric. One arm has more users than its share.
fn sizes() -> BTreeMap<String, ArmLook> {
    let metric = MetricLook {
        value: 0.25,
        parts: parts(0.25),
        interval: None,
    };
    let lift = SpanLift {
        lift: 0.02,
        interval: Some(Interval {
            lower: -0.1,
            upper: 0.14,
        }),
    };
    let day = WindowLook {
        lists: 1500.0,
        metrics: BTreeMap::new(),
        lifts: [("mrr@5".to_owned(), lift)].into(),
    };
    let size = |name: &str| ArmLook {
        size: Size {
            lists: 12_345.0,
            users: Some(if name == HOSTILE { 2_700.0 } else { 2_000.0 }),
        },
        lists_without_user: 0.0,
        top_user_lists: None,
        metrics: [("mrr@5".to_owned(), metric)].into(),
        windows: match name {
            "blend" => [("24h".to_owned(), day.clone())].into(),
            _ => BTreeMap::new(),
        },
    };
    let names = ARMS.iter().map(|(arm, _)| *arm).chain([CONTROL]);
    names.map(|name| (name.to_owned(), size(name))).collect()
}

/// Returns sums with this ratio, a multiple of 1/10,000.
fn parts(value: f64) -> Parts {
    Parts {
        numerator: (value * 10_000.0).round(),
        denominator: 10_000.0,
    }
}

/// Returns an arm of the experiment without a control. Its users are counted, and one of its metrics has no interval yet.
fn own(arm: &str) -> ArmLook {
    let interval = Interval {
        lower: 0.2,
        upper: 0.3,
    };
    let metric = |value, interval| MetricLook {
        value,
        parts: parts(value),
        interval,
    };
    let metrics = [
        ("ctr", metric(0.25, Some(interval))),
        (
            "hit_rate",
            metric(if arm == "long" { 0.27 } else { 0.24 }, Some(interval)),
        ),
        ("mrr", metric(0.0625, None)),
    ];
    ArmLook {
        size: Size {
            lists: 12_345.0,
            users: Some(2_000.0),
        },
        lists_without_user: 0.0,
        top_user_lists: None,
        metrics: metrics.map(|(key, metric)| (key.to_owned(), metric)).into(),
        windows: BTreeMap::new(),
    }
}

fn report(as_of_ms: i64, neural: ArmState) -> ComparisonReport {
    let state_of = |(arm, state): (&str, Option<ArmState>)| match arm {
        "neural" => Some(neural),
        _ => state,
    };
    let arms = ARMS.map(|arm| (arm.0.to_owned(), arm_report(state_of(arm))));
    ComparisonReport {
        as_of_ms,
        look: ((as_of_ms - START_MS) / LOOK_MS) as u64,
        next_decision_ms: None,
        planned_end_ms: None,
        srm_p: Some(0.000_4),
        multi_arm: None,
        grown: InformationGrowth::default(),
        arms: arms.into(),
        notes: vec!["a note on what is compared".to_owned()],
    }
}

/// Returns a report in which no check has failed and only `neural` may be decided.
fn sound(neural: ArmState) -> ComparisonReport {
    let mut report = report(SETTLED_END_MS + 1, neural);
    report.srm_p = Some(0.8);
    report.multi_arm = Some(MultiArm {
        in_two: 5.0,
        users: 10_000.0,
    });
    for name in [HOSTILE, "blend"] {
        let open = arm_report(Some(ArmState::NoDecision));
        report.arms.insert(name.to_owned(), open);
    }
    report
}

fn arm_of<'a>(report: &'a mut ComparisonReport, arm: &str) -> &'a mut ArmReport {
    report.arms.get_mut(arm).expect("it is there")
}

/// Sets the reason for the state of `neural`.
fn give_reason(report: &mut ComparisonReport, reason: &str) {
    let decision = arm_of(report, "neural").decision.as_mut();
    decision.expect("it is tested").reason = reason.to_owned();
}

fn metric_of<'a>(report: &'a mut ComparisonReport, arm: &str, metric: &str) -> &'a mut MetricReport {
    let arm = arm_of(report, arm);
    arm.metrics.get_mut(metric).expect("it is there")
}

/// Returns the report of an arm. Before burn-in it has only values, and a failed check withholds its decision.
fn arm_report(state: Option<ArmState>) -> ArmReport {
    let is_known = state != Some(ArmState::Collecting);
    let is_decided = is_known && !matches!(state, None | Some(ArmState::InvalidSrm));
    let interval = |lower, upper| Some(Interval { lower, upper }).filter(|_| is_known);
    let number = |number| Some(number).filter(|_| is_known && state.is_some());
    let metric = |role| MetricReport {
        role,
        control: Some(0.25),
        arm: Some(0.28),
        parts: Some(ComparedParts {
            control: parts(0.25),
            arm: parts(0.28),
        }),
        lift: Some(0.12).filter(|_| is_known),
        interval: interval(-0.04, 0.28),
        absolute: is_known.then_some(AbsoluteEffect {
            value: 0.03,
            interval: interval(-0.01, 0.07),
        }),
        standard_error: number(0.05),
        p: number(0.02),
        p_adjusted: number(0.04),
        p_harm: number(0.000_2),
        information: number(0.5),
        top_bucket_share: None,
        harm_since_ms: None,
        harm: None,
        guardrail: (role == MetricRole::Guardrail && state.is_some()).then_some(GuardrailReport {
            margin: 0.02,
            bound: Some(-0.04).filter(|_| is_known),
            state: GuardrailState::NotYet,
        }),
        days_needed: number(28.0).filter(|_| role == MetricRole::Primary),
        interval_at_one_look: None,
        decision: (is_decided && role != MetricRole::Secondary).then_some(MetricDecision {
            at: DECIDED_AT,
            metric: DecidedMetric {
                lift: Some(0.1),
                interval: interval(0.01, 0.19),
                p: 0.01,
                p_adjusted: 0.02,
                band_excludes_zero: false,
            },
        }),
        per_user: is_known.then_some(PerUser {
            lift: -0.157,
            interval: interval(-0.2, 0.6),
        }),
    };
    let per_user = MetricReport {
        control: None,
        arm: None,
        parts: None,
        absolute: None,
        ..metric(MetricRole::Secondary)
    };
    let metrics = [
        ("ctr", metric(MetricRole::Guardrail)),
        ("hit_rate", metric(MetricRole::Secondary)),
        ("lists_per_user", per_user),
        ("mrr@5", metric(MetricRole::Primary)),
    ];
    ArmReport {
        decision: state.map(|state| Decision {
            state,
            reason: match state {
                ArmState::Collecting => "64 of 100 expected hits".to_owned(),
                ArmState::Win => "MRR@5 is better, p = 0.020, decided on day 7".to_owned(),
                ArmState::InvalidSrm => "users are not split as planned, p < 0.001".to_owned(),
                _ => "no primary metric differs significantly on day 7".to_owned(),
            },
            basis: Basis::Earlier,
        }),
        decided: state.filter(|_| is_decided).map(|state| DecidedLook {
            state,
            reason: "MRR@5 is better, p = 0.020".to_owned(),
            at: Some(DECIDED_AT),
            metrics: BTreeMap::new(),
        }),
        waiting: (state == Some(ArmState::NoDecision)).then(|| Waiting {
            days: 8.2,
            min_days: None,
            guardrails: vec!["ctr".to_owned()],
            information: Some(0.5),
            days_needed: Some(28.0),
        }),
        burn_in: BurnIn {
            occupied: 256,
            expected_hits: 900.0,
        },
        list_ratio: is_known.then_some(ListRatio {
            g: 0.05,
            value: 1.051,
            interval: interval(0.8, 1.4),
            p: 1.0,
        }),
        metrics: metrics.map(|(key, metric)| (key.to_owned(), metric)).into(),
        ..ArmReport::default()
    }
}
