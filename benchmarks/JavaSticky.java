import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Kafka's own sticky assignor on the group in a file, and says what CPU time it took.
 *
 * Arguments: how many seconds one call may take, "warm", "once" or "bytes", and the paths of groups. Answers a file
 * beside each group's (".owner") with the owner of each partition, or none if the call was stopped; and unless it is
 * called once only, a line of nanoseconds for calls after ten others, and one for calls after hundreds if they are
 * short. With "bytes", a call includes what the leader's coordinator does: subscriptions are decoded, and assignments
 * encoded. Only the thread that calls is counted, neither compiler nor garbage collector.
 *
 * A file holds big-endian ints: the numbers of topics, members and racks (0 = none are known); partitions of each
 * topic; for each member how many topics it subscribes to, and which; the previous owner of each partition, topic by
 * topic, -1 = none. Members are in racks in turn, and partition n has replicas in two racks, from the nth on.
 */
public class JavaSticky {
    static final int GENERATION = 1;
    static final int FEW_CALLS = 10;
    static final int MANY_CALLS = 500;
    static final long SHORT_NANOS = 1_000_000_000L;
    static final long LONG_NANOS = 5_000_000_000L;
    static final int MEASURED_CALLS = 5;
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** A group as the assignor takes it. */
    static final class Group {
        final Map<String, Integer> topicAt = new HashMap<>();
        final List<PartitionInfo> partitions = new ArrayList<>();
        final Map<String, List<String>> topicsOf = new HashMap<>();
        final Map<String, ByteBuffer> userDataOf = new HashMap<>();
        final Map<String, Integer> memberAt = new HashMap<>();
        final int[] start;
        final List<Node> nodes = new ArrayList<>();
        final int racks;
        final Cluster cluster;

        Group(Path path) throws IOException {
            try (var in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
                int topicCount = in.readInt(), memberCount = in.readInt();
                racks = in.readInt();
                for (int n = 0; n < Math.max(racks, 1); n++)
                    nodes.add(new Node(n, "broker", 9092, racks == 0 ? null : rack(n)));
                var names = new ArrayList<String>();
                start = new int[topicCount + 1];
                for (int t = 0; t < topicCount; t++)
                    start[t + 1] = start[t] + addTopic(names, in.readInt());
                for (int m = 0; m < memberCount; m++)
                    addMember(names, in);
                addOwners(names, in, memberCount);
            }
            cluster = new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
        }

        private String rack(int n) {
            return "rack-" + n % racks;
        }

        /** Add a topic, and return how many partitions it has. */
        private int addTopic(List<String> names, int count) {
            var name = String.format("topic-%06d", names.size());
            for (int p = 0; p < count; p++) {
                var first = nodes.get(p % nodes.size());
                Node[] replicas = racks == 0 ? new Node[] {first} : new Node[] {first, nodes.get((p + 1) % racks)};
                partitions.add(new PartitionInfo(name, p, first, replicas, replicas));
            }
            topicAt.put(name, names.size());
            names.add(name);
            return count;
        }

        private void addMember(List<String> names, DataInputStream in) throws IOException {
            int subscribed = in.readInt();
            var list = new ArrayList<String>(subscribed);
            for (int i = 0; i < subscribed; i++)
                list.add(names.get(in.readInt()));
            var member = String.format("member-%06d", memberAt.size());
            memberAt.put(member, memberAt.size());
            topicsOf.put(member, list);
        }

        /** User data, as a member sends it after it was assigned these partitions. */
        private void addOwners(List<String> names, DataInputStream in, int memberCount) throws IOException {
            var owned = new ArrayList<List<TopicPartition>>();
            for (int m = 0; m < memberCount; m++)
                owned.add(new ArrayList<>());
            for (int t = 0; t < names.size(); t++)
                for (int p = 0; p < start[t + 1] - start[t]; p++) {
                    int owner = in.readInt();
                    if (owner >= 0)
                        owned.get(owner).add(new TopicPartition(names.get(t), p));
                }
            memberAt.forEach((member, at) -> {
                var assignor = new StickyAssignor();
                assignor.onAssignment(new Assignment(owned.get(at)),
                    new ConsumerGroupMetadata("group", GENERATION, member, Optional.empty()));
                if (!owned.get(at).isEmpty())
                    userDataOf.put(member, assignor.subscriptionUserData(topicAt.keySet()));
            });
        }

