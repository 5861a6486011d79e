//! Rights that are missing on the state topic: each is named, and the daemon goes on by itself once it has them.

use crate::kafka_security::refused::checked;
use crate::kafka_security::{TOPICS, config, kafka, sasl};
use crate::support::acls::{Operation, ResourceType};
use crate::support::daemon::Daemon;
use crate::support::kafka::STRANGER;

const READ: Operation = Operation::RD_KAFKA_ACL_OPERATION_READ;
const WRITE: Operation = Operation::RD_KAFKA_ACL_OPERATION_WRITE;
const DESCRIBE: Operation = Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE;

#[test]
fn each_missing_right_on_the_state_topic_is_reported_and_awaited() {
    let kafka = kafka();
    let (state, group) = (kafka.unique("kept"), kafka.unique("group"));
    let settings = [("cleanup.policy", "compact"), ("max.message.bytes", "1048576")];
    kafka.create_topic(&state, 1, &settings);
    let grant = |kind, name: &str, operation| kafka.grant(STRANGER.0, kind, name, operation);
    let (topic, of_group) = (
        ResourceType::RD_KAFKA_RESOURCE_TOPIC,
        ResourceType::RD_KAFKA_RESOURCE_GROUP,
    );
    TOPICS.iter().for_each(|name| grant(topic, name, READ));
    grant(of_group, &group, READ);
    let text = config(&kafka.encrypted().sasl, &group, &sasl(&kafka, "PLAIN", STRANGER));
    let text = format!("{text}\n[state]\ntopic = \"{state}\"\n");
    let mut daemon = Daemon::run(&text);
    let mut wait_for_all = |parts: &[String]| {
        daemon.wait_until(&parts.join(", "), |daemon| {
            let said = daemon.try_get("/readyz").ok()?.body.replace("\\\"", "\"");
            let log = daemon.log();
            let is_reported = |part: &String| said.contains(part) && log.contains(part);
            parts.iter().all(is_reported).then_some(())
        });
    };
    let hidden = format!("no permission to see the state topic `{state}`");
    wait_for_all(&[hidden, "DESCRIBE".to_owned()]);
    grant(topic, &state, DESCRIBE);
    let missing = |right: &str| format!("no permission: grant the user {right} on topic `{state}`");
    wait_for_all(&[missing("READ"), missing("WRITE")]);
    grant(topic, &state, READ);
    daemon.wait_until("to hear no more of READ", |daemon| {
        let said = daemon.try_get("/readyz").ok()?.body;
        (!said.contains(&missing("READ")) && said.contains(&missing("WRITE"))).then_some(())
    });
    grant(topic, &state, WRITE);
    daemon.wait_until_ready();
    let unseen = format!("cannot read the settings of the state topic `{state}`");
    let log = daemon.log();
    assert!(log.contains(&unseen) && log.contains("DESCRIBE_CONFIGS"), "{log}");
    let check = checked(&text);
    assert_eq!(check.code, Some(0), "{}", check.all);
    assert!(check.stdout.contains(&unseen), "{}", check.stdout);

    kafka.deny(STRANGER.0, topic, &state, READ);
    daemon.wait_until("READ to be missed again", |daemon| {
        let said = daemon.try_get("/readyz").ok()?;
        (said.status == 503 && said.body.contains(&missing("READ"))).then_some(())
    });
}
