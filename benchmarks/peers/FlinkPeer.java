import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Properties;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The benchmarks' jobs in Flink: exactly once, a checkpoint each second. Prints ready once it runs.
 *
 * <p>It starts from the savepoint of another process, if one is given, and waits until that is there. It stops with a
 * savepoint once a file exists, and then only waits for its end.
 */
public final class FlinkPeer {
    private static final int CHECKPOINT_INTERVAL_MS = 1_000;
    private static final int TRANSACTION_TIMEOUT_MS = 600_000;
    private static final int POLL_MS = 50;

    private final Peer.Options options;
    private final Peer.Codec codec;

    private FlinkPeer(Peer.Options options) {
        this.options = options;
        this.codec = options.codec();
    }

    public static void main(String[] arguments) throws Exception {
        FlinkPeer peer = new FlinkPeer(new Peer.Options(arguments));
        String savepoint = peer.awaited();
        try (StreamExecutionEnvironment environment = peer.environment(savepoint)) {
            peer.build(environment);
            JobClient job = environment.executeAsync(peer.options.text("name"));
            while (job.getJobStatus().get() != JobStatus.RUNNING) {
                if (job.getJobStatus().get().isTerminalState()) {
                    break;
                }
                Thread.sleep(POLL_MS);
            }
            System.out.println("ready");
            peer.stopWhenAsked(job);
        }
        System.exit(1);
    }

    /** The savepoint to start from, once it is there; empty: none is wanted. */
    private String awaited() throws IOException, InterruptedException {
        if (options.text("restore").isEmpty()) {
            return "";
        }
        System.out.println("waits for a savepoint");
        Path said = Path.of(options.text("restore"));
        while (!Files.exists(said)) {
            Thread.sleep(POLL_MS);
        }
        return Files.readString(said);
    }

    /** Returns only if the job has failed. */
    private void stopWhenAsked(JobClient job) throws Exception {
        Path stop = Path.of(options.text("stop"));
        while (!Files.exists(stop)) {
            if (job.getJobStatus().get().isTerminalState()) {
                job.getJobExecutionResult().get();
                return;
            }
            Thread.sleep(POLL_MS);
        }
        String folder = "file://" + options.text("scratch") + "/savepoints";
        String savepoint = job.stopWithSavepoint(false, folder, SavepointFormatType.CANONICAL).get();
        Path said = Path.of(options.text("savepoint"));
        Path part = said.resolveSibling("savepoint.part");
        Files.writeString(part, savepoint);
        Files.move(part, said, StandardCopyOption.ATOMIC_MOVE);
        Thread.currentThread().join();
    }

    private StreamExecutionEnvironment environment(String savepoint) {
        Configuration set = new Configuration();
        if (!savepoint.isEmpty()) {
            set.setString("execution.state-recovery.path", savepoint);
        }
        set.setString("execution.checkpointing.storage", "filesystem");
        set.setString("execution.checkpointing.dir", "file://" + options.text("scratch") + "/checkpoints");
        set.setString("io.tmp.dirs", options.text("scratch"));
        set.setString("restart-strategy.type", "none");
        set.setString("pipeline.object-reuse", "true");
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(options.number("cores"), set);
        environment.enableCheckpointing(CHECKPOINT_INTERVAL_MS, CheckpointingMode.EXACTLY_ONCE);
        return environment;
    }

    private void build(StreamExecutionEnvironment environment) {
        WatermarkStrategy<Peer.Reading> inOrder = WatermarkStrategy.<Peer.Reading>forMonotonousTimestamps()
                .withTimestampAssigner((reading, timestamp) -> reading.at);
        DataStream<Peer.Reading> readings = environment.fromSource(source(), inOrder, "readings");
        switch (options.text("job")) {
            case "stateless" -> write(
                    readings.filter(reading -> reading.celsius > Peer.LOWEST_CELSIUS)
                            .map(new Converting(codec))
                            .returns(Result.class),
                    0);
            case "window" -> window(
                    readings.map(reading -> Row.of(reading.site, reading.celsius)).returns(Row.class), 0, true);
            case "chain" -> {
                DataStream<Row> rows = readings
                        .map(reading -> Row.of(Peer.Group.of(reading.site, reading.sensor), reading.celsius))
                        .returns(Row.class);
                for (int hop = 0; hop < options.targets().size(); hop++) {
                    rows = window(rows, hop, false).map(Row::above).returns(Row.class);
                }
            }
            default -> throw new IllegalArgumentException("no job " + options.text("job"));
        }
    }

