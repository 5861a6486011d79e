import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Creates topic t-N for each partition count, and prints the partitions that Java's client gives keys: see make. */
public class Clients {
    /** Arguments: brokers, file of keys, partition counts. */
    public static void main(String[] args) throws Exception {
        String[] keys = new ObjectMapper().readValue(new File(args[1]), String[].class);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(properties)) {
            for (String count : List.of(args).subList(2, args.length)) {
                int n = Integer.parseInt(count);
                admin.createTopics(List.of(new NewTopic("t-" + n, n, (short) 1))).all().get();
                String partitions = Stream.of(keys)
                    .map(key -> BuiltInPartitioner.partitionForKey(key.getBytes(UTF_8), n))
                    .map(String::valueOf)
                    .collect(Collectors.joining(" "));
                System.out.println("java\t" + n + "\t" + partitions);
            }
        }
    }
}
