// Consume, transform, produce with the Java client: what an application that wants every record once is told to do.
//
// Arguments: bootstrap, input topic, output topic, transactional id, group, group protocol, number of the transaction to
// die in (0: none). Every third transaction is aborted and done again. It ends when nothing has come for three seconds
// after something came, and prints how many transactions it committed and aborted.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Copier {
    private static final long QUIET_MS = 3_000;

    public static void main(String[] words) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", words[0]);
        reading.put("group.id", words[4]);
        reading.put("group.protocol", words[5]);
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", "10");
        if (words[5].equals("classic")) {
            reading.put("session.timeout.ms", "6000");
            reading.put("heartbeat.interval.ms", "500");
        }
        Properties writing = new Properties();
        writing.put("bootstrap.servers", words[0]);
        writing.put("transactional.id", words[3]);
        int last = Integer.parseInt(words[6]);
        int committed = 0;
        int aborted = 0;
        try (KafkaProducer<String, String> producer =
                        new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
                KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(words[1]));
            long quiet = Long.MAX_VALUE;
            while (quiet == Long.MAX_VALUE || System.currentTimeMillis() - quiet < QUIET_MS) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                quiet = System.currentTimeMillis();
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>(records.nextOffsets());
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(words[2], record.key(), record.value() + "!"));
                }
                producer.flush();
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                if (committed + aborted + 1 == last) {
                    Runtime.getRuntime().halt(9);
                }
                if ((committed + aborted) % 3 == 2) {
                    producer.abortTransaction();
                    aborted++;
                    Map<TopicPartition, OffsetAndMetadata> stand = consumer.committed(consumer.assignment());
                    for (TopicPartition place : consumer.assignment()) {
                        if (stand.get(place) == null) {
                            consumer.seekToBeginning(List.of(place));
                        } else {
                            consumer.seek(place, stand.get(place));
                        }
                    }
                } else {
                    producer.commitTransaction();
                    committed++;
                }
            }
        }
        System.out.println(committed + " " + aborted);
    }
}
