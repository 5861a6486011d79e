#!/bin/sh
# A broker with message.timestamp.after.max.ms refuses the whole batch in which one record is too far ahead. Java's producer then
# reports InvalidTimestampException for the record to blame, and for all others a bare KafkaException, which is not a
# RetriableException: neither the producer nor a program that retries by class sends them again, so events of other users are lost.
# Needs Java 17 with its compiler, and Maven. Fails if a version does otherwise.
set -eu
pom=$(cd "$(dirname "$0")/.." && pwd)/tests/kafka/pom.xml
dir=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill "$broker"; wait; rm -rf "$dir"' EXIT
cd "$dir"
mvn -q -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$dir/libs"
port=39392
cat > server.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
PROPERTIES
cat > log4j2.properties <<'PROPERTIES'
rootLogger.level=OFF
PROPERTIES
cat > Refused.java <<'JAVA'
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends ten records in one batch, the fourth a minute ahead, and prints the answer to each. */
public class Refused {
    public static void main(String[] brokers) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", brokers[0]));
        try (Admin admin = Admin.create(settings)) {
            NewTopic topic = new NewTopic("served", 1, (short) 1);
            admin.createTopics(List.of(topic.configs(Map.of("message.timestamp.after.max.ms", "1000")))).all().get();
        }
        // Long enough that all are in one batch.
        settings.put("linger.ms", "2000");
        StringSerializer text = new StringSerializer();
        String[] outcomes = new String[10];
        try (Producer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            producer.partitionsFor("served");
            for (int number = 0; number < outcomes.length; number++) {
                int place = number;
                long time = System.currentTimeMillis() + (number == 3 ? 60_000 : 0);
                producer.send(new ProducerRecord<>("served", 0, time, "r-" + number, "list"), (metadata, error) ->
                    outcomes[place] = error == null ? "written"
                        : error.getClass().getSimpleName() + (error instanceof RetriableException ? ", retriable" : ", final"));
            }
        }
        for (int number = 0; number < outcomes.length; number++) {
            System.out.println("r-" + number + ": " + outcomes[number]);
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers[0]))) {
            var end = Map.of(new org.apache.kafka.common.TopicPartition("served", 0), OffsetSpec.latest());
            System.out.println("records in the topic: " + admin.listOffsets(end).all().get().values().iterator().next().offset());
        }
    }
}
JAVA
cat > expected <<'TEXT'
r-0: KafkaException, final
r-1: KafkaException, final
r-2: KafkaException, final
r-3: InvalidTimestampException, final
r-4: KafkaException, final
r-5: KafkaException, final
r-6: KafkaException, final
r-7: KafkaException, final
r-8: KafkaException, final
r-9: KafkaException, final
records in the topic: 0
TEXT
export CLASSPATH="$dir/libs/*"
kafka="java -Xmx384m -Dlog4j2.configurationFile=$dir/log4j2.properties"
$kafka kafka.tools.StorageTool format -t YWJnYXVnZS1vZi10ZXN0cw -c server.properties > /dev/null
$kafka kafka.Kafka server.properties > broker.log 2>&1 &
broker=$!
echo "Kafka $(basename libs/kafka-clients-*.jar .jar | sed 's/kafka-clients-//')"
$kafka Refused.java 127.0.0.1:$port | tee actual
diff expected actual
