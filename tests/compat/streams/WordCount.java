// Word count with Kafka Streams: the words of lines go through a topic to whoever counts them, in a store.
//
// Arguments: bootstrap, topic of lines, topic of counts, application id, processing guarantee, kind of store (rocksdb or
// memory), directory of state. Every count is told (no cache holds any back), so the counts of a word are 1, 2, 3, ...
// It runs until it is asked to end; its states are said as they change. A thread that fails ends the process with 3.

import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.Stores;

public class WordCount {
    public static void main(String[] words) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("application.id", words[3]);
        settings.put("processing.guarantee", words[4]);
        settings.put("state.dir", words[6]);
        settings.put("client.id", Path.of(words[6]).getFileName().toString());
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("commit.interval.ms", "100");
        settings.put("num.stream.threads", "1");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "500");
        settings.put("producer.linger.ms", "5");

        Serde<String> text = Serdes.String();
        KeyValueBytesStoreSupplier store = words[5].equals("rocksdb")
                ? Stores.persistentKeyValueStore("counts")
                : Stores.inMemoryKeyValueStore("counts");
        StreamsBuilder plan = new StreamsBuilder();
        plan.stream(words[1], Consumed.with(text, text))
                .flatMapValues(line -> List.of(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with("words", text, text))
                .count(Materialized.<String, Long>as(store).withKeySerde(text).withValueSerde(Serdes.Long()))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(words[2], Produced.with(text, text));

        CountDownLatch over = new CountDownLatch(1);
        KafkaStreams streams = new KafkaStreams(plan.build(), settings);
        boolean[] failed = new boolean[1];
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            failed[0] = true;
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            System.out.println(before + " -> " + now);
            if (now == KafkaStreams.State.NOT_RUNNING || now == KafkaStreams.State.ERROR) {
                over.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        over.await();
        if (failed[0]) {
            Runtime.getRuntime().halt(3);
        }
    }
}
