//! A model of Flagger with webhooks: a POST whose status means yes or no. It follows the code of version 1.41
//! (pkg/controller: webhook.go, scheduler.go, scheduler_hooks.go).

use serde_json::Value;

use crate::rollouts::server::Server;
use crate::support::https::NamedRequest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Progressing,
    WaitingPromotion,
    Promoted,
    RolledBack,
}

/// The canary in deploy/flagger.
#[derive(Debug)]
pub struct Canary {
    analysis: Value,
    iterations: u64,
    phase: Phase,
    /// Latest status of both gates: for promotion, and for rollback.
    pub last_statuses: [u16; 2],
}

impl Canary {
    pub fn of_the_manifest() -> Canary {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/flagger/canary.yaml");
        let text = std::fs::read_to_string(path).expect(path);
        let manifest: Value = serde_saphyr::from_str(&text).expect("YAML");
        Canary {
            analysis: manifest["spec"]["analysis"].clone(),
            iterations: 0,
            phase: Phase::Progressing,
            last_statuses: [0; 2],
        }
    }

    /// Runs one interval.
    pub fn advance(&mut self, server: &Server) -> Phase {
        if matches!(self.phase, Phase::Promoted | Phase::RolledBack) {
            return self.phase;
        }
        self.last_statuses[1] = self.ask("rollback", server);
        if is_yes(self.last_statuses[1]) {
            self.phase = Phase::RolledBack;
            return self.phase;
        }
        if self.iterations < self.analysis["iterations"].as_u64().expect("a number") {
            self.iterations += 1;
            return self.phase;
        }
        self.last_statuses[0] = self.ask("confirm-promotion", server);
        self.phase = match is_yes(self.last_statuses[0]) {
            true => Phase::Promoted,
            false => Phase::WaitingPromotion,
        };
        self.phase
    }

    /// Returns the status of the only webhook of this type, or 0 without an answer.
    fn ask(&self, kind: &str, server: &Server) -> u16 {
        let webhooks = self.analysis["webhooks"].as_array().expect("webhooks");
        let of_kind: Vec<_> = webhooks
            .iter()
            .filter(|webhook| webhook["type"] == kind)
            .collect();
        let [webhook] = of_kind.as_slice() else {
            panic!("one {kind}: {of_kind:?}");
        };
        let asked = NamedRequest {
            method: "POST",
            url: webhook["url"].as_str().expect("an address"),
            headers: &[("Content-Type", "application/json")],
            body: r#"{"name":"recommender","namespace":"default","phase":"Progressing","checksum":"1","metadata":{}}"#,
        };
        server.answer(&asked).map_or(0, |answer| answer.status)
    }
}

fn is_yes(status: u16) -> bool {
    (1..=202).contains(&status)
}
