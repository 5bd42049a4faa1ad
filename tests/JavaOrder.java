import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * Writes the table reference/java-order.jsonl: hash codes of texts, and the order in which Java iterates over sets of
 * them and of topic partitions. `java tests/JavaOrder.java` writes the same bytes every time.
 */
public class JavaOrder {
    static final Random RANDOM = new Random(1);
    static final int TEXTS = 1000;
    static final int[] SIZES = {1, 2, 3, 8, 11, 12, 13, 14, 23, 24, 25, 26, 48, 49, 97, 200};

    /** Hashed as org.apache.kafka.common.TopicPartition. */
    record Partition(String topic, int number) {
        @Override
        public int hashCode() {
            return 31 * (31 + number) + topic.hashCode();
        }
    }

    static String units(int length, int least, int most) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++)
            text.append((char) (least + RANDOM.nextInt(most - least + 1)));
        return text.toString();
    }

    static String uuid() {
        return new UUID(RANDOM.nextLong(), RANDOM.nextLong()).toString();
    }

    static String text(int kind) {
        return switch (kind) {
            case 0 -> units(RANDOM.nextInt(4), 'a', 'z');
            case 1 -> "consumer-" + units(6, 'a', 'z') + "-" + RANDOM.nextInt(20) + "-" + uuid();
            case 2 -> "orders." + units(3, 'a', 'f') + "-" + RANDOM.nextInt(1000);
            case 3 -> units(1 + RANDOM.nextInt(12), 0xc0, 0x17f);             // accents
            case 4 -> new StringBuilder().appendCodePoint(0x1f600 + RANDOM.nextInt(64)).append(units(3, 'a', 'z'))
                    .toString();                                              // pairs of surrogates
            case 5 -> units(1 + RANDOM.nextInt(3), 0xd800, 0xdfff);           // mostly unpaired surrogates
            case 6 -> units(200 + RANDOM.nextInt(800), ' ', '~');
            default -> units(1 + RANDOM.nextInt(20), 0, 0xffff);
        };
    }

    static String json(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char unit : text.toCharArray())
            out.append(unit < ' ' || unit > '~' || unit == '"' || unit == '\\' ? String.format("\\u%04x", (int) unit)
                    : String.valueOf(unit));
        return out.append('"').toString();
    }

    /** Keys by their place in `keys`: as they were added, and in the order of a set from which the first were removed. */
    static <T> void print(String kind, List<T> keys, List<T> added, int removed) {
        Set<T> set = new HashSet<>();
        for (T key : added)
            set.add(key);
        for (T key : added.subList(0, removed))
            set.remove(key);
        System.out.print("{\"" + kind + "\": " + places(keys, added) + ", \"removed\": " + removed + ", \"order\": "
                + places(keys, new ArrayList<>(set)) + "}\n");
    }

    static <T> String places(List<T> keys, List<T> some) {
        return some.stream().map(key -> String.valueOf(keys.indexOf(key))).collect(Collectors.joining(", ", "[", "]"));
    }

    public static void main(String[] arguments) {
        Set<String> distinct = new LinkedHashSet<>();
        while (distinct.size() < TEXTS)
            distinct.add(text(distinct.size() % 8));
        for (String a : List.of("Aa", "BB"))                                 // sixteen of one hash code
            for (String b : List.of("Aa", "BB"))
                for (String c : List.of("Aa", "BB"))
                    for (String d : List.of("Aa", "BB"))
                        distinct.add(a + b + c + d);
        List<String> texts = new ArrayList<>(distinct);
        for (String text : texts)
            System.out.print("{\"text\": " + json(text) + ", \"hash\": " + Integer.toUnsignedLong(text.hashCode()) + "}\n");
        for (int size : SIZES) {
            for (int i = 0; i < 4; i++) {
                int begin = RANDOM.nextInt(TEXTS - size);
                print("texts", texts, texts.subList(begin, begin + size), 0);
                print("texts", texts, texts.subList(begin, begin + size), size / 2);
                List<Partition> partitions = new ArrayList<>();
                for (int number = 0; number < 2 * size; number++)
                    partitions.add(new Partition(texts.get(begin), number));
                List<Partition> added = new ArrayList<>(partitions);
                Collections.shuffle(added, RANDOM);
                print("topic\": " + begin + ", \"partitions", partitions, added.subList(0, size), 0);
            }
        }
        for (int size : new int[] {TEXTS + 2, TEXTS + 8, TEXTS + 9, TEXTS + 10})
            print("texts", texts, texts.subList(TEXTS, size), 0);
    }
}
