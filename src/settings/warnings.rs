//! Warnings about settings that are legal but probably unintended.

mod experiments;

use abgauge_core::decode::framing::Format;
use abgauge_core::looks;
use abgauge_core::metrics::{METRICS, Metric, Profile};
use abgauge_core::table::visible;

use super::units::display_ms;
use super::{Config, Http, Registry, TopicFormat, Webhook};

impl Config {
    /// Returns one sentence for each setting that is allowed but doubtful. The defaults cause none.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.doubts();
        warnings.extend(self.remarks());
        warnings.extend(self.remarks_on_experiments());
        warnings
    }

    /// Returns warnings that do not put the numbers in doubt. Remarks on a single experiment are excluded, because the page
    /// shows them next to the experiment.
    pub fn remarks(&self) -> Vec<String> {
        let remarks = [
            self.unused_catalogue(),
            self.unused_credentials(),
            self.open_to_others(),
            self.webhook_in_the_open(),
            self.idle_webhook(),
            self.registry_in_the_open(),
            self.unused_registry(),
            self.two_credentials(),
        ];
        let remarks = remarks.into_iter().chain(self.unused_schemas());
        remarks.flatten().collect()
    }

    /// Returns warnings about numbers that may differ from the operator's expectation.
    pub fn doubts(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let join = &self.join;
        let longest = self.windows.last().map_or(0, |window| window.span_ms);
        if join.attribution_ms > longest {
            warnings.push(format!(
                "join.attribution ({}) is longer than the longest window ({}): the live view drops a list before its last clicks can arrive",
                display_ms(join.attribution_ms),
                display_ms(longest)
            ));
        }
        if join.click_skew_ms > join.attribution_ms {
            warnings.push(format!(
                "join.click_skew ({}) is longer than join.attribution ({}): more clicks count from before a list \
                 than from after it",
                display_ms(join.click_skew_ms),
                display_ms(join.attribution_ms)
            ));
        }
        if join.same_list_ms > join.attribution_ms {
            warnings.push(format!(
                "join.same_list ({}) is longer than join.attribution ({}): lists become final later by that time, and stay in memory as long",
                display_ms(join.same_list_ms),
                display_ms(join.attribution_ms)
            ));
        }
        if self.export.forget_after_ms < longest {
            warnings.push(format!(
                "export.forget_after ({}) is shorter than the longest window ({}): an arm disappears while its lists still count there",
                display_ms(self.export.forget_after_ms),
                display_ms(longest)
            ));
        }
        if let Some(k) = self.measures.ks.iter().find(|k| k.get() > join.max_items) {
            warnings.push(format!(
                "metrics.k holds {k}, beyond join.max_items ({}): it always equals the value over the whole list",
                join.max_items
            ));
        }
        warnings.extend(self.doubts_of_experiments());
        warnings.extend(self.strange_variables.iter().map(|name| {
            format!(
                "{name} is not a setting and has no effect: settings are ABGAUGE_SECTION__SETTING, with two underscores, such \
                 as ABGAUGE_KAFKA__BROKERS"
            )
        }));
        warnings
    }

    /// Returns one sentence for each setting that is intended but whose effect differs slightly from its value.
    pub fn notes(&self) -> Vec<String> {
        let slot_ms = self.join.slot_ms;
        let time = |ms| {
            jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
        };
        let look_ms = looks::every_ms(slot_ms);
        // Euclidean division also rounds times before 1970 upward.
        let next = |ms: i64, step_ms: i64| time((ms.div_euclid(step_ms) + 1) * step_ms);
        let of_start = |name: &str, ms: i64| {
            format!(
                "experiments.{name}.start ({}) lies inside a slot, but lists are counted by slot (join.slot, {}): it starts with the next slot, at {}",
                time(ms),
                display_ms(slot_ms),
                next(ms, slot_ms)
            )
        };
        let of_epoch = |name: &str, ms: i64| {
            format!(
                "experiments.{name}.epochs ({}) lies between two analyses, which are {} apart: its epoch starts with the next analysis, at {}",
                time(ms),
                display_ms(look_ms),
                next(ms, look_ms)
            )
        };
        let notes = self.experiments.iter().flat_map(|(name, experiment)| {
            let name = visible(name);
            let start = experiment.start_ms.filter(|ms| ms % slot_ms != 0);
            let epochs = experiment.epochs.iter().map(|epoch| epoch.start_ms);
            let mut notes: Vec<String> = start.into_iter().map(|ms| of_start(&name, ms)).collect();
            notes.extend(
                epochs
                    .filter(|ms| ms % look_ms != 0)
                    .map(|ms| of_epoch(&name, ms)),
            );
            notes
        });
        let names = self
            .measures
            .profiles
            .iter()
            .filter_map(Profile::explain_old_name);
        notes
            .chain(names.map(|name| format!("metrics.profile: {name}")))
            .collect()
    }

    /// Warns about a server that other machines can reach without credentials or TLS.
    fn open_to_others(&self) -> Option<String> {
        let Http {
            listen, tls, access, ..
        } = &self.http;
        match (listen.ip().is_loopback(), access.is_open(), tls) {
            (false, true, _) => Some(format!(
                "http.listen ({listen}) is open to other machines, and everyone there can read all numbers: set http.bearer_tokens or http.basic_passwords, or restrict access in the network"
            )),
            (false, false, None) => Some(format!(
                "http.listen ({listen}) is open to other machines without TLS, so tokens and passwords can be intercepted: set http.tls_certificate"
            )),
            _ => None,
        }
    }

    /// Warns about a webhook secret that travels without TLS.
    fn webhook_in_the_open(&self) -> Option<String> {
        let Webhook { url, secret_file, .. } = self.webhook.as_ref()?;
        let is_open = secret_file.is_some() && !url.is_tls() && !url.is_loopback();
        is_open.then(|| {
            format!("webhook.url ({url}) is without TLS, so the secret can be intercepted: use https://")
        })
    }

    /// Warns about credentials of the registry that travel without TLS.
    fn registry_in_the_open(&self) -> Option<String> {
        let Registry {
            urls, credentials, ..
        } = self.formats.registry.as_ref()?;
        let mut open = urls.iter().filter(|url| !url.is_tls() && !url.is_loopback());
        let url = open.next().filter(|_| credentials.is_some())?;
        Some(format!(
            "registry.url ({url}) is without TLS, so its credentials can be intercepted: use https://"
        ))
    }

    /// Warns about a registry if both topics have JSON, which needs no schemas.
    fn unused_registry(&self) -> Option<String> {
        let is_unused = self
            .formats
            .topics
            .iter()
            .all(|topic| topic.format == Format::Json);
        (is_unused && self.formats.registry.is_some()).then(|| {
            "[registry] has no effect, because both topics have JSON: set events.served.format or events.click.format to \"avro\" or \"protobuf\", or remove it".to_owned()
        })
    }

    /// Warns about a password that is not used, because there is a token.
    fn two_credentials(&self) -> Option<String> {
        let is_unused = self.formats.registry.as_ref()?.has_unused_password;
        is_unused.then(|| {
            "registry.password_file is not used, because registry.token_file is set: remove one of them"
                .to_owned()
        })
    }

    /// Warns about schemas and messages that the format of their topic does not use.
    fn unused_schemas(&self) -> [Option<String>; 4] {
        let [served, click] = &self.formats.topics;
        let unused = |setting: &str, kind: &str, is_unused: bool, formats: &str| {
            is_unused.then(|| {
                format!("{setting} has no effect: set events.{kind}.format to {formats}, or remove it")
            })
        };
        let schema = |setting, kind, topic: &TopicFormat| {
            let is_unused = topic.schema.is_some() && topic.format == Format::Json;
            unused(setting, kind, is_unused, "\"avro\" or \"protobuf\"")
        };
        let message = |setting, kind, topic: &TopicFormat| {
            let is_unused = topic.message.is_some() && topic.format != Format::Protobuf;
            unused(setting, kind, is_unused, "\"protobuf\"")
        };
        let [of_click, message_of_click] = match self.kafka.served_topic == self.kafka.clicks_topic {
            false => [
                schema("schemas.click", "click", click),
                message("events.click.message", "click", click),
            ],
            true => {
                let of_both = |setting: &str, decides: &str, is_same: bool| {
                    (!is_same).then(|| {
                        format!(
                            "{setting} has no effect: lists and clicks are in one topic, and {decides} applies to both; remove it"
                        )
                    })
                };
                [
                    of_both(
                        "schemas.click",
                        "schemas.served",
                        click.schema.is_none() || click.schema == served.schema,
                    ),
                    of_both(
                        "events.click.message",
                        "events.served.message",
                        click.message.is_none() || click.message == served.message,
                    ),
                ]
            }
        };
        [
            schema("schemas.served", "served", served),
            of_click,
            message("events.served.message", "served", served),
            message_of_click,
        ]
    }

    /// Warns about a webhook if no experiment has shares, because then no verdict ever changes.
    fn idle_webhook(&self) -> Option<String> {
        let url = &self.webhook.as_ref()?.url;
        let mut settings = self
            .experiments
            .values()
            .filter_map(|asked| asked.settings.as_ref());
        let has_shares = settings.any(|settings| !settings.shares.is_empty());
        (!has_shares).then(|| {
            format!(
                "webhook.url ({url}) is set, but no experiment can change its verdict: set `control` and `shares` under \
                 [experiments.NAME], or leave it out"
            )
        })
    }

    fn unused_catalogue(&self) -> Option<String> {
        let needs = |metric: &&Metric| metric.needs_catalogue();
        let is_measured = |metric: &Metric| self.measures.metrics.contains(&metric.id);
        let ids: Vec<&str> = METRICS.iter().filter(needs).map(|metric| metric.id).collect();
        (self.catalog.is_some() && !METRICS.iter().filter(needs).any(is_measured)).then(|| {
            format!(
                "metrics.catalog is set, but no measured metric needs it: add some of {} to metrics.metrics, or remove it",
                ids.join(", ")
            )
        })
    }

    /// Warns about SASL credentials without a SASL protocol: librdkafka ignores them and connects anonymously.
    fn unused_credentials(&self) -> Option<String> {
        let properties = &self.kafka.properties.0;
        let protocol = properties
            .get("security.protocol")
            // The default of librdkafka.
            .map_or("plaintext", String::as_str);
        let name = ["sasl.username", "sasl.password"]
            .into_iter()
            .find(|name| properties.contains_key(*name))?;
        (!protocol.to_lowercase().starts_with("sasl_")).then(|| {
            format!("kafka.properties.{name} has no effect unless kafka.properties.security.protocol is SASL_SSL or SASL_PLAINTEXT")
        })
    }
}
