import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;

/** The benchmarks' jobs in Kafka Streams: exactly once, committed every 100 ms. Prints ready once it runs. */
public final class KafkaStreamsPeer {
    private static final int COMMIT_INTERVAL_MS = 100;
    private static final Duration CLOSED_WITHIN = Duration.ofSeconds(30);
    private static final Serde<Peer.Total> TOTALS =
            Serdes.serdeFrom((topic, total) -> total.bytes(), (topic, bytes) -> Peer.Total.read(bytes));

    private final Peer.Options options;
    private final ThreadLocal<Peer.Codec> codec;
    private final StreamsBuilder builder = new StreamsBuilder();

    private KafkaStreamsPeer(Peer.Options options) {
        this.options = options;
        this.codec = ThreadLocal.withInitial(options::codec);
    }

    public static void main(String[] arguments) throws InterruptedException {
        KafkaStreamsPeer peer = new KafkaStreamsPeer(new Peer.Options(arguments));
        peer.build();
        KafkaStreams streams = new KafkaStreams(peer.builder.build(), peer.properties());
        CountDownLatch failed = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("ready");
            } else if (now == KafkaStreams.State.ERROR) {
                failed.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(CLOSED_WITHIN)));
        streams.start();
        failed.await();
        System.exit(1);
    }

    private Properties properties() {
        Properties set = new Properties();
        set.put(StreamsConfig.APPLICATION_ID_CONFIG, options.text("name"));
        set.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.text("bootstrap-servers"));
        set.put(StreamsConfig.STATE_DIR_CONFIG, options.text("scratch") + "/state");
        set.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        set.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, COMMIT_INTERVAL_MS);
        set.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, options.number("cores"));
        set.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, options.number("standbys"));
        set.put("session.timeout.ms", options.number("session-ms"));
        set.put("auto.offset.reset", "earliest");
        return set;
    }

    private void build() {
        Serde<Peer.Reading> decoded = Serdes.serdeFrom(
                (topic, reading) -> {
                    throw new UnsupportedOperationException("readings are not written");
                },
                (topic, value) -> codec.get().reading(value));
        KStream<byte[], Peer.Reading> readings = builder.stream(
                options.text("source"),
                Consumed.with(Serdes.ByteArray(), decoded)
                        .withTimestampExtractor((record, time) -> ((Peer.Reading) record.value()).at));
        switch (options.text("job")) {
            case "stateless" -> write(
                    readings.filter((key, reading) -> reading.celsius > Peer.LOWEST_CELSIUS)
                            .mapValues(reading -> codec.get().converted(reading)),
                    0);
            case "window" -> window(
                    readings.map((key, reading) -> KeyValue.pair(reading.site, Peer.Total.of(reading.celsius))),
                    0,
                    true);
            case "chain" -> {
                KStream<String, Peer.Total> totals = readings.map((key, reading) -> KeyValue.pair(
                        Peer.Group.of(reading.site, reading.sensor), Peer.Total.of(reading.celsius)));
                for (int hop = 0; hop < options.targets().size(); hop++) {
                    totals = window(totals, hop, false).selectKey((group, total) -> Peer.Group.above(group));
                }
            }
            default -> throw new IllegalArgumentException("no job " + options.text("job"));
        }
    }

    /** A window of a second, written when it closes; returns its totals, with its end as timestamp. */
    private KStream<String, Peer.Total> window(KStream<String, Peer.Total> totals, int hop, boolean average) {
        TimeWindows seconds = TimeWindows.ofSizeAndGrace(
                Duration.ofMillis(Peer.WINDOW_MS), Duration.ofMillis(options.number("grace-ms")));
        KStream<String, Peer.Total> closed = totals
                .groupByKey(Grouped.with("hop-" + hop, Serdes.String(), TOTALS))
                .windowedBy(seconds)
                .aggregate(
                        Peer.Total::new,
                        (group, total, sum) -> sum.plus(total),
                        Materialized.with(Serdes.String(), TOTALS))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
                .toStream()
                .process(AtEnd::new);
        write(closed.process(() -> new Encoding(average)), hop);
        return closed;
    }

    private void write(KStream<byte[], byte[]> results, int hop) {
        results.to(options.targets().get(hop), Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
    }

    /** Gives a window's result the end of the window as its timestamp. */
    private static final class AtEnd extends ContextualProcessor<Windowed<String>, Peer.Total, String, Peer.Total> {
        @Override
        public void process(Record<Windowed<String>, Peer.Total> record) {
            context().forward(record.withKey(record.key().key()).withTimestamp(record.key().window().end()));
        }
    }

    /** Encodes a window's result. */
    private final class Encoding extends ContextualProcessor<String, Peer.Total, byte[], byte[]> {
        private final boolean average;

        Encoding(boolean average) {
            this.average = average;
        }

        @Override
        public void process(Record<String, Peer.Total> record) {
            byte[] value = codec.get().windowed(average, record.key(), record.timestamp(), record.value());
            context().forward(record.withKey(Peer.key(record.key())).withValue(value));
        }
    }
}
