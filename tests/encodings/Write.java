// Writes records to Kafka by Apicurio's serializers and Apache Avro. Standard input: as for write.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import io.apicurio.registry.serde.Legacy4ByteIdHandler;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serializer;

public class Write {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        JsonNode settings = JSON.readTree(lines.readLine());
        Map<Integer, Object> schemas = new HashMap<>();
        Map<String, Serializer<Object>> serializers = new HashMap<>();
        List<Future<?>> sent = new ArrayList<>();
        Map<String, Object> producing = Map.of("bootstrap.servers", settings.get("brokers").asText());
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producing, bytes, bytes)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonNode record = JSON.readTree(line);
                String topic = record.get("topic").asText(), framing = record.get("framing").asText();
                Object schema = schemas.computeIfAbsent(record.get("schema").asInt(), n -> schema(settings.get("schemas").get(n)));
                Object value = schema instanceof Descriptor message
                        ? message(message, record.get("value"))
                        : value((Schema) schema, record.get("value"));
                RecordHeaders headers = new RecordHeaders();
                byte[] payload;
                if (framing.equals("single_object")) {
                    var buffer = new BinaryMessageEncoder<Object>(GenericData.get(), (Schema) schema).encode(value);
                    payload = new byte[buffer.remaining()];
                    buffer.get(payload);
                } else {
                    String url = settings.get("registry_root").asText() + "/apis/registry/v2";
                    boolean isAvro = schema instanceof Schema;
                    payload = serializers.computeIfAbsent(framing + isAvro, name -> serializer(framing, isAvro, url))
                            .serialize(topic, headers, value);
                }
                sent.add(producer.send(new ProducerRecord<>(topic, record.get("partition").asInt(), null, null, payload, headers)));
            }
            for (Future<?> future : sent) future.get();
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Serializer<Object> serializer(String framing, boolean isAvro, String url) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("apicurio.registry.url", url);
        settings.put("apicurio.registry.auto-register", true);
        settings.put("apicurio.registry.auto-register.if-exists", "RETURN_OR_UPDATE");
        settings.put("apicurio.registry.headers.enabled", framing.startsWith("header"));
        if (framing.equals("confluent")) {
            settings.put("apicurio.registry.id-handler", Legacy4ByteIdHandler.class.getName());
            settings.put("apicurio.registry.use-id", "contentId");
        }
        if (framing.equals("header-content")) settings.put("apicurio.registry.use-id", "contentId");
        Serializer<Object> serializer = isAvro ? new AvroKafkaSerializer<>() : (Serializer) new ProtobufKafkaSerializer<>();
        serializer.configure(settings, false);
        return serializer;
    }

    static Object schema(JsonNode schema) {
        if (!schema.has("proto")) return new Schema.Parser().parse(schema.toString());
        try {
            FileDescriptorSet set = FileDescriptorSet.parseFrom(Base64.getDecoder().decode(schema.get("set").asText()));
            String name = schema.get("message").asText();
            return FileDescriptor.buildFrom(set.getFile(0), new FileDescriptor[0])
                    .findMessageTypeByName(name.substring(name.lastIndexOf('.') + 1));
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }

    static Object message(Descriptor message, JsonNode json) throws Exception {
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(message);
        JsonFormat.parser().merge(json.toString(), builder);
        return builder.build();
    }

    /** Converts JSON to the classes of Avro. */
    static Object value(Schema schema, JsonNode json) {
        return switch (schema.getType()) {
            case RECORD -> {
                GenericData.Record record = new GenericData.Record(schema);
                for (Schema.Field field : schema.getFields()) {
                    JsonNode value = json.get(field.name());
                    record.put(field.pos(), value == null ? null : value(field.schema(), value));
                }
                yield record;
            }
            case ARRAY -> {
                List<Object> list = new ArrayList<>();
                for (JsonNode element : json) list.add(value(schema.getElementType(), element));
                yield list;
            }
            case MAP -> {
                Map<String, Object> map = new HashMap<>();
                json.fields().forEachRemaining(entry -> map.put(entry.getKey(), value(schema.getValueType(), entry.getValue())));
                yield map;
            }
            case UNION -> {
                if (json.isNull()) yield null;
                Schema other = schema.getTypes().stream().filter(type -> type.getType() != Schema.Type.NULL).findFirst().get();
                yield value(other, json);
            }
            case INT -> json.asInt();
            case LONG -> json.asLong();
            default -> json.asText();
        };
    }
}