    private KafkaSource<Peer.Reading> source() {
        return KafkaSource.<Peer.Reading>builder()
                .setBootstrapServers(options.text("bootstrap-servers"))
                .setTopics(options.text("source"))
                .setGroupId(options.text("name"))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("isolation.level", "read_committed")
                .setDeserializer(new Decoding(codec))
                .build();
    }

    /** A window of a second, written when it closes; returns its rows, each with its end. */
    private DataStream<Row> window(DataStream<Row> rows, int hop, boolean average) {
        DataStream<Row> closed = rows
                .keyBy((KeySelector<Row, String>) row -> row.group)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(Peer.WINDOW_MS)))
                .aggregate(new Adding(), new Closing());
        write(closed.map(new Encoding(codec, average)).returns(Result.class), hop);
        return closed;
    }

    private void write(DataStream<Result> results, int hop) {
        String target = options.targets().get(hop);
        Properties producer = new Properties();
        producer.setProperty("transaction.timeout.ms", String.valueOf(TRANSACTION_TIMEOUT_MS));
        results.sinkTo(KafkaSink.<Result>builder()
                .setBootstrapServers(options.text("bootstrap-servers"))
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(target)
                .setKafkaProducerConfig(producer)
                .setRecordSerializer(new Writing(target))
                .build());
    }

    /** A row of a window: its group, what was added up, and the end of the window. */
    public static final class Row {
        public String group;
        public Peer.Total total;
        public long end;

        static Row of(String group, double celsius) {
            return of(group, Peer.Total.of(celsius), 0);
        }

        static Row of(String group, Peer.Total total, long end) {
            Row row = new Row();
            row.group = group;
            row.total = total;
            row.end = end;
            return row;
        }

        Row above() {
            return of(Peer.Group.above(group), total, end);
        }
    }

    /** An encoded result; partition -1: by its key. */
    public static final class Result {
        public byte[] key;
        public byte[] value;
        public long timestamp;
        public int partition;

        static Result of(byte[] key, byte[] value, long timestamp, int partition) {
            Result result = new Result();
            result.key = key;
            result.value = value;
            result.timestamp = timestamp;
            result.partition = partition;
            return result;
        }
    }

    private record Decoding(Peer.Codec codec) implements KafkaRecordDeserializationSchema<Peer.Reading> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Peer.Reading> out) {
            Peer.Reading reading = codec.reading(record.value());
            reading.key = record.key();
            reading.partition = record.partition();
            out.collect(reading);
        }

        @Override
        public TypeInformation<Peer.Reading> getProducedType() {
            return TypeInformation.of(Peer.Reading.class);
        }
    }

    private record Converting(Peer.Codec codec)
            implements org.apache.flink.api.common.functions.MapFunction<Peer.Reading, Result> {
        @Override
        public Result map(Peer.Reading reading) {
            return Result.of(reading.key, codec.converted(reading), reading.at, reading.partition);
        }
    }

    private record Encoding(Peer.Codec codec, boolean average)
            implements org.apache.flink.api.common.functions.MapFunction<Row, Result> {
        @Override
        public Result map(Row row) {
            byte[] value = codec.windowed(average, row.group, row.end, row.total);
            return Result.of(Peer.key(row.group), value, row.end, -1);
        }
    }

    private record Writing(String target) implements KafkaRecordSerializationSchema<Result> {
        @Override
        public ProducerRecord<byte[], byte[]> serialize(Result result, KafkaSinkContext context, Long timestamp) {
            Integer partition = result.partition < 0 ? null : result.partition;
            return new ProducerRecord<>(target, partition, result.timestamp, result.key, result.value);
        }
    }

    private static final class Adding implements AggregateFunction<Row, Peer.Total, Peer.Total> {
        @Override
        public Peer.Total createAccumulator() {
            return new Peer.Total();
        }

        @Override
        public Peer.Total add(Row row, Peer.Total total) {
            return total.plus(row.total);
        }

        @Override
        public Peer.Total getResult(Peer.Total total) {
            return total;
        }

        @Override
        public Peer.Total merge(Peer.Total one, Peer.Total other) {
            return one.plus(other);
        }
    }

    private static final class Closing extends ProcessWindowFunction<Peer.Total, Row, String, TimeWindow> {
        @Override
        public void process(String group, Context context, Iterable<Peer.Total> totals, Collector<Row> out) {
            out.collect(Row.of(group, totals.iterator().next(), context.window().getEnd()));
        }
    }
}
