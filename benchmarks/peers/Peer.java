import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** What both peers share: options, records, the jobs' arithmetic, and Avro in the Confluent wire format. */
public final class Peer {
    public static final int WINDOW_MS = 1_000;
    public static final double LOWEST_CELSIUS = -90;

    private static final int PREFIX_BYTES = 5;

    private Peer() {}

    /** Options of the command line, each a name and a value. */
    public static final class Options {
        private final Map<String, String> values = new HashMap<>();

        public Options(String[] arguments) {
            for (int n = 0; n + 1 < arguments.length; n += 2) {
                values.put(arguments[n], arguments[n + 1]);
            }
        }

        public String text(String name) {
            String value = values.get("--" + name);
            if (value == null) {
                throw new IllegalArgumentException("--" + name + " is missing");
            }
            return value;
        }

        public int number(String name) {
            return Integer.parseInt(text(name));
        }

        public List<String> targets() {
            return List.of(text("targets").split(","));
        }

        public Codec codec() {
            return new Codec(file("reading-schema"), file("result-schema"), number("schema-id"));
        }

        private String file(String name) {
            try {
                return Files.readString(Path.of(text(name)));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** A reading, with the key and the partition of its record. */
    public static final class Reading {
        public byte[] key;
        public int partition;
        public String sensor;
        public String site;
        public double celsius;
        public double humidity;
        public long at;
    }

    /** An aggregate of temperatures: sum, maximum, number of readings. */
    public static final class Total {
        private static final int BYTES = 24;

        public double sum;
        public double maximum = Double.NEGATIVE_INFINITY;
        public long readings;

        public static Total of(double celsius) {
            Total total = new Total();
            total.sum = celsius;
            total.maximum = celsius;
            total.readings = 1;
            return total;
        }

        public Total plus(Total other) {
            Total total = new Total();
            total.sum = sum + other.sum;
            total.maximum = Math.max(maximum, other.maximum);
            total.readings = readings + other.readings;
            return total;
        }

        public byte[] bytes() {
            return ByteBuffer.allocate(BYTES).putDouble(sum).putDouble(maximum).putLong(readings).array();
        }

        public static Total read(byte[] bytes) {
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            Total total = new Total();
            total.sum = buffer.getDouble();
            total.maximum = buffer.getDouble();
            total.readings = buffer.getLong();
            return total;
        }
    }

    /** The group of a total: a site, a sensor of a site, or all; and its text as a key. */
    public static final class Group {
        private static final String BETWEEN = "|";

        private Group() {}

        public static String of(String site, String sensor) {
            return site + BETWEEN + sensor;
        }

        /** The group that contains this one in the chain: sensor of a site, site, all. */
        public static String above(String group) {
            int at = group.indexOf(BETWEEN);
            return at < 0 ? "" : group.substring(0, at);
        }

        static String site(String group) {
            int at = group.indexOf(BETWEEN);
            return at < 0 ? (group.isEmpty() ? null : group) : group.substring(0, at);
        }

        static String sensor(String group) {
            int at = group.indexOf(BETWEEN);
            return at < 0 ? null : group.substring(at + 1);
        }
    }

    /** Decoder of readings and encoder of results. Not thread-safe. */
    public static final class Codec implements Serializable {
        private final String readingSchema;
        private final String resultSchema;
        private final int schemaId;
        private transient Avro avro;

        Codec(String readingSchema, String resultSchema, int schemaId) {
            this.readingSchema = readingSchema;
            this.resultSchema = resultSchema;
            this.schemaId = schemaId;
        }

        public Reading reading(byte[] value) {
            ByteBuffer head = ByteBuffer.wrap(value);
            byte magic = head.get();
            int id = head.getInt();
            if (magic != 0 || id != schemaId) {
                throw new IllegalArgumentException("a reading has the schema id " + id + ", not " + schemaId);
            }
            GenericRecord record = avro().decode(value);
            Reading reading = new Reading();
            reading.sensor = (String) record.get("sensor");
            reading.site = (String) record.get("site");
            reading.celsius = (double) record.get("celsius");
            reading.humidity = (double) record.get("humidity");
            reading.at = (long) record.get("at");
            return reading;
        }

        /** The result of the stateless job. */
        public byte[] converted(Reading reading) {
            GenericRecord record = avro().result();
            record.put("sensor", reading.sensor);
            record.put("site", reading.site);
            record.put("fahrenheit", reading.celsius * 1.8 + 32);
            record.put("humidity", reading.humidity);
            record.put("at", reading.at);
            return avro().encode(record);
        }

        /** The result of a window: an average by site, or a maximum of the chain. */
        public byte[] windowed(boolean average, String group, long end, Total total) {
            GenericRecord record = avro().result();
            record.put("site", Group.site(group));
            if (!average) {
                record.put("sensor", Group.sensor(group));
            }
            record.put("window_start", end - WINDOW_MS);
            record.put("window_end", end);
            record.put("celsius", average ? total.sum / total.readings : total.maximum);
            record.put("readings", total.readings);
            return avro().encode(record);
        }

        private Avro avro() {
            if (avro == null) {
                avro = new Avro(readingSchema, resultSchema);
            }
            return avro;
        }
    }

    /** The bytes of a group as a record's key. */
    public static byte[] key(String group) {
        return group.getBytes(StandardCharsets.UTF_8);
    }

    private static final class Avro {
        private static final byte[] PREFIX = {0, 0, 0, 0, 1};

        private final GenericDatumReader<GenericRecord> reader;
        private final GenericDatumWriter<GenericRecord> writer;
        private final Schema resultSchema;
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private BinaryDecoder decoder;
        private BinaryEncoder encoder;

        Avro(String readingSchema, String resultSchema) {
            Schema written = new Schema.Parser().parse(readingSchema);
            for (Schema.Field field : written.getFields()) {
                if (field.schema().getType() == Schema.Type.STRING) {
                    GenericData.setStringType(field.schema(), GenericData.StringType.String);
                }
            }
            this.reader = new GenericDatumReader<>(written);
            this.resultSchema = new Schema.Parser().parse(resultSchema);
            this.writer = new GenericDatumWriter<>(this.resultSchema);
        }

        GenericRecord decode(byte[] value) {
            decoder = DecoderFactory.get()
                    .binaryDecoder(value, PREFIX_BYTES, value.length - PREFIX_BYTES, decoder);
            try {
                return reader.read(null, decoder);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        GenericRecord result() {
            return new GenericData.Record(resultSchema);
        }

        byte[] encode(GenericRecord record) {
            out.reset();
            out.writeBytes(PREFIX);
            encoder = EncoderFactory.get().binaryEncoder(out, encoder);
            try {
                writer.write(record, encoder);
                encoder.flush();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            return out.toByteArray();
        }
    }
}
