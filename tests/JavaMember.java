// Real Java members of consumer groups, for tests: java JavaMember.java BOOTSTRAP
// Lines of the input: "join CLIENT GROUP TOPIC,TOPIC ASSIGNOR,ASSIGNOR" ("consumer" in place of assignors stands for the
// new protocol), with "INSTANCE" after it for a static member, and "leave CLIENT". Lines of the output, one per callback:
// "CLIENT assigned t-0 t-1", "CLIENT revoked ...", "CLIENT lost ...", and "CLIENT left" or "CLIENT failed ...".
// Properties of Java that begin with "member." are settings of all members (java -Dmember.heartbeat.interval.ms=1000).
// All members close, and the program ends, when its input ends, and so together with its starter.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class JavaMember implements Runnable, ConsumerRebalanceListener {
    final String client;
    final KafkaConsumer<byte[], byte[]> consumer;

    JavaMember(String bootstrap, String client, String group, String topics, String assignors, String instance) {
        this.client = client;
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "client.id", client, "metadata.max.age.ms", "500"));
        if (instance != null)
            settings.put("group.instance.id", instance);
        if (assignors.equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", Stream.of(assignors.split(","))
                .map("org.apache.kafka.clients.consumer."::concat).collect(Collectors.toList()));
            settings.put("session.timeout.ms", instance == null ? "6000" : "45000");
            settings.put("heartbeat.interval.ms", "200");
        }
        System.getProperties().forEach((name, value) -> {
            if (name.toString().startsWith("member."))
                settings.put(name.toString().substring(7), value);
        });
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topics.split(",")), this);
        new Thread(this).start();
    }

    public void run() {
        try (consumer) {
            while (true)
                consumer.poll(Duration.ofMillis(200));
        } catch (WakeupException leave) {
            System.out.println(client + " left");
        } catch (RuntimeException error) {
            System.out.println(client + " failed " + error);
        }
    }

    void print(String what, Collection<TopicPartition> partitions) {
        StringBuilder line = new StringBuilder(client + " " + what);
        partitions.forEach(one -> line.append(" " + one));
        System.out.println(line);
    }

    public void onPartitionsAssigned(Collection<TopicPartition> some) { print("assigned", some); }
    public void onPartitionsRevoked(Collection<TopicPartition> some) { print("revoked", some); }
    public void onPartitionsLost(Collection<TopicPartition> some) { print("lost", some); }

    public static void main(String[] arguments) throws Exception {
        Map<String, JavaMember> members = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split(" ");
            if (words[0].equals("join"))
                members.put(words[1], new JavaMember(
                    arguments[0], words[1], words[2], words[3], words[4], words.length > 5 ? words[5] : null));
            else
                members.remove(words[1]).consumer.wakeup();
        }
        members.values().forEach(one -> one.consumer.wakeup());
    }
}