        /** Subscriptions for one call, which reads user data to its end. */
        GroupSubscription subscriptions() {
            var all = new HashMap<String, Subscription>();
            topicsOf.forEach((member, list) -> {
                var userData = userDataOf.get(member);
                all.put(member, new Subscription(list, userData == null ? null : userData.duplicate(), List.of(), -1,
                    racks == 0 ? Optional.empty() : Optional.of(rack(memberAt.get(member)))));
            });
            return new GroupSubscription(all);
        }

        /** What the members send, for one call. */
        Map<String, ByteBuffer> sent() {
            var all = new HashMap<String, ByteBuffer>();
            subscriptions().groupSubscription().forEach((member, subscription) ->
                all.put(member, ConsumerProtocol.serializeSubscription(subscription)));
            return all;
        }

        int[] ownerColumn(Map<String, Assignment> assignment) {
            var owner = new int[start[start.length - 1]];
            Arrays.fill(owner, -1);
            assignment.forEach((member, mine) -> {
                for (var partition : mine.partitions())
                    owner[start[topicAt.get(partition.topic())] + partition.partition()] = memberAt.get(member);
            });
            return owner;
        }
    }

    /** Calls on one group, watched from outside. */
    static final class Calls extends Thread {
        final Group group;
        final long mostNanos;
        final String how;
        final StringBuilder report = new StringBuilder();
        Map<String, Assignment> answer;
        volatile long begun = -1;

        Calls(Group group, double mostSeconds, String how) {
            this.group = group;
            this.mostNanos = (long) (mostSeconds * 1e9);
            this.how = how;
        }

        /** A call that takes as long as several otherwise do is warm before it ends, and counts at once. */
        @Override
        public void run() {
            var warming = repeat(how.equals("once") ? 1 : FEW_CALLS, LONG_NANOS);
            if (how.equals("once"))
                return;
            report(warming.get(0) > LONG_NANOS ? warming : repeat(MEASURED_CALLS, LONG_NANOS));
            if (total(warming) < SHORT_NANOS) {
                repeat(MANY_CALLS, SHORT_NANOS);
                report(repeat(MEASURED_CALLS, SHORT_NANOS));
            }
        }

        private static long total(List<Long> nanos) {
            return nanos.stream().mapToLong(Long::longValue).sum();
        }

        private void report(List<Long> taken) {
            report.append(taken.toString().replaceAll("[\\[\\],]", "")).append("\n");
        }

        /** Call so often, or until all calls together took so long. */
        private List<Long> repeat(int times, long nanos) {
            var taken = new ArrayList<Long>();
            while (taken.size() < times && total(taken) < nanos) {
                var subscriptions = group.subscriptions();
                var sent = how.equals("bytes") ? group.sent() : Map.<String, ByteBuffer>of();
                begun = THREADS.getCurrentThreadCpuTime();
                if (how.equals("bytes"))
                    subscriptions = decoded(sent);
                answer = new StickyAssignor().assign(group.cluster, subscriptions).groupAssignment();
                if (how.equals("bytes"))
                    answer.values().forEach(ConsumerProtocol::serializeAssignment);
                taken.add(THREADS.getCurrentThreadCpuTime() - begun);
                begun = -1;
            }
            return taken;
        }

        private static GroupSubscription decoded(Map<String, ByteBuffer> sent) {
            var all = new HashMap<String, Subscription>();
            sent.forEach((member, bytes) -> all.put(member, ConsumerProtocol.deserializeSubscription(bytes)));
            return new GroupSubscription(all);
        }

        boolean tooLong() {
            long from = begun, now = THREADS.getThreadCpuTime(getId());
            return from >= 0 && from == begun && now - from > mostNanos;
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (var path : Arrays.asList(arguments).subList(2, arguments.length)) {
            var calls = new Calls(new Group(Path.of(path)), Double.parseDouble(arguments[0]), arguments[1]);
            calls.setDaemon(true);
            calls.start();
            if (ends(calls)) {
                write(calls.group.ownerColumn(calls.answer), Path.of(path + ".owner"));
                System.out.print(calls.report);
            }
        }
    }

    /** Wait for the calls, and say whether they end before one of them has taken too long. */
    static boolean ends(Calls calls) throws InterruptedException {
        while (calls.isAlive()) {
            calls.join(20);
            if (calls.tooLong())
                return false;
        }
        return true;
    }

    static void write(int[] owner, Path path) throws IOException {
        try (var out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (int member : owner)
                out.writeInt(member);
        }
    }
}
