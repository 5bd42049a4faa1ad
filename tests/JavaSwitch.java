import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;

/**
 * Plays groups through Kafka's own assignors, and through its election of a protocol, without a broker.
 *
 * Each line of the input is a group: {"topics": {topic: partitions}, "events": [...]}. Each event has "do" (join,
 * leave, restart, crash, rejoin) and the "ids" of members. A join has "instances" and "topics" as well, one entry for
 * each member; a join or restart has the "list" of assignors. A line of the output has for each event the elected name, how many rounds it took (0 = no
 * rebalance) and the partitions of each member. A client does what ConsumerCoordinator does: it hands an assignment to
 * the elected assignor only, and revokes everything before it joins, unless its whole list is cooperative.
 */
public class JavaSwitch {
    static final ObjectMapper JSON = new ObjectMapper();

    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** The process of a member. */
    static final class Client {
        final String id;
        final Optional<String> instance;
        final List<String> topics;
        Map<String, ConsumerPartitionAssignor> assignors;
        Set<TopicPartition> owned;
        int generation;
        ByteBuffer assigned;                       // the answer that the coordinator keeps for it

        Client(String id, Optional<String> instance, List<String> topics) {
            this.id = id;
            this.instance = instance;
            this.topics = topics;
        }

        void start(List<String> list) {
            assignors = new LinkedHashMap<>();
            for (String name : list)
                assignors.put(name, assignor(name));
            lose();
        }

        void lose() {
            owned = new TreeSet<>(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
            generation = -1;
        }

        boolean cooperative() {
            return assignors.values().stream()
                    .allMatch(one -> one.supportedProtocols().contains(RebalanceProtocol.COOPERATIVE));
        }

        void prepare() {
            if (!cooperative())
                owned.clear();
        }

        ByteBuffer subscription(String name) {
            ByteBuffer userData = assignors.get(name).subscriptionUserData(new HashSet<>(topics));
            return ConsumerProtocol.serializeSubscription(
                    new Subscription(topics, userData, new ArrayList<>(owned), generation, Optional.empty()));
        }

        /** Adopts an assignment; whether it has to join again, because it revoked partitions. */
        boolean receive(String elected, ByteBuffer data, int generation) {
            assigned = data;
            Assignment assignment = ConsumerProtocol.deserializeAssignment(data.duplicate());
            boolean again = cooperative() && !assignment.partitions().containsAll(owned);
            assignors.get(elected).onAssignment(assignment, new ConsumerGroupMetadata("g", generation, id, instance));
            owned.clear();
            owned.addAll(assignment.partitions());
            this.generation = generation;
            return again;
        }
    }

    final Map<String, Integer> topics = new TreeMap<>();
    final Map<String, Client> members = new LinkedHashMap<>();
    final Map<String, Client> evicted = new HashMap<>();
    String elected;
    int generation;

    String select() {
        ClassicGroup group = new ClassicGroup(new LogContext(), "g", ClassicGroupState.EMPTY, Time.SYSTEM);
        for (Client one : members.values()) {
            JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestProtocolCollection();
            for (String name : one.assignors.keySet())
                protocols.add(new JoinGroupRequestProtocol().setName(name).setMetadata(new byte[0]));
            group.add(new ClassicGroupMember(one.id, one.instance, "client", "host", 1000, 1000, "consumer", protocols));
        }
        return group.selectProtocol();
    }

    int rebalance() {
        if (members.isEmpty()) {
            generation++;
            return 0;
        }
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach((topic, count) -> {
            for (int number = 0; number < count; number++)
                partitions.add(new PartitionInfo(topic, number, Node.noNode(), new Node[0], new Node[0]));
        });
        Cluster cluster = new Cluster("c", List.of(), partitions, Set.of(), Set.of());
        for (int rounds = 1; ; rounds++) {
            elected = select();
            generation++;
            Map<String, Subscription> subscriptions = new HashMap<>();
            for (Client one : members.values()) {
                one.prepare();
                Subscription sent = ConsumerProtocol.deserializeSubscription(one.subscription(elected));
                sent.setGroupInstanceId(one.instance);
                subscriptions.put(one.id, sent);
            }
            Map<String, Assignment> answers = members.values().iterator().next().assignors.get(elected)
                    .assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
            boolean again = false;
            for (Client one : members.values())
                again |= one.receive(elected, ConsumerProtocol.serializeAssignment(answers.get(one.id)), generation);
            if (!again)
                return rounds;
        }
    }

    static List<String> texts(JsonNode node) {
        List<String> found = new ArrayList<>();
        node.forEach(one -> found.add(one.asText()));
        return found;
    }

    int happen(JsonNode event) {
        List<String> ids = texts(event.get("ids"));
        for (int at = 0; at < ids.size(); at++) {
            String id = ids.get(at);
            switch (event.get("do").asText()) {
                case "join" -> {
                    String instance = event.get("instances").get(at).textValue();
                    Client one = new Client(id, Optional.ofNullable(instance), texts(event.get("topics").get(at)));
                    one.start(texts(event.get("list")));
                    evicted.remove(id);
                    members.put(id, one);
                }
                case "leave" -> members.remove(id);
                case "crash" -> {
                    Client one = members.remove(id);
                    one.lose();
                    evicted.put(id, one);
                }
                case "rejoin" -> members.put(id, evicted.remove(id));
                case "restart" -> {
                    Client one = members.get(id);
                    one.start(texts(event.get("list")));
                    if (select().equals(elected)) {        // the coordinator returns its assignment
                        one.receive(elected, one.assigned, generation);
                        return 0;
                    }
                }
                default -> throw new IllegalArgumentException(event.toString());
            }
        }
        return rebalance();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = JSON.readTree(line);
            JavaSwitch group = new JavaSwitch();
            given.get("topics").fields().forEachRemaining(
                    topic -> group.topics.put(topic.getKey(), topic.getValue().asInt()));
            List<Object> told = new ArrayList<>();
            for (JsonNode event : given.get("events")) {
                int rounds = group.happen(event);
                Map<String, List<String>> owners = new TreeMap<>();
                for (Client one : group.members.values())
                    owners.put(one.id, one.owned.stream().map(TopicPartition::toString).toList());
                told.add(List.of(group.elected, rounds, owners));
            }
            System.out.println(JSON.writeValueAsString(told));
        }
    }
}
